"""One look at the tracker, as a person asks for it: read, then send, until nothing follows from what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from genba.blackboard.tracker import outbox, pull_request_terms
from genba.domain.errors import GenbaError, RateLimited
from genba.domain.tracker.outbox import MergePullRequest, OutboxEntry, OutboxStatus, SendResult
from genba.domain.tracker.remote import PullRequestNews, PullRequestOutcome, SyncResult

if TYPE_CHECKING:
    from genba.application.tracker.github import GitHubOffice, Say
    from genba.domain.tracker.remote import Terms

ReadBack = Callable[[], Awaitable[tuple[PullRequestNews, ...]]]

_ROUNDS = 3
"""What was sent may have merged something, and that may close an issue."""
_PATIENCE_SECONDS = 60.0
_AS_MINUTES = 120.0


class SyncPass(msgspec.Struct, frozen=True, kw_only=True):
    """What one look came to."""

    repository: str
    result: SyncResult
    copied: tuple[int, int] = (0, 0)
    """How many issues the copy has, and how many of them are open."""
    sent: tuple[OutboxEntry, ...] = ()
    failed: tuple[OutboxEntry, ...] = ()
    waiting: tuple[OutboxEntry, ...] = ()
    """What is still to be sent, in its order."""
    until: str = ""
    why: str = ""
    behind: tuple[str, ...] = ()
    """Branches here that stay behind what was merged there, and why."""


async def look(
    office: GitHubOffice,
    *,
    full: bool = False,
    label: str | None = None,
    board: tuple[str, int] | None = None,
    dry_run: bool = False,
    progress: Say | None = None,
) -> SyncPass:
    """Bring the tasks in line with the tracker, then the tracker with the tasks. A dry run only shows both."""
    synchronizer = office.synchronizer(progress)
    store = office.context.board().store
    try:
        if dry_run:
            result = await synchronizer.preview(full)
            return await _with_outbox(office, SyncPass(repository=office.settings.repository, result=result))
        followed = await asyncio.to_thread(store.read, pull_request_terms.every)
        result = await synchronizer.sync(full=full, label=label, board=board)
        found = SyncPass(repository=office.settings.repository, result=result)
        if office.settings.send:
            found = await _send(office, synchronizer.read_back, found)
        found = msgspec.structs.replace(found, behind=await _bring_along(office, followed, found.result.news))
        return await _with_outbox(office, found)
    except RateLimited as error:
        error.hint = error.hint or f"what was read is kept; {_from(error.retry_after)}: genba sync"
        raise
    finally:
        await office.close()


def _from(seconds: float | None) -> str:
    """When it is worth asking again."""
    if not seconds:
        return "later"
    return f"in {seconds:.0f} s" if seconds < _AS_MINUTES else f"in {seconds / 60:.0f} min"


async def _send(office: GitHubOffice, read_back: ReadBack, found: SyncPass) -> SyncPass:
    """Send what there is. After a merge the pull requests are looked at again: its issue may be to be closed."""
    sender = office.sender()
    for _ in range(_ROUNDS):
        turn: SendResult = await sender.send(_PATIENCE_SECONDS)
        found = msgspec.structs.replace(
            found,
            sent=(*found.sent, *turn.sent),
            failed=(*found.failed, *turn.failed),
            until=turn.until,
            why=turn.refused or turn.why,
        )
        if not any(isinstance(entry.change, MergePullRequest) for entry in turn.sent):
            break
        news = await read_back()
        found = msgspec.structs.replace(found, result=msgspec.structs.replace(found.result, news=_newest(found, news)))
    return found


def _newest(found: SyncPass, news: tuple[PullRequestNews, ...]) -> tuple[PullRequestNews, ...]:
    by_number = {one.number: one for one in (*found.result.news, *news)}
    return tuple(by_number.values())


async def _bring_along(
    office: GitHubOffice, followed: tuple[Terms, ...], news: tuple[PullRequestNews, ...]
) -> tuple[str, ...]:
    """The branches here follow what was merged there, as far as nothing of theirs is in the way."""
    merged = {one.task for one in news if one.verdict is PullRequestOutcome.MERGED}
    behind = []
    for remote, target in sorted({(terms.remote, terms.target) for terms in followed if terms.task in merged}):
        try:
            message = await office.context.ports.repository.target(remote).follow(target) if remote else ""
        except GenbaError as error:
            message = error.message
        if message:
            behind.append(f"{target} stays behind here: {message}")
    return tuple(behind)


async def _with_outbox(office: GitHubOffice, found: SyncPass) -> SyncPass:
    store, copy = office.context.board().store, office.board()
    waiting = await asyncio.to_thread(store.read, outbox.pending)
    left = tuple(entry for entry in waiting if entry.status is not OutboxStatus.FAILED)
    refused = tuple(entry for entry in waiting if entry.status is OutboxStatus.FAILED)
    return msgspec.structs.replace(found, waiting=left, failed=refused, copied=await asyncio.to_thread(copy.counts))
