"""A project whose issues live on GitHub: the copy of its tracker, the outbox, the forge, and who is let in there."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from genba.blackboard.fleet.proposals import one_of
from genba.blackboard.fleet.session_ledger import BlackboardLedger
from genba.blackboard.tracker import pull_request_terms
from genba.blackboard.tracker.issue_copy import TrackerBoard
from genba.blackboard.tracker.outbox import Outbox
from genba.connections.clock import SystemClock
from genba.connections.git.merging.merge_target import GitRework, GitTarget
from genba.connections.github.access.credentials import AppCredentials, Credentials, find_credentials, gh_by
from genba.connections.github.access.destinations import destination
from genba.coordination.tracker.outbox_forge import OutboxForge
from genba.coordination.tracker.outbox_sender import Sender
from genba.coordination.tracker.outbox_tracker import OutboxTracker
from genba.coordination.tracker.sync_loop import Follower
from genba.domain.errors import AccessRefusedError, GenbaError, NotFoundError, RecoverableError, StateConflictError
from genba.domain.events import Notice
from genba.domain.sessions.session import Briefing, Died, SessionStart
from genba.domain.tracker.issues import Issue, IssueChange
from genba.judgement.language.sentences import in_language
from genba.judgement.tracking.issue_changes import GITHUB, Known

if TYPE_CHECKING:
    from genba.connections.github.client import GitHubClient
    from genba.connections.github.issues import GitHubIssues
    from genba.connections.github.remote_changes import GitHubChanges
    from genba.coordination.tracker.tracker_sync import Synchronizer
    from genba.definitions.project.tracker_section import GitHubSettings
    from genba.domain.ports import Tracker
    from genba.domain.sessions.workspaces import PullRequest
    from genba.domain.tracker.outbox import DeliveryReceipt, RemoteChange
    from genba.domain.tracker.remote import CardPage, Details, IssuePage, Terms, TrackedIssue, TrackedPullRequest
    from genba.execution.run import RunPlan
    from genba.execution.session_context import SessionContext
    from genba.wiring.project.project_context import ProjectContext

Say = Callable[[str], None]
Unpublished = Callable[[str, str], Awaitable[int]]
"""How many commits of a branch here its remote does not have."""
T = TypeVar("T")
_PATIENCE_SECONDS, _ASK_AGAIN_SECONDS = 10.0, 0.2


class GitHubOffice:
    """All that a project has to do with GitHub. Nothing is asked, and no credentials are looked for, before need."""

    def __init__(self, context: ProjectContext, settings: GitHubSettings) -> None:
        self.context = context
        self.settings = settings
        self.clock = SystemClock()
        self.issues = LazyIssues(self)
        self.changes = LazyChanges(self)
        self._client: GitHubClient | None = None
        self._left: list[GitHubClient] = []
        """Those whose credentials were refused. Somebody may still wait for an answer to one of them."""
        self._credentials: Credentials | None = None

    async def credentials(self) -> Credentials:
        if self._credentials is None:
            environ = dict(os.environ)
            run_gh = gh_by(self.context.processes, environ, self.context.layout.top)
            self._credentials = await find_credentials(self.settings, environ, run_gh)
        return self._credentials

    async def client(self) -> GitHubClient:
        if self._client is None:
            from genba.connections.github.client import GitHubClient  # noqa: PLC0415  (githubkit is slow to import)

            self._client = GitHubClient(self.settings, await self.credentials(), self.clock)
        return self._client

    def start_over(self) -> None:
        """The credentials were refused: whoever asks next looks for them anew, as somebody may have logged in again."""
        self._left += [self._client] if self._client is not None else []
        self._client = self._credentials = None

    async def close(self) -> None:
        """Let go of the connections. Safe to repeat."""
        clients, self._client, self._left = [*self._left, self._client], None, []
        for client in clients:
            if client is not None:
                await client.close()

    # ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def token(self, origin: str) -> str:
        """What git is let in with at an origin. Raises AccessRefusedError where that may get no token."""
        credentials = await self.credentials()
        if not credentials.destination.covers_git(origin):
            destination(origin, os.environ)
        if isinstance(credentials, AppCredentials):
            return await (await self.client()).token()
        return credentials.token

    # ── the copy ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def board(self) -> TrackerBoard:
        return TrackerBoard(self.context.board())

    def synchronizer(self, heard: Say | None = None) -> Synchronizer:
        from genba.coordination.tracker.tracker_sync import Synchronizer  # noqa: PLC0415  (only who looks at GitHub)
        from genba.execution.verification.policy import known_types  # noqa: PLC0415

        known = Known(types=frozenset(known_types(self.context.project.rules)), agents=frozenset(self._agents()))
        return Synchronizer(self.issues, self.context.board(), self.settings, self.clock, known, heard=heard)

    def _agents(self) -> list[str]:
        return list(self.context.registry.folders())

    async def refresh(self, number: int, say: Say) -> None:
        """Read one issue freshly. Where that cannot be, the copy serves, and somebody is told; without one it fails.

        A task of our own has no issue there: nothing is read for it.
        """
        if await asyncio.to_thread(self._is_own, number):
            return
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (error := await self._read(number)) is not None:
            if isinstance(error, StateConflictError) and time.monotonic() < deadline:
                await asyncio.sleep(_ASK_AGAIN_SECONDS)  # somebody reads all of it right now
                continue
            if not await asyncio.to_thread(self._is_copied, number):
                raise error
            say(f"issue #{number} is taken from the copy, as GitHub was not asked: {error.message}")
            return
        # Whoever is let in and answered waits no longer for what went wrong before, such as a token that was replaced.
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
            return await GitTarget(self.context.layout, terms.remote).follow(terms.target) if terms.remote else ""

        return Follower(self.board(), self.synchronizer(), self.sender(), self.settings, say, wake, follow)

    def dress(self, world: SessionContext, plan: RunPlan, alone: bool) -> SessionContext:
        """What a run sees of GitHub. One that is `alone` looks itself; in a fleet somebody looks for all."""
        finalize = plan.definition.file.runner.execution.finalize
        proposes = finalize.create_pr and self.context.project.file.forge is None
        dressed = msgspec.structs.replace(world, follows=proposes)
        if finalize.create_pr:
            dressed = msgspec.structs.replace(dressed, rework=GitRework(self.context.layout, finalize.remote))
        if not alone or plan.issue is None:
            return dressed

        def say(told: str) -> None:
            world.journal.emit(Notice(message=world.redact(told)))

        if proposes:
            dressed = msgspec.structs.replace(dressed, forge=self.forge(plan.run, say))
        tracker = FreshTracker(world.tracker, self, say)
        return msgspec.structs.replace(dressed, tracker=tracker, refresh=partial(self.refresh, say=say))


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


class TrackedLedger(BlackboardLedger):
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


class LazyIssues:
    """The issues of the repository; whoever never asks pays for nothing."""

    def __init__(self, office: GitHubOffice) -> None:
        self.office = office
        self._issues: GitHubIssues | None = None

    async def _ask(self, work: Callable[[GitHubIssues], Awaitable[T]]) -> T:
        from genba.connections.github.issues import GitHubIssues  # noqa: PLC0415  (see client)

        client = await self.office.client()
        if self._issues is None or self._issues.client is not client:
            self._issues = GitHubIssues(client)
        try:
            return await work(self._issues)
        except AccessRefusedError:
            self.office.start_over()
            raise

    async def page(self, *, since: str = "", following: str = "", etag: str = "", label: str = "") -> IssuePage:
        return await self._ask(lambda one: one.page(since=since, following=following, etag=etag, label=label))

    async def details(self, references: Sequence[str]) -> Details:
        return await self._ask(lambda one: one.details(references))

    async def issue(self, number: int) -> Details:
        return await self._ask(lambda one: one.issue(number))

    async def pull_requests(self, numbers: Sequence[int]) -> tuple[TrackedPullRequest, ...]:
        return await self._ask(lambda one: one.pull_requests(numbers))

    async def pull_request_of(self, branch: str) -> TrackedPullRequest | None:
        return await self._ask(lambda one: one.pull_request_of(branch))

    async def cards(self, owner: str, project: int, field: str, following: str = "", since: str = "") -> CardPage:
        return await self._ask(lambda one: one.cards(owner, project, field, following=following, since=since))

    @property
    def spent(self) -> tuple[int, int]:
        return self._issues.spent if self._issues is not None else (0, 0)

    @property
    def notes(self) -> tuple[str, ...]:
        return self._issues.notes if self._issues is not None else ()


class LazyChanges:
    """Carries out changes; whoever has none to carry out needs no credentials."""

    def __init__(self, office: GitHubOffice) -> None:
        self.office = office
        self._changes: GitHubChanges | None = None

    async def _ask(self, work: Callable[[GitHubChanges], Awaitable[T]]) -> T:
        from genba.connections.github.remote_changes import GitHubChanges  # noqa: PLC0415  (see client)

        client = await self.office.client()
        if self._changes is None or self._changes.client is not client:
            self._changes = GitHubChanges(client)
        try:
            return await work(self._changes)
        except AccessRefusedError:
            self.office.start_over()
            raise

    async def find(self, change: RemoteChange, key: str) -> DeliveryReceipt | None:
        return await self._ask(lambda one: one.find(change, key))

    async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
        return await self._ask(lambda one: one.apply(change, key))
