"""The outbox: every change on the outside is written down here first, and carried out once, in order.

Law: a change is recorded in the transaction of the change that asks for it, under a key that is the same for the same
effect. The first one of a key counts: who asks again, with whatever words, gets what is there. Only a comment that is
kept up to date takes the newest words, and is sent again if others were sent. Nothing here is deleted but what such a
comment had before.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime

from genba.blackboard.database.sanitize import as_json, named, storable
from genba.blackboard.database.store import Statement, Store, Transaction
from genba.blackboard.tracker import outbox_order
from genba.blackboard.tracker.outbox_order import COLUMNS, Lives, NextSend, entry_of, liveness_unknown
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.tasks.task import Actor
from genba.domain.timestamps import format_time
from genba.domain.tracker.outbox import (
    DeliveryReceipt,
    KeepComment,
    OutboxEntry,
    OutboxStatus,
    Pace,
    RemoteChange,
    lane_of,
)

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,199}")

_INSERT = Statement("""
INSERT INTO outbox (project_id, task_id, key, kind, lane, change, run, created_at)
VALUES (:project, (SELECT id FROM tasks WHERE project_id = :project AND number = :issue), :key, :kind, :lane, :change,
  :run, :at) RETURNING id
""")
_BY_KEY = Statement(COLUMNS + "WHERE o.project_id = :project AND o.key = :key")
_ONE = Statement(COLUMNS + "WHERE o.project_id = :project AND o.id = :id")
_ALL = Statement(COLUMNS + "WHERE o.project_id = :project ORDER BY o.id")
_NOT_ENDED = Statement(
    COLUMNS + "WHERE o.project_id = :project AND o.status IN ('pending', 'sending', 'failed') ORDER BY o.id"
)
_IN_LANE = Statement(COLUMNS + "WHERE o.project_id = :project AND o.lane = :lane ORDER BY o.id")
_LEFT = Statement("""
SELECT count(*) FROM outbox WHERE project_id = :project AND status IN ('pending', 'sending')
""")
_DELETE = Statement("DELETE FROM outbox WHERE project_id = :project AND id = :id")
_REPLACE = Statement("""
UPDATE outbox SET change = :change, status = CASE WHEN status = 'failed' THEN 'pending' ELSE status END, run = :run
WHERE project_id = :project AND id = :id
""")
_RETRY = Statement("""
UPDATE outbox SET status = CASE WHEN status = 'failed' THEN 'pending' ELSE status END, not_before = ''
WHERE project_id = :project AND id = :id
""")
_DROP = Statement("""
UPDATE outbox SET status = 'dropped', error = :why, ended_at = :at WHERE project_id = :project AND id = :id
""")
_SERVER_TIME = Statement("SELECT clock_timestamp()")
_ALONE_IN_LANE = Statement("SELECT pg_advisory_xact_lock(hashtext(:lane))")


def record(tx: Transaction, key: str, change: RemoteChange, *, run: str = "", at: str = "") -> OutboxEntry:
    """Write a change down, inside of the transaction that asks for it; what is there under its key already stays."""
    _check(key)
    lane = lane_of(change)
    if tx.on_postgres:  # ids of one lane are given in the order in which they become visible
        tx.all(_ALONE_IN_LANE, lane=f"{tx.project} {lane}")
    known = by_key(tx, key)
    if known is not None and not _says_something_new(known, change):
        return known
    if known is not None and not known.status.ended:
        tx.do(_REPLACE, project=tx.project, id=known.id, change=as_json(change), run=run or known.run)
        return show(tx, known.id)
    if known is not None:
        tx.do(_DELETE, project=tx.project, id=known.id)
    row = tx.one(
        _INSERT,
        project=tx.project,
        issue=getattr(change, "issue", None),
        key=key,
        kind=change.__struct_config__.tag,
        lane=lane,
        change=as_json(change),
        run=run,
        at=at or format_time(datetime.now(UTC)),
    )
    return show(tx, int(row[0]) if row else 0)


def by_key(tx: Transaction, key: str) -> OutboxEntry | None:
    row = tx.one(_BY_KEY, project=tx.project, key=key)
    return None if row is None else entry_of(row)


def in_lane(tx: Transaction, lane: str) -> list[OutboxEntry]:
    """Everything of one lane, oldest first, ended or not."""
    return [entry_of(row) for row in tx.all(_IN_LANE, project=tx.project, lane=lane)]


def pending(tx: Transaction, issue: int | None = None) -> list[OutboxEntry]:
    """What is not carried out yet, oldest first; of one issue, or of all."""
    if issue is not None:
        return [entry for entry in in_lane(tx, f"issue:{issue}") if not entry.status.ended]
    return [entry_of(row) for row in tx.all(_NOT_ENDED, project=tx.project)]


def show(tx: Transaction, entry_id: int) -> OutboxEntry:
    row = tx.one(_ONE, project=tx.project, id=entry_id)
    if row is None:
        raise NotFoundError(f"there is no entry {entry_id} in the outbox", hint="genba outbox list --all")
    return entry_of(row)


def retry(tx: Transaction, entry_id: int, at: datetime) -> OutboxEntry:
    """Try again, now. What was tried before is looked for first."""
    entry = show(tx, entry_id)
    if entry.status.ended:
        raise StateConflictError(
            f"entry {entry_id} of the outbox is {entry.status}: there is nothing to try again",
            unchanged="nothing was changed.",
            hint=f"genba outbox show {entry_id}",
        )
    outbox_order.unpause(tx, at)
    tx.do(_RETRY, project=tx.project, id=entry_id)
    return show(tx, entry_id)


def drop(tx: Transaction, entry_id: int, actor: Actor, at: datetime, lives: Lives = liveness_unknown) -> OutboxEntry:
    """Give a change up: it is never sent, and what waits behind it goes on."""
    named(actor)
    entry = show(tx, entry_id)
    if entry.status.ended:
        raise StateConflictError(
            f"entry {entry_id} of the outbox is {entry.status} already",
            unchanged="nothing was changed.",
            hint=f"genba outbox show {entry_id}",
        )
    if entry.status is OutboxStatus.SENDING and outbox_order.lease_holder(tx, at, lives):
        raise StateConflictError(
            f"entry {entry_id} of the outbox is being sent right now",
            unchanged="nothing was changed.",
            hint=f"genba outbox show {entry_id}",
        )
    tx.do(_DROP, project=tx.project, id=entry_id, why=f"dropped by {actor.name}", at=format_time(at))
    return show(tx, entry_id)


def _says_something_new(known: OutboxEntry, change: RemoteChange) -> bool:
    return isinstance(change, KeepComment) and isinstance(known.change, KeepComment) and known.change != change


def _check(key: str) -> None:
    """A key stands in a marker, in a comment that readers do not see: nothing in it ends that comment."""
    storable(key, "the key of a change", empty=False)
    if not _KEY.fullmatch(key) or "--" in key:
        raise UsageError(f"a change cannot have the key {key!r}", unchanged="nothing was changed.")


class Outbox:
    """The outbox of one project. Every call is one transaction; any thread may call."""

    def __init__(self, store: Store, clock: Callable[[], datetime] | None = None) -> None:
        self.store = store
        self._clock = clock

    def record(self, key: str, change: RemoteChange, *, run: str = "") -> OutboxEntry:
        return self.store.write(lambda tx: record(tx, key, change, run=run, at=format_time(self._at(tx))))

    def by_key(self, key: str) -> OutboxEntry | None:
        return self.store.read(lambda tx: by_key(tx, key))

    def show(self, entry_id: int) -> OutboxEntry:
        return self.store.read(lambda tx: show(tx, entry_id))

    def list(self, *, all: bool = False) -> tuple[OutboxEntry, ...]:  # noqa: A002
        """What is not carried out yet, failed ones included, oldest first; or everything."""
        statement = _ALL if all else _NOT_ENDED
        return self.store.read(lambda tx: tuple(entry_of(row) for row in tx.all(statement, project=tx.project)))

    def left(self) -> int:
        """How many are still to be sent."""
        row = self.store.read(lambda tx: tx.one(_LEFT, project=tx.project))
        return int(row[0]) if row else 0

    def retry(self, entry_id: int) -> OutboxEntry:
        return self.store.write(lambda tx: retry(tx, entry_id, self._at(tx)))

    def retry_all(self) -> tuple[OutboxEntry, ...]:
        """Try everything again that failed, or that waits for its next attempt."""

        def work(tx: Transaction) -> tuple[OutboxEntry, ...]:
            again = [entry for entry in pending(tx) if entry.status is OutboxStatus.FAILED or entry.not_before]
            return tuple(retry(tx, entry.id, self._at(tx)) for entry in again)

        return self.store.write(work)

    def drop(self, entry_id: int, actor: Actor, lives: Lives = liveness_unknown) -> OutboxEntry:
        return self.store.write(lambda tx: drop(tx, entry_id, actor, self._at(tx), lives))

    # Sending

    def outlook(self, pace: Pace) -> NextSend:
        """What a sender would do now, and what it would wait for. Nothing is taken."""
        return self.store.read(lambda tx: outbox_order.outlook(tx, self._at(tx), pace))

    def claim(self, owner: str, pace: Pace, lane: str = "", lives: Lives = liveness_unknown) -> NextSend:
        """The next change, with the lease to send it; or what to wait for; or nothing."""
        return self.store.write(lambda tx: outbox_order.claim(tx, owner, self._at(tx), pace, lane, lives))

    def begin(self, owner: str, entry: OutboxEntry) -> OutboxEntry | None:
        """What was looked for and not found is sent now; None when another sender has the lease, or it was dropped."""
        return self.store.write(lambda tx: outbox_order.begin(tx, owner, entry, self._at(tx)))

    def renew(self, owner: str) -> bool:
        return self.store.write(lambda tx: outbox_order.renew(tx, owner, self._at(tx)))

    def end(self, owner: str, entry: OutboxEntry, receipt: DeliveryReceipt) -> OutboxEntry:
        return self.store.write(lambda tx: outbox_order.end(tx, owner, entry, receipt, self._at(tx)))

    def fail(self, owner: str, entry: OutboxEntry, error: str) -> OutboxEntry:
        return self.store.write(lambda tx: outbox_order.fail(tx, owner, entry, error))

    def postpone(
        self, owner: str, entry: OutboxEntry, error: str, *, seconds: float, everyone: float = 0.0, firm: bool = False
    ) -> OutboxEntry:
        """Try it again after so many seconds, and let everything wait for so many."""

        def work(tx: Transaction) -> OutboxEntry:
            at = self._at(tx)
            if everyone > 0:
                outbox_order.pause(tx, outbox_order.after(at, everyone), error, at, firm)
            return outbox_order.postpone(tx, owner, entry, outbox_order.after(at, seconds), error)

        return self.store.write(work)

    def pause(self, seconds: float, why: str, *, firm: bool = True) -> None:
        """Send nothing for so long: the other side asked for it (firm), or does not answer."""
        self.store.write(
            lambda tx: outbox_order.pause(tx, outbox_order.after(self._at(tx), seconds), why, self._at(tx), firm)
        )

    def unpause(self) -> None:
        """Lift every pause that the other side did not ask for."""
        self.store.write(lambda tx: outbox_order.unpause(tx, self._at(tx)))

    def release(self, owner: str) -> None:
        self.store.write(lambda tx: outbox_order.release(tx, owner))

    def _at(self, tx: Transaction) -> datetime:
        """The time, by one clock for everybody: that of the server, where there is one."""
        if self._clock is not None:
            return self._clock()
        if tx.on_postgres:
            row = tx.one(_SERVER_TIME)
            if row is not None:
                found: datetime = row[0]
                return found
        return datetime.now(UTC)
