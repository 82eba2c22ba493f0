"""The forge of a project whose pull requests live elsewhere: each is in the outbox first, and sent from there.

Law: the words of a pull request that are wanted last are in the newest entry of its branch. Who asks for the same again
gets that entry; other words, or a pull request that people closed, make a new one.
"""

import asyncio
import hashlib
from collections.abc import Callable

import msgspec

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tracker.outbox import Outbox, record
from genba.blackboard.tracker.outbox_order import COLUMNS, entry_of
from genba.coordination.tracker.outbox_sender import Sender
from genba.domain.decoding import reader
from genba.domain.errors import (
    AccessRefusedError,
    GenbaError,
    NotFoundError,
    RemoteUnavailable,
    StateConflictError,
    UnrecoverableError,
)
from genba.domain.sessions.workspaces import PullRequest
from genba.domain.tracker.outbox import OpenPullRequest, OutboxEntry, OutboxStatus, SendResult
from genba.domain.tracker.remote import PullRequestState, TrackedPullRequest

_OF_FORGE = Statement(COLUMNS + "WHERE o.project_id = :project AND o.kind = 'pull_request' ORDER BY o.id DESC")
_OPEN = Statement("""
SELECT data FROM pull_requests WHERE project_id = :project AND branch = :branch AND state = 'open'
ORDER BY number DESC LIMIT 1
""")
_STATE = Statement("SELECT state FROM pull_requests WHERE project_id = :project AND number = :number")
_SHORT_WAIT = 5.0
"""Seconds of waiting without a message."""
_PATIENCE = 900.0

_pull_request = reader(TrackedPullRequest)


class OutboxForge:
    """Opens pull requests by the outbox, and waits until they are there."""

    def __init__(
        self,
        outbox: Outbox,
        sender: Sender,
        run: str = "",
        patience: float | None = _PATIENCE,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.outbox = outbox
        self.sender = sender
        self.run = run
        self.patience = patience
        """How long to wait for the other side. After that the pull request is still in the outbox."""
        self.say = say or (lambda _: None)

    async def find(self, branch: str) -> str:
        return await asyncio.to_thread(self.outbox.store.read, lambda tx: _address(tx, branch))

    async def open(self, request: PullRequest) -> str:
        """The address of the pull request; `outbox:ID` where nothing is sent by itself."""
        change = OpenPullRequest(
            branch=request.branch,
            target=request.target,
            title=request.title,
            body=request.body,
            issue=request.issue,
            draft=request.draft,
            reviewers=request.reviewers,
        )
        entry = await asyncio.to_thread(self.outbox.store.write, lambda tx: _record(tx, change, self.run))
        if entry.status is OutboxStatus.FAILED:
            entry = await asyncio.to_thread(self.outbox.retry, entry.id)
        if not self.sender.settings.send and entry.status is not OutboxStatus.DONE:
            return f"outbox:{entry.id}"
        result = await self._send(entry)
        entry = await asyncio.to_thread(self.outbox.show, entry.id)
        if entry.status is OutboxStatus.DONE and entry.receipt is not None:
            return entry.receipt.address
        in_the_way = await asyncio.to_thread(self._in_the_way, entry)
        raise _not_opened(request.branch, entry, in_the_way, result)

    async def _send(self, entry: OutboxEntry) -> SendResult:
        """Send it, and report a long wait before it begins."""
        result = await self.sender.send(self.patience, key=entry.key, longest_wait=_SHORT_WAIT)
        if not result.until or not result.left:
            return result
        self.say(f"the pull request waits in the outbox until {result.until[:19]}Z: {result.why}")
        return await self.sender.send(self.patience, key=entry.key)

    def _in_the_way(self, entry: OutboxEntry) -> OutboxEntry | None:
        """What was refused before it on the same lane."""
        before = [other for other in self.outbox.list() if other.lane == entry.lane and other.id < entry.id]
        return next((other for other in before if other.status is OutboxStatus.FAILED), None)


def _record(tx: Transaction, change: OpenPullRequest, run: str) -> OutboxEntry:
    known = _entries(tx, change.branch)
    if (
        known
        and known[0].change == change
        and known[0].status is not OutboxStatus.DROPPED
        and not _is_over(tx, known[0])
    ):
        return known[0]
    branch, content = _digest(change.branch.encode()), _digest(msgspec.json.encode(change))
    return record(tx, f"pull-request:{branch}:{len(known) + 1}:{content}", change, run=run)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _entries(tx: Transaction, branch: str) -> list[OutboxEntry]:
    """Those of a branch, newest first."""
    found = (entry_of(row) for row in tx.all(_OF_FORGE, project=tx.project))
    return [entry for entry in found if isinstance(entry.change, OpenPullRequest) and entry.change.branch == branch]


def _is_over(tx: Transaction, entry: OutboxEntry) -> bool:
    """Whether the pull request that an entry opened is known to be closed, or merged."""
    if entry.receipt is None or entry.receipt.number is None:
        return False
    row = tx.one(_STATE, project=tx.project, number=entry.receipt.number)
    return row is not None and row[0] != PullRequestState.OPEN


def _address(tx: Transaction, branch: str) -> str:
    row = tx.one(_OPEN, project=tx.project, branch=branch)
    if row is not None:
        return _pull_request.decode(row[0]).url
    for entry in _entries(tx, branch):
        if entry.status is OutboxStatus.DONE and entry.receipt is not None:
            return "" if _is_over(tx, entry) else entry.receipt.address
    return ""


def _not_opened(branch: str, entry: OutboxEntry, in_the_way: OutboxEntry | None, result: SendResult) -> GenbaError:
    message = f"the pull request of {branch} is not open yet"
    stays = f"it stays in the outbox, as entry {entry.id}."
    if entry.status is OutboxStatus.DROPPED:
        return NotFoundError(f"{message}: it was dropped from the outbox", hint=f"genba outbox show {entry.id}")
    if entry.status is OutboxStatus.FAILED:
        return UnrecoverableError(f"{message}: {entry.error}", unchanged=stays, hint=f"genba outbox show {entry.id}")
    if result.refused:
        return AccessRefusedError(
            f"{message}: {result.refused}", unchanged=stays, hint="genba doctor, then genba outbox send"
        )
    if in_the_way is not None:
        return StateConflictError(
            f"{message}: entry {in_the_way.id} stands before it, which failed: {in_the_way.error}",
            unchanged=stays,
            hint=f"genba outbox retry {in_the_way.id}, or genba outbox drop {in_the_way.id}",
        )
    return RemoteUnavailable(f"{message}: {result.why or entry.error}", hint="genba outbox send")
