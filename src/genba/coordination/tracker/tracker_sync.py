"""Keeps the copy of a tracker: reads what changed there, and brings the tasks in line with it.

Law: every page is written with the position of the reader. A sync that dies, or meets a rate limit,
goes on from there. One sync at a time for a project.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from genba.blackboard.database.sanitize import now as time_of_day
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.issue_copy import TrackedRow, TrackerBoard, card_of, refuse_own_numbers
from genba.coordination.engine.lease_owners import lives, one_here
from genba.coordination.tracker.pull_request_sync import Reader
from genba.coordination.tracker.task_sync import Applied, Copier, rows_that_fit
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError, RemoteUnavailable, StateConflictError
from genba.domain.ports import Clock, RemoteIssues
from genba.domain.tasks.task import Task
from genba.domain.timestamps import hours_between, later
from genba.domain.tracker.remote import (
    BoardItem,
    IssuePage,
    PullRequestNews,
    SyncResult,
    TrackedIssue,
)
from genba.judgement.tracking.issue_changes import Known, Wanted, owner_of

LEASE = "lease:sync"
_LEASE_SECONDS = 120.0
_OVERLAP_SECONDS = 120.0
"""Lists of a large tracker lag behind: what is as new as this is looked at twice."""
_COUNTED_AFTER = (4, 16, 64, 256)
"""After so many batches PostgreSQL refreshes its statistics."""
_QUIET_SECONDS = 900.0
"""What is as old as this has arrived in every list."""
_BATCH = 50
_MOST_PAGES = 5_000
_FEW = 5
"""So many issues of the same second may be read twice for a list that no change can shift."""
_DAY = 86_400.0

Progress = Callable[[str], None]
"""Gets progress messages."""


class _Cursor(msgspec.Struct, frozen=True):
    """Where the reading of the list is."""

    since: str = ""
    following: str = ""

    def after(self, page: IssuePage) -> "_Cursor":
        """Behind this page: by the time of its newest change, which no change can shift.

        Where many issues share that second, the tracker's own next page is cheaper, and the only way on.
        """
        same = sum(issue.updated_at == page.newest for issue in page.issues)
        if page.newest > self.since and same <= _FEW:
            return _Cursor(page.newest)
        return _Cursor(self.since, page.following)


class _Full(msgspec.Struct, frozen=True, kw_only=True):
    """A full look that is under way."""

    id: str
    cursor: _Cursor = _Cursor()
    listed: bool = False
    began_at: str = ""


class SyncInProgressError(StateConflictError):
    """Another process syncs this project."""


class Synchronizer:
    """Reads a tracker into the blackboard, and what became of pull requests back into their tasks."""

    def __init__(
        self,
        remote: RemoteIssues,
        board: Blackboard,
        settings: GitHubSettings,
        clock: Clock,
        known: Known | None = None,
        *,
        now: Callable[[], str] = time_of_day,
        progress: Progress | None = None,
    ) -> None:
        self.remote = remote
        self.board = TrackerBoard(board)
        self.settings = settings
        self.clock = clock
        self.now = now
        self.wanted = Wanted.by(settings)
        self.owner = one_here()
        self.reader = Reader(remote, self.board, settings, clock)
        self.copier = Copier(self.board, settings, known or Known(), self.wanted, self.reader.settle_merged)
        self._progress = progress or (lambda _: None)
        self._issues: set[int] = set()
        self._renewed = float("-inf")

    async def sync(
        self,
        full: bool = False,
        label: str | None = None,
        board: tuple[str, int] | None = None,
        read_back: bool = True,
    ) -> SyncResult:
        """Look at everything that changed, or at everything. With a label or a board, take these issues as well."""
        began = self.remote.spent
        async with self._alone():
            await asyncio.to_thread(self.board.join, self.settings.repository)
            self._issues = set()
            is_full = await self._list(full)
            # Before the issues: one that a merge has closed is done by that merge.
            news = await self.reader.read_back() if read_back else ()
            await self._notice_cards(is_full)
            applied = await self._read_stale()
            if is_full:
                applied += await self._find_gone()
            if label is not None or board is not None:
                applied += await self._take(self._asked_for(label, board))
            applied += await self._relate()
            await asyncio.to_thread(self.reader.move_cards)
        return self._result(is_full, applied, news, began)

    async def sync_issue(self, number: int) -> Task:
        """Read one issue freshly, as a person asks for it: its task, as it is now."""
        await asyncio.to_thread(self.board.join, self.settings.repository)
        await asyncio.to_thread(self.board.store.read, lambda tx: refuse_own_numbers(tx, [number]))
        try:
            details = await self.remote.issue(number)
        except NotFoundError:
            # It may only be hidden: the next sync, which has seen the list, tells what became of it.
            await asyncio.to_thread(self.board.mark_stale, [number])
            raise
        issue = next((one for one in details.issues if one.number == number), None)
        if issue is not None:
            await asyncio.to_thread(self._refuse_outsider, issue)
        applied = await asyncio.to_thread(self.copier.act_on, details, True)
        if not applied.empty or (issue is not None and (issue.blocked_by or issue.parent is not None)):
            await asyncio.to_thread(self.copier.relate)
        return await asyncio.to_thread(self.board.board.get, number)

    async def read_back(self) -> tuple[PullRequestNews, ...]:
        """Look at the pull requests of tasks alone."""
        async with self._alone():
            news = await self.reader.read_back()
            await asyncio.to_thread(self.reader.move_cards)
            return news

    async def preview(self, full: bool = False) -> SyncResult:
        """What a sync would do to tasks, and change nothing."""
        began = self.remote.spent
        changed, gone = await self._changed_since(full)
        parts = []
        for at in range(0, len(changed), _BATCH):
            details = await self.remote.details([issue.reference for issue in changed[at : at + _BATCH]])
            parts.append(await asyncio.to_thread(self.copier.foresee, details))
        parts.append(Applied(gone=tuple(gone)))
        self._issues = {issue.number for issue in changed}
        news = await self.reader.foresee()
        return self._result(full, sum(parts, Applied()), news, began)

    # ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _list(self, full: bool) -> bool:
        """Read the list of issues, from where it was left; whether it was read from its beginning."""
        await asyncio.to_thread(self._notice_settings)
        under_way = await asyncio.to_thread(self._under_way, full)
        if under_way is None:
            await self._list_changes()
            return False
        while not under_way.listed:
            page = await self.remote.page(since=under_way.cursor.since, following=under_way.cursor.following)
            under_way = msgspec.structs.replace(
                under_way, cursor=under_way.cursor.after(page), listed=not page.following
            )
            values = {"full": msgspec.json.encode(under_way).decode()}
            values |= {"since": page.newest} if page.newest else {}
            await self._keep(page, values, under_way.id)
        return True

    def _under_way(self, full: bool) -> _Full | None:
        """The full look to go on with, if there is one or one is due."""
        text = self.board.value("full")
        if text:
            return reader(_Full).decode(text)
        last = self.board.value("full_at")
        # A time that lies far ahead was written by a clock that was wrong.
        due = not last or abs(hours_between(last, self.now())) >= self.settings.full_sync_hours
        return _Full(id=secrets.token_hex(6), began_at=self.now()) if full or due else None

    async def _list_changes(self) -> None:
        """Read what changed since the last sync. Without changes it costs one request that returns 304."""
        since, kept = await asyncio.to_thread(lambda: (self.board.value("since"), self.board.value("etag")))
        start = self._start(since)
        for_start, _, etag = kept.partition(" ")
        cursor = _Cursor(start)
        page = await self.remote.page(since=start, etag=etag if for_start == start else "")
        if page.unchanged:
            return
        newest = since
        while True:
            newest = max(newest, page.newest)
            values = {"since": newest}
            if cursor == _Cursor(start):
                values["etag"] = f"{start} {page.etag}" if page.etag and not page.following else ""
            await self._keep(page, values)
            if not page.following:
                return
            cursor = cursor.after(page)
            page = await self.remote.page(since=cursor.since, following=cursor.following)

    def _start(self, since: str) -> str:
        """From when on to read the list: a little before the newest that was seen, unless that was long ago."""
        if not since or hours_between(since, self.now()) * 3600 > _QUIET_SECONDS:
            return since
        return _seconds(later(since, -_OVERLAP_SECONDS))

    async def _keep(self, page: IssuePage, values: dict[str, str], seen_in: str = "") -> None:
        self._issues |= {issue.number for issue in page.issues}
        by_label = Wanted(label=self.wanted.label)
        await asyncio.to_thread(
            self.board.keep_page, page, lambda issue: not issue.closed and by_label.takes(issue), values, seen_in
        )
        self._progress(f"{len(self._issues)} issues listed")
        await self._still_alone()

    def _notice_settings(self) -> None:
        """Where the settings name another field than before, the copy is looked at again by them."""
        field = f"{self.wanted.label}\n{self.wanted.owner}/{self.wanted.project}"
        known = self.board.value("field")
        if known == field:
            return
        if known:
            by_label = Wanted(label=self.wanted.label)
            wanted = [row.number for row in self.board.every() if row.has_task or _is_open(row, by_label)]
            self.board.mark_stale(wanted)
        self.board.set_values({"field": field})

    # ── details ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read_stale(self) -> Applied:
        parts: list[Applied] = []
        after = 0
        while rows := await asyncio.to_thread(self.board.stale, _BATCH, after):
            if not parts:
                await asyncio.to_thread(self.board.set_values, {"relate": "yes"})
            after = rows[-1].number
            parts.append(await self._read(rows))
            if len(parts) in _COUNTED_AFTER:
                await asyncio.to_thread(self.board.analyze_tables)
            self._progress(f"{sum(len(one.added) for one in parts)} tasks added, at #{after}")
        return _all(parts)

    async def _read(self, rows: list[TrackedRow], asked: bool = False) -> Applied:
        details = await self.remote.details([row.reference for row in rows])
        applied = await asyncio.to_thread(self.copier.act_on, details, asked)
        await self._still_alone()
        return applied

    async def _find_gone(self) -> Applied:
        """What the full look did not come by is looked for by itself; then the full look has ended."""
        under_way = await asyncio.to_thread(self._under_way, True)
        if under_way is None:
            return Applied()
        parts: list[Applied] = []
        after = 0
        while rows := await asyncio.to_thread(self.board.unseen, under_way.id, _BATCH, after):
            after = rows[-1].number
            parts.append(await self._read(rows))
        await asyncio.to_thread(self.board.set_values, {"full": "", "full_at": under_way.began_at})
        return _all(parts)

    async def _take(self, asked: Wanted) -> Applied:
        """Issues that a person chose become tasks; none leaves the field by that."""
        rows = rows_that_fit(await asyncio.to_thread(self.board.every), asked)
        if asked.project is not None:
            on_board = await self._cards(asked.owner, asked.project)
            rows = [row for row in rows if row.number in on_board]
        by_label = Wanted(label=asked.label)
        parts = []
        for at in range(0, len(rows), _BATCH):
            details = await self.remote.details([row.reference for row in rows[at : at + _BATCH]])
            chosen = tuple(issue for issue in details.issues if by_label.takes(issue))
            fitting = msgspec.structs.replace(details, issues=chosen)
            parts.append(await asyncio.to_thread(self.copier.act_on, fitting, True))
        if parts:
            await asyncio.to_thread(self.board.set_values, {"relate": "yes"})
        return _all(parts)

    def _asked_for(self, label: str | None, board: tuple[str, int] | None) -> Wanted:
        owner, project = board if board is not None else ("", None)
        return Wanted(label=label or "", owner=owner or owner_of(self.settings), project=project)

    async def _notice_cards(self, full: bool) -> None:
        """Moving a card does not change its issue, so the board is asked for what was moved."""
        if self.wanted.project is None or self.settings.board is None:
            return
        since = "" if full else await asyncio.to_thread(self.board.value, "cards_since")
        on_board = await self._cards(self.wanted.owner, self.wanted.project, since)
        moved = await asyncio.to_thread(self._moved, on_board, complete=not since)
        await asyncio.to_thread(self.board.mark_stale, moved)
        await asyncio.to_thread(self.board.set_values, {"cards_since": later(self.now(), -_DAY)[:10]})

    async def _cards(self, owner: str, project: int, since: str = "") -> dict[int, BoardItem]:
        """By issue: its card on a board. With a day, those without changes since then may be missing."""
        field = self.settings.board.field if self.settings.board is not None else "Status"
        found: dict[int, BoardItem] = {}
        following = ""
        seen: set[str] = set()
        while following not in seen and len(seen) < _MOST_PAGES:
            seen.add(following)
            page = await self.remote.cards(owner, project, field, following=following, since=since)
            found |= dict(page.cards)
            following = page.following
            if not following:
                return found
        raise RemoteUnavailable(f"the cards of project {project} of {owner} have no end")

    def _moved(self, on_board: dict[int, BoardItem], complete: bool) -> list[int]:
        """The issues of the copy that lie elsewhere on the board than the copy says, or not on it any more."""
        rows = self.board.every() if complete else [row for n in on_board if (row := self.board.row(n)) is not None]
        moved = []
        for row in rows:
            known = card_of(row.issue, self.wanted.owner, self.wanted.project or 0)
            card = on_board.get(row.number)
            if (known is None) != (card is None) or (known and card and known.status != card.status):
                moved.append(row.number)
        return moved

    async def _relate(self) -> Applied:
        if not await asyncio.to_thread(self.board.value, "relate"):
            return Applied()
        applied = await asyncio.to_thread(self.copier.relate)
        # What could not be put in its place now is tried again with the next look.
        await asyncio.to_thread(self.board.set_values, {"relate": "yes" if applied.notes else ""})
        return applied

    def _refuse_outsider(self, issue: TrackedIssue) -> None:
        row = self.board.row(issue.number)
        if row is not None and row.has_task:
            return
        if issue.closed:
            raise StateConflictError(
                f"issue #{issue.number} is closed",
                unchanged="nothing was changed.",
                hint=f"reopen it on GitHub: {issue.url}" if issue.url else "reopen it on GitHub",
            )
        lacks = self.wanted.lacks(issue)
        if lacks:
            raise StateConflictError(
                f"issue #{issue.number} is not in the field: {lacks}",
                unchanged="nothing was changed.",
                hint=f"put it there on GitHub, then: genba sync --issue {issue.number}",
            )

    # ── a look that changes nothing ──────────────────────────────────────────────────────────────────────────────────

    async def _changed_since(self, full: bool) -> tuple[list[TrackedIssue], list[int]]:
        rows = {row.number: row for row in await asyncio.to_thread(self.board.every)}
        since = "" if full else await asyncio.to_thread(self.board.value, "since")
        cursor, found, seen = _Cursor(self._start(since)), {}, set()
        by_label = Wanted(label=self.wanted.label)
        while True:
            page = await self.remote.page(since=cursor.since, following=cursor.following)
            for issue in page.issues:
                seen.add(issue.number)
                row = rows.get(issue.number)
                stale = row is None or row.updated_at != issue.updated_at or row.stale
                if stale and ((row is not None and row.has_task) or (not issue.closed and by_label.takes(issue))):
                    found[issue.number] = issue
            if not page.following:
                break
            cursor = cursor.after(page)
        return list(found.values()), [number for number in rows if not since and number not in seen]

    # ── alone ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        await self._take_lease()
        try:
            yield
        finally:
            self._renewed = float("-inf")
            await asyncio.shield(asyncio.to_thread(self.board.release, LEASE, self.owner))

    async def _take_lease(self) -> None:
        holder = await asyncio.to_thread(self.board.take_lease, LEASE, self.owner, _LEASE_SECONDS)
        if holder and lives(holder) is False:
            holder = await asyncio.to_thread(self.board.take_lease, LEASE, self.owner, _LEASE_SECONDS, holder)
        if holder:
            raise SyncInProgressError(
                f"another sync of this project is under way: process {holder.split('/')[-2:][0]}",
                unchanged="nothing was changed.",
                hint="wait for it, then: genba sync",
            )
        self._renewed = self.clock.elapsed()

    async def _still_alone(self) -> None:
        """Say from time to time that this sync is alive."""
        if self.clock.elapsed() - self._renewed > _LEASE_SECONDS / 4:
            await self._take_lease()

    def _result(
        self, full: bool, applied: Applied, news: tuple[PullRequestNews, ...], began: tuple[int, int]
    ) -> SyncResult:
        requests, points = self.remote.spent
        added = tuple(dict.fromkeys(applied.added))
        return SyncResult(
            full=full,
            issues=len(self._issues),
            added=added,
            changed=tuple(number for number in dict.fromkeys(applied.changed) if number not in set(added)),
            closed=tuple(dict.fromkeys(applied.closed)),
            reopened=tuple(dict.fromkeys(applied.reopened)),
            gone=tuple(dict.fromkeys(applied.gone)),
            pull_requests=tuple(dict.fromkeys(one.number for one in news)),
            news=news,
            requests=requests - began[0],
            points=points - began[1],
            notes=tuple(dict.fromkeys((*applied.notes, *self.remote.notes))),
        )


def _is_open(row: TrackedRow, wanted: Wanted) -> bool:
    return not row.issue.closed and wanted.takes(row.issue)


def _all(parts: list[Applied]) -> Applied:
    return Applied(
        **{name: tuple(one for part in parts for one in getattr(part, name)) for name in Applied.__struct_fields__}
    )


def _seconds(text: str) -> str:
    """A time as the tracker writes it: to the second."""
    return f"{text[:19]}Z" if text else ""
