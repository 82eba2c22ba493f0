"""What a session works with, as groups of ports and settings. Constructed complete; nothing changes it afterwards.

`SessionContext` is a session of its own, `FleetSessionContext` one that an executor of a fleet carries out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from genba.domain.ports import (
    AgentAdapter,
    Checks,
    Clock,
    Forge,
    Inbox,
    Journal,
    Processes,
    Repository,
    Rework,
    Steps,
    Tracker,
    WorkingTrees,
)
from genba.domain.sessions.evidence import CheckResult
from genba.domain.sessions.replies import AgentSession
from genba.domain.sessions.workspaces import Workspace
from genba.execution.loop.journal_steps import PlainSteps
from genba.judgement.loop.completion import CompletionHandler, SchemaFit

if TYPE_CHECKING:
    from genba.execution.delivery.finalize import Finalized
    from genba.execution.delivery.task_updates import TaskContext
    from genba.execution.loop.state_driven import WorkflowContext
    from genba.execution.verification.session_verification import VerificationContext

ActionHandler = Callable[[dict[str, Any]], object]
OpenEnvironment = Callable[[Workspace], AbstractAsyncContextManager[AgentSession]]


class SandboxSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The sandbox of a session, as its journal and its result show it."""

    kind: str = ""
    network: str = ""
    missing: str = ""
    """Why there is none although a sandbox was the default."""


class AgentContext(msgspec.Struct, frozen=True, kw_only=True):
    """The agent of a session, and the environment that it runs in."""

    adapter: AgentAdapter
    open_environment: OpenEnvironment
    processes: Processes
    completion_handlers: Mapping[str, CompletionHandler]
    action_handlers: Mapping[str, ActionHandler]
    fits_schema: SchemaFit
    jitter: Callable[[], float]
    """A number in [0, 1) that spreads the retries of many workers."""
    commits_for_it: bool = False
    """True when Genba commits what the agent left in its worktree."""
    sandbox: SandboxSummary = SandboxSummary()


class GitContext(msgspec.Struct, frozen=True, kw_only=True):
    """The worktree and the repository."""

    trees: WorkingTrees
    repository: Repository
    checks: Checks
    rework: Rework | None = None
    """Merges what happened on the base into work that came back from it."""


class TrackerContext(msgspec.Struct, frozen=True, kw_only=True):
    """The issue, and the forge of its pull request."""

    tracker: Tracker
    forge: Forge | None = None
    follows_pull_requests: bool = False
    """True when reviews and merges of pull requests are read back from the forge."""
    refresh: Callable[[int], Awaitable[None]] | None = None
    """Reads an issue from the tracker now; None where an executor keeps the copy up to date."""


class AnswerContext(msgspec.Struct, frozen=True, kw_only=True):
    """For a session whose structured output is its work, such as a plan or a review."""

    problem: Callable[[dict[str, Any] | None], CheckResult | None]
    """Returns what is wrong with an output; None when it can be used."""
    deliver: Callable[[dict[str, Any] | None, Workspace], Awaitable[Finalized]] | None = None
    """Delivers the output. Safe to repeat. None: the fleet reads it from the result."""


class SharedSession(Protocol):
    """What other hosts see of a session."""

    async def share(self, workspace: Workspace) -> None:
        """Push the commits of the session. A failure is noted, and stops nothing."""
        ...

    async def hand_over(self, workspace: Workspace) -> None:
        """Push work that another host may merge, before it is in the queue."""
        ...


class LocalSession:
    """A session that only this machine sees."""

    async def share(self, workspace: Workspace) -> None:
        pass

    async def hand_over(self, workspace: Workspace) -> None:
        pass


class SessionContext(msgspec.Struct, frozen=True, kw_only=True):
    """A session of its own: its journal alone remembers it, and it merges its work itself."""

    agent: AgentContext
    git: GitContext
    tracker: TrackerContext
    journal: Journal
    clock: Clock
    redact: Callable[[str], str]
    """Hides secrets in a text that leaves the session."""
    task: TaskContext | None = None
    """None for a session that does not work on a task of the blackboard."""
    verification: VerificationContext | None = None
    """None when neither a task nor the settings ask for a verification."""
    answer: AnswerContext | None = None
    inbox: Inbox | None = None
    """Messages of other agents about the task."""

    @property
    def steps(self) -> Steps:
        """Remembers how far the session is, besides its journal."""
        return PlainSteps()

    @property
    def resumes_elsewhere(self) -> bool:
        """True when another process goes on with the session after this one stops."""
        return False

    @property
    def uses_merge_queue(self) -> bool:
        """True when verified work is merged by the queue, not by the session."""
        return False

    @property
    def sharing(self) -> SharedSession:
        return LocalSession()

    @property
    def workflow(self) -> WorkflowContext | None:
        """For agents that ask for their next action."""
        return None


class FleetContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the executor of a fleet adds to a session."""

    steps: Steps
    uses_merge_queue: bool
    sharing: SharedSession = LocalSession()
    workflow: WorkflowContext | None = None


class FleetSessionContext(SessionContext, frozen=True, kw_only=True):
    """A session of a fleet: its steps are durable, and another process goes on with it."""

    fleet: FleetContext

    @property
    def steps(self) -> Steps:
        return self.fleet.steps

    @property
    def resumes_elsewhere(self) -> bool:
        return True

    @property
    def uses_merge_queue(self) -> bool:
        return self.fleet.uses_merge_queue

    @property
    def sharing(self) -> SharedSession:
        return self.fleet.sharing

    @property
    def workflow(self) -> WorkflowContext | None:
        return self.fleet.workflow
