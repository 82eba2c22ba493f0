"""A project whose issues live on GitHub: the copy of its tracker, the outbox, the forge, and who is let in there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from genba.blackboard.fleet.proposals import one_of
from genba.blackboard.fleet.session_ledger import SessionRecorder
from genba.blackboard.tracker import pull_request_terms
from genba.blackboard.tracker.issue_copy import TrackerBoard
from genba.blackboard.tracker.outbox import Outbox
from genba.coordination.tracker.outbox_forge import OutboxForge
from genba.coordination.tracker.outbox_sender import Sender
from genba.coordination.tracker.outbox_tracker import OutboxTracker
from genba.coordination.tracker.sync_loop import Follower
from genba.domain.errors import AccessRefusedError, GenbaError, NotFoundError, RecoverableError, StateConflictError
from genba.domain.sessions.session import Briefing, Died, SessionStart
from genba.domain.tracker.issues import Issue, IssueChange
from genba.judgement.language.sentences import in_language
from genba.judgement.tracking.issue_changes import GITHUB, Known

if TYPE_CHECKING:
    from genba.application.ports import GitHubAccess
    from genba.application.project.project_context import ProjectContext
    from genba.coordination.tracker.tracker_sync import Synchronizer
    from genba.definitions.project.tracker_section import GitHubSettings
    from genba.domain.ports import Tracker
    from genba.domain.sessions.workspaces import PullRequest
    from genba.domain.tracker.remote import Terms, TrackedIssue

Say = Callable[[str], None]
Unpublished = Callable[[str, str], Awaitable[int]]
"""How many commits of a branch here its remote does not have."""
T = TypeVar("T")
_PATIENCE_SECONDS, _ASK_AGAIN_SECONDS = 10.0, 0.2


class GitHubOffice:
    """The tracker of a project whose issues live on GitHub. Nothing is sent before it is needed."""

    def __init__(self, context: ProjectContext, settings: GitHubSettings, github: GitHubAccess) -> None:
        self.context = context
        self.settings = settings
        self.github = github
        self.clock = github.clock
        self.issues = github.issues
        self.changes = github.changes

    async def close(self) -> None:
        """Close the connections. Safe to repeat."""
        await self.github.close()

    # ── the copy ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def board(self) -> TrackerBoard:
        return TrackerBoard(self.context.board())

    def synchronizer(self, progress: Say | None = None) -> Synchronizer:
        from genba.coordination.tracker.tracker_sync import Synchronizer  # noqa: PLC0415  (only who looks at GitHub)
        from genba.execution.verification.policy import known_types  # noqa: PLC0415

        known = Known(types=frozenset(known_types(self.context.project.rules)), agents=frozenset(self._agents()))
        return Synchronizer(self.issues, self.context.board(), self.settings, self.clock, known, progress=progress)

    def _agents(self) -> list[str]:
        return list(self.context.registry.folders())

    async def refresh(self, number: int, say: Say) -> None:
        """Read one issue now. Where GitHub cannot be asked, the copy serves and `say` reports it.

        A task of our own has no issue there: nothing is read for it.
        """
        if await asyncio.to_thread(self._is_own, number):
            return
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (error := await self._read(number)) is not None:
            if isinstance(error, StateConflictError) and time.monotonic() < deadline:
                await asyncio.sleep(_ASK_AGAIN_SECONDS)  # another process reads all issues now
                continue
            if not await asyncio.to_thread(self._is_copied, number):
                raise error
            say(f"issue #{number} is taken from the copy, as GitHub was not asked: {error.message}")
            return
        # GitHub answered: entries no longer wait for an earlier failure, such as a token that was replaced.
        await asyncio.to_thread(self.outbox().unpause)

    async def _read(self, number: int) -> GenbaError | None:
        """Read an issue; what comes back is why GitHub was not asked."""
        try:
            await self.synchronizer().sync_issue(number)
        except (RecoverableError, AccessRefusedError) as error:
            return error
        except StateConflictError as error:
            if not await asyncio.to_thread(self.board().value, _SYNC_LEASE):
                raise
            return error
        return None

    def _is_own(self, number: int) -> bool:
        try:
            return self.context.board().get(number).tracker != GITHUB
        except NotFoundError:
            return False

    def _is_copied(self, number: int) -> bool:
        row = self.board().row(number)
        return row is not None and row.has_task

    # ── the outbox ───────────────────────────────────────────────────────────────────────────────────────────────────

    def outbox(self) -> Outbox:
        return Outbox(self.context.board().store)

    def sender(self) -> Sender:
        return Sender(self.outbox(), self.changes, self.settings, self.clock)

    def tracker(self, run: str = "") -> OutboxTracker:
        return OutboxTracker(self.context.board(), self.sender(), run)

    def forge(self, run: str = "", say: Say | None = None) -> ProposingForge:
        forge = OutboxForge(self.outbox(), self.sender(), run, say=say)
        return ProposingForge(forge, self.board(), self._not_there_yet, say)

    async def _not_there_yet(self, remote: str, target: str) -> int:
        """How many commits of a branch here are not on the remote, as far as is known here: a proposal brings them."""
        there = f"refs/remotes/{remote}/{target}"
        git = self.context.layout.git
        if await git.commit_of(there) is None:
            return 0
        done = await git.run("rev-list", "--count", f"{there}..refs/heads/{target}", "--", allow=(0, 128))
        return int(done.stdout.strip() or 0) if done.returncode == 0 else 0

    def ledger(self) -> TrackedLedger:
        return TrackedLedger(self.board(), self.move_cards, partial(in_language, self.context.project.language))

    async def move_cards(self) -> None:
        """Have the cards of the board follow the tasks now, where the settings name a place for a status."""
        board = self.settings.board
        if board is None or not any(msgspec.structs.astuple(board.statuses)):
            return
        if await asyncio.to_thread(self.synchronizer().reader.move_cards) and self.settings.send:
            await self.sender().send(_PATIENCE_SECONDS)

    def follower(self, say: Say, wake: Callable[[], None]) -> Follower:
        """What keeps a fleet in step with GitHub."""

        async def follow(terms: Terms) -> str:
            return await self.context.ports.repository.target(terms.remote).follow(terms.target) if terms.remote else ""

        return Follower(self.board(), self.synchronizer(), self.sender(), self.settings, say, wake, follow)


_SYNC_LEASE = "lease:sync"
_MOST_PAGES = 20


def _as_issue(one: TrackedIssue) -> Issue:
    return Issue(number=one.number, title=one.title, body=one.body, state=one.state, labels=one.labels)


class FreshTracker:
    """The tracker of one run: what it reads first of its issue is as new as it can be."""

    def __init__(self, tracker: Tracker, office: GitHubOffice, say: Say) -> None:
        self.tracker = tracker
        self.office = office
        self.say = say

    async def read(self, number: int) -> Issue:
        await self.office.refresh(number, self.say)
        return await self.tracker.read(number)

    async def labelled(self, label: str) -> tuple[Issue, ...]:
        """The open issues with a label, whether or not they are tasks; those of the copy, where GitHub is away."""
        found: dict[int, Issue] = {}
        following = ""
        try:
            for _ in range(_MOST_PAGES):
                page = await self.office.issues.page(label=label, following=following)
                found |= {one.number: _as_issue(one) for one in page.issues if not one.closed}
                following = page.following
                if not following:
                    break
        except (RecoverableError, AccessRefusedError):
            return await self.tracker.labelled(label)
        return tuple(found[number] for number in sorted(found))

    async def change(self, number: int, change: IssueChange) -> None:
        await self.tracker.change(number, change)


class ProposingForge:
    """A forge that is followed: what a pull request is held to is on the blackboard before it is open."""

    def __init__(
        self, forge: OutboxForge, board: TrackerBoard, unpublished: Unpublished, say: Say | None = None
    ) -> None:
        self.forge = forge
        self.board = board
        self.unpublished = unpublished
        self.say = say or (lambda _: None)

    async def find(self, branch: str) -> str:
        return await self.forge.find(branch)

    async def open(self, request: PullRequest) -> str:
        terms = request.terms
        if terms is not None:
            await asyncio.to_thread(self.board.store.write, lambda tx: pull_request_terms.keep(tx, terms))
            count = await self.unpublished(terms.remote, request.target) if terms.remote else 0
            if count:
                some = "1 commit" if count == 1 else f"{count} commits"
                self.say(f"the pull request brings {some} of your {request.target} that {terms.remote} does not have")
        return await self.forge.open(request)


class TrackedLedger(SessionRecorder):
    """The blackboard as a run sees it whose task may have come back from its pull request."""

    def __init__(
        self, board: TrackerBoard, moved: Callable[[], Awaitable[None]], words: Callable[[str], str] = str
    ) -> None:
        super().__init__(board.board, words)
        self.tracked = board
        self.moved = moved

    async def begin(self, number: int, session: SessionStart, died: Died | None = None) -> Briefing:
        briefing = await super().begin(number, session, died)
        await self.moved()
        gap = one_of(await asyncio.to_thread(self.tracked.findings, number))
        return msgspec.structs.replace(briefing, gap=gap) if gap is not None else briefing
