"""Whose turn it is to send, and what: one change at a time, over all processes.

Law: a sender holds the lease for one change. A change is `sending` before anything leaves this machine. What is
`sending` without a lease was cut off, and is looked for before it is sent again. How fast changes may follow one
another is read from what was sent, not from what a process remembers. A clock that is set back delays nothing for
ever: no lease, no pause and no count is believed to last longer than it can.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from genba.blackboard.database.sanitize import as_json, bounded
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.domain.decoding import reader
from genba.domain.errors import StateConflictError
from genba.domain.timestamps import format_time, parse_time
from genba.domain.tracker.outbox import (
    CloseIssue,
    DeliveryReceipt,
    MergePullRequest,
    OutboxEntry,
    OutboxStatus,
    Pace,
    RemoteChange,
    ReopenIssue,
    mutations_of,
)

LEASE_SECONDS = 60.0
_LATE = timedelta(minutes=5)
"""How long a live but late process of this machine keeps the lease: it may have been stopped for a while."""
LONGEST_PAUSE = timedelta(hours=2)
"""A pause that seems longer was written by another clock."""
_HOUR = timedelta(hours=1)
_SKEW = timedelta(seconds=5)
LOOKED_FOR_FIRST = (CloseIssue, ReopenIssue, MergePullRequest)
"""RemoteChanges that others often do first: a merge closes its issue."""

COLUMNS = """
SELECT o.id, o.key, o.change, o.lane, o.status, o.attempts, o.not_before, o.error, o.receipt, o.run, o.created_at,
  o.sent_at, o.ended_at FROM outbox o
"""
_HEADS = """
WHERE o.project_id = :project AND o.status IN ('pending', 'sending') AND (:lane = '' OR o.lane = :lane)
  AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.project_id = o.project_id AND e.lane = o.lane AND e.id < o.id
    AND e.status IN ('pending', 'sending', 'failed'))
"""
_DUE = Statement(COLUMNS + _HEADS + "AND (o.not_before <= :at OR o.not_before > :far) ORDER BY o.id LIMIT 1")
_NEXT = Statement(COLUMNS + _HEADS + "ORDER BY o.not_before, o.id LIMIT 1")
_ADD_SENDER = Statement("INSERT INTO outbox_senders (project_id) VALUES (:project) ON CONFLICT (project_id) DO NOTHING")
_SENDER = """
SELECT owner, until, paused_until, firm, why FROM outbox_senders WHERE project_id = :project
"""
_LOOK_AT_SENDER = Statement(_SENDER)
_HOLD_SENDER = Statement(_SENDER, _SENDER + "FOR UPDATE")
_LEASE = Statement("UPDATE outbox_senders SET owner = :owner, until = :until WHERE project_id = :project")
_LET_GO = Statement("""
UPDATE outbox_senders SET owner = '', until = '' WHERE project_id = :project AND owner = :owner
""")
_PAUSE = Statement("""
UPDATE outbox_senders SET paused_until = :until, firm = :firm, why = :why WHERE project_id = :project
""")
_FORGET_OLD = Statement("DELETE FROM outbox_sends WHERE project_id = :project AND sent_at < :hour_ago")
_COUNT_FROM_NOW = Statement("""
UPDATE outbox_sends SET sent_at = :at WHERE project_id = :project AND sent_at > :soon
""")
_SENT = Statement("""
SELECT sent_at, mutations FROM outbox_sends WHERE project_id = :project AND sent_at >= :hour_ago ORDER BY sent_at, id
""")
_SEND = Statement("""
INSERT INTO outbox_sends (project_id, outbox_id, mutations, sent_at) VALUES (:project, :id, :mutations, :at)
""")
_BEGIN = Statement("""
UPDATE outbox SET status = 'sending', attempts = attempts + 1, sent_at = :at, not_before = ''
WHERE project_id = :project AND id = :id AND status IN ('pending', 'sending')
RETURNING attempts
""")
_ONE = Statement(COLUMNS + "WHERE o.project_id = :project AND o.id = :id")
_END = Statement("""
UPDATE outbox SET status = 'done', receipt = :receipt, error = '', not_before = '', ended_at = :at
WHERE project_id = :project AND id = :id AND status <> 'done'
""")
_ONCE_MORE = Statement("""
UPDATE outbox SET status = 'pending', receipt = :receipt, error = '', not_before = '', attempts = 0
WHERE project_id = :project AND id = :id
""")
_FAIL = Statement("""
UPDATE outbox SET status = 'failed', error = :error, not_before = ''
WHERE project_id = :project AND id = :id AND status IN ('pending', 'sending')
""")
_POSTPONE = Statement("""
UPDATE outbox SET status = 'pending', error = :error, not_before = :until,
  attempts = CASE WHEN attempts = 0 THEN 1 ELSE attempts END
WHERE project_id = :project AND id = :id AND status IN ('pending', 'sending')
""")

Lives = Callable[[str], bool | None]
"""Whether the owner of a lease is alive; None where this host cannot tell."""

_change = reader(RemoteChange)
_receipt = reader(DeliveryReceipt)


class NextSend(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to do now: send an entry, or wait, or nothing."""

    entry: OutboxEntry | None = None
    look: bool = False
    """Whether it may have been made already: it is looked for, and nothing was begun."""
    until: str = ""
    """When to ask again, where there is something to wait for."""
    wait: float = 0.0
    """The seconds until then."""
    why: str = ""
    holder: str = ""
    """Who is sending, where that is what one waits for."""


class _Sender(msgspec.Struct, frozen=True):
    owner: str
    until: str
    paused_until: str
    firm: bool
    why: str


def entry_of(row: Row) -> OutboxEntry:
    """The entry of a row of `COLUMNS`."""
    id_, key, change, lane, status, attempts, not_before, error, receipt, run, created_at, sent_at, ended_at = row
    return OutboxEntry(
        id=id_,
        key=key,
        change=_change.decode(change),
        lane=lane,
        status=OutboxStatus(status),
        attempts=attempts,
        not_before=not_before,
        error=error,
        receipt=_receipt.decode(receipt) if receipt else None,
        run=run,
        created_at=created_at,
        sent_at=sent_at,
        ended_at=ended_at,
    )


def liveness_unknown(_owner: str) -> bool | None:
    return None


def claim(
    tx: Transaction, owner: str, at: datetime, pace: Pace, lane: str = "", lives: Lives = liveness_unknown
) -> NextSend:
    """Take the lease for the next change, of one lane or of all, and begin it unless it has to be looked for."""
    tx.do(_ADD_SENDER, project=tx.project)
    sender = _sender(tx, _HOLD_SENDER)
    tx.do(_COUNT_FROM_NOW, project=tx.project, at=format_time(at), soon=format_time(at + _SKEW))
    tx.do(_FORGET_OLD, project=tx.project, hour_ago=format_time(at - _HOUR))
    turn = _turn(tx, sender, owner, at, pace, lane, lives)
    if turn.entry is None:
        return turn
    tx.do(_LEASE, project=tx.project, owner=owner, until=format_time(at + timedelta(seconds=LEASE_SECONDS)))
    if turn.look:
        return turn
    return msgspec.structs.replace(turn, entry=_begun(tx, turn.entry, at))


def outlook(tx: Transaction, at: datetime, pace: Pace, lane: str = "") -> NextSend:
    """The same, without taking anything."""
    return _turn(tx, _sender(tx, _LOOK_AT_SENDER), "", at, pace, lane, liveness_unknown)


def begin(tx: Transaction, owner: str, entry: OutboxEntry, at: datetime) -> OutboxEntry | None:
    """It was looked for and is not there: now it is being sent. None when the lease, or the entry, is gone."""
    if _sender(tx, _HOLD_SENDER).owner != owner:
        return None
    row = tx.one(_ONE, project=tx.project, id=entry.id)
    current = entry_of(row) if row is not None else None
    if current is None or current.status not in (OutboxStatus.PENDING, OutboxStatus.SENDING):
        return None
    return _begun(tx, current, at)


def renew(tx: Transaction, owner: str, at: datetime) -> bool:
    """A longer lease for who has it already."""
    if _sender(tx, _HOLD_SENDER).owner != owner:
        return False
    tx.do(_LEASE, project=tx.project, owner=owner, until=format_time(at + timedelta(seconds=LEASE_SECONDS)))
    return True


def end(tx: Transaction, owner: str, entry: OutboxEntry, receipt: DeliveryReceipt, at: datetime) -> OutboxEntry:
    """Record the receipt. A text that was replaced meanwhile is still to be sent."""
    current = _still(tx, entry)
    same = current.change == entry.change
    values = {"project": tx.project, "id": entry.id, "receipt": as_json(receipt)}
    if same:
        tx.do(_END, at=format_time(at), **values)
    elif current.status is not OutboxStatus.DONE:
        tx.do(_ONCE_MORE, **values)
    tx.do(_LET_GO, project=tx.project, owner=owner)
    return _still(tx, entry)


def fail(tx: Transaction, owner: str, entry: OutboxEntry, error: str) -> OutboxEntry:
    """The other side refuses it: its lane waits for a person."""
    if _still(tx, entry).change == entry.change:
        tx.do(_FAIL, project=tx.project, id=entry.id, error=bounded(error))
    else:
        tx.do(_POSTPONE, project=tx.project, id=entry.id, error=bounded(error), until="")
    tx.do(_LET_GO, project=tx.project, owner=owner)
    return _still(tx, entry)


def postpone(tx: Transaction, owner: str, entry: OutboxEntry, until: datetime, error: str) -> OutboxEntry:
    """It is tried again, not before that time; what comes after it on its lane waits with it."""
    tx.do(_POSTPONE, project=tx.project, id=entry.id, error=bounded(error), until=format_time(until))
    tx.do(_LET_GO, project=tx.project, owner=owner)
    return _still(tx, entry)


def release(tx: Transaction, owner: str) -> None:
    """Release the lease of a sender that stopped or died."""
    tx.do(_LET_GO, project=tx.project, owner=owner)


def pause(tx: Transaction, until: datetime, why: str, at: datetime, firm: bool) -> None:
    """Nothing is sent before that time. A firm pause was asked for by the other side and is never lifted."""
    tx.do(_ADD_SENDER, project=tx.project)
    sender = _sender(tx, _HOLD_SENDER)
    known = _believed(sender.paused_until, at)
    if known is not None:
        until, firm = max(until, known), firm or sender.firm
    tx.do(_PAUSE, project=tx.project, until=format_time(until), firm=firm, why=bounded(why))


def unpause(tx: Transaction, at: datetime) -> None:
    """Lift the pause, except a firm one."""
    tx.do(_ADD_SENDER, project=tx.project)
    sender = _sender(tx, _HOLD_SENDER)
    if not sender.firm or _believed(sender.paused_until, at) is None:
        tx.do(_PAUSE, project=tx.project, until="", firm=False, why="")


def lease_holder(tx: Transaction, at: datetime, lives: Lives = liveness_unknown) -> str:
    """Who is sending right now."""
    sender = _sender(tx, _LOOK_AT_SENDER)
    return sender.owner if _lease_ends(sender, at, lives) is not None else ""


def after(at: datetime, seconds: float) -> datetime:
    """So many seconds later, and never later than a pause can last."""
    return at + timedelta(seconds=max(0.0, min(seconds, LONGEST_PAUSE.total_seconds() - 1)))


def _turn(tx: Transaction, sender: _Sender, owner: str, at: datetime, pace: Pace, lane: str, lives: Lives) -> NextSend:
    leased = _lease_ends(sender, at, lives) if sender.owner != owner else None
    if leased is not None:
        return _waiting(at, leased, "another process is sending", sender.owner)
    values = {"project": tx.project, "lane": lane, "at": format_time(at), "far": format_time(at + LONGEST_PAUSE)}
    due, paused = tx.one(_DUE, **values), _believed(sender.paused_until, at)
    row = due or tx.one(_NEXT, project=tx.project, lane=lane)
    if row is None:
        return NextSend()
    entry = entry_of(row)
    if paused is not None:
        return _waiting(at, paused, sender.why)
    if due is None:
        return _waiting(at, _time(entry.not_before, at), entry.error or "it is tried again later")
    if entry.status is OutboxStatus.SENDING:
        settling = timedelta(seconds=pace.settle_seconds)
        settled = _time(entry.sent_at, at) + settling
        if at < settled <= at + settling:
            return _waiting(at, settled, "it was cut off, and is looked for first")
    free = _free(tx, at, pace, mutations_of(entry.change))
    if free > at:
        return _waiting(at, free, _pace_words(pace, free - at))
    look = entry.attempts > 0 or entry.status is OutboxStatus.SENDING or isinstance(entry.change, LOOKED_FOR_FIRST)
    return NextSend(entry=entry, look=look)


def _waiting(at: datetime, until: datetime, why: str, holder: str = "") -> NextSend:
    return NextSend(until=format_time(until), wait=max(0.0, (until - at).total_seconds()), why=why, holder=holder)


def _free(tx: Transaction, at: datetime, pace: Pace, mutations: int) -> datetime:
    """When so many requests may follow what was sent."""
    sent = [(min(_time(text, at), at), count) for text, count in _recent(tx, at)]
    if not sent:
        return at
    last, count = sent[-1]
    free = last + timedelta(seconds=pace.pause_seconds * count)
    total = sum(count for _, count in sent)
    for when, count in sent:
        if total + mutations <= pace.per_hour or not total:
            break
        free = max(free, when + _HOUR)
        total -= count
    return free


def _recent(tx: Transaction, at: datetime) -> list[Row]:
    return tx.all(_SENT, project=tx.project, hour_ago=format_time(at - _HOUR))


def _pace_words(pace: Pace, left: timedelta) -> str:
    if left > timedelta(seconds=60 + 10 * pace.pause_seconds):
        return f"at most {pace.per_hour} changes an hour are sent"
    return "the pause between two changes"


def _begun(tx: Transaction, entry: OutboxEntry, at: datetime) -> OutboxEntry:
    row = tx.one(_BEGIN, project=tx.project, id=entry.id, at=format_time(at))
    tx.do(_SEND, project=tx.project, id=entry.id, mutations=mutations_of(entry.change), at=format_time(at))
    attempts = int(row[0]) if row else entry.attempts + 1
    return msgspec.structs.replace(entry, status=OutboxStatus.SENDING, attempts=attempts, sent_at=format_time(at))


def _still(tx: Transaction, entry: OutboxEntry) -> OutboxEntry:
    row = tx.one(_ONE, project=tx.project, id=entry.id)
    if row is None:
        raise StateConflictError(f"entry {entry.id} of the outbox is gone", hint="genba outbox list --all")
    return entry_of(row)


def _sender(tx: Transaction, statement: Statement) -> _Sender:
    row = tx.one(statement, project=tx.project)
    if row is None:
        return _Sender("", "", "", False, "")
    owner, until, paused_until, firm, why = row
    return _Sender(owner, until, paused_until, bool(firm), why)


def _lease_ends(sender: _Sender, at: datetime, lives: Lives) -> datetime | None:
    """When another sender's lease ends; None when it has ended, or when its owner is dead."""
    if not sender.owner or not sender.until:
        return None
    alive, until = lives(sender.owner), _time(sender.until, at)
    longest = at + timedelta(seconds=LEASE_SECONDS)
    if alive is False:
        return None
    if alive:
        until = min(until + _LATE, longest)
    return until if at < until <= longest + _SKEW else None


def _believed(text: str, at: datetime) -> datetime | None:
    """The end of a pause that is not over; None when it is, or when it is from another clock."""
    until = _time(text, at)
    return until if at < until <= at + LONGEST_PAUSE else None


def _time(text: str, otherwise: datetime) -> datetime:
    return parse_time(text) or otherwise
