"""The few small seams to the outside. Each has a scripted double and a conformance suite in `genba.testing`."""

from typing import Protocol

from genba.domain.events import Event
from genba.domain.evidence import Check, CheckResult, TreeFacts
from genba.domain.issues import Issue, IssueChange
from genba.domain.processes import Command, Exit, Heard
from genba.domain.replies import AgentSession, Ask, InstanceStatus, Reply
from genba.domain.workspaces import MergeResult, Proposal, PullRequest, Removal, Workspace, WorkspaceRequest


class AgentInstance(Protocol):
    """One running process of an agent, as its adapter knows it."""

    @property
    def session(self) -> AgentSession: ...


class AgentAdapter(Protocol):
    """A translator between Genba and one kind of agent."""

    async def start(self, session: AgentSession) -> AgentInstance: ...

    async def execute(self, instance: AgentInstance, ask: Ask, heard: Heard) -> Reply:
        """Put one question. Raises RecoverableError where trying again may help."""
        ...

    async def status(self, instance: AgentInstance) -> InstanceStatus: ...

    async def stop(self, instance: AgentInstance) -> None:
        """End the instance and everything it started. Safe to repeat."""
        ...


class Processes(Protocol):
    """The one place that starts, watches and ends processes."""

    async def run(self, command: Command, heard: Heard) -> Exit: ...

    async def sweep(self, mark: str) -> int:
        """End every living process that carries the mark; say how many there were."""
        ...


class WorkingTrees(Protocol):
    """One issue, one branch, one working tree, one instance."""

    async def open(self, request: WorkspaceRequest) -> Workspace: ...

    async def reopen(self, workspace: Workspace) -> Workspace:
        """Take the workspace of a run that was cut off, with all that is in it."""
        ...

    async def observe(self, workspace: Workspace) -> TreeFacts: ...

    async def commit(self, workspace: Workspace, message: str, author: str) -> None:
        """Commit what the instance changed and left, where its adapter cannot commit itself."""
        ...

    async def close(self, workspace: Workspace) -> Removal:
        """Remove the working tree, only when all of its work is reachable from a kept ref."""
        ...


class Repository(Protocol):
    """The repository as a whole: merging and pushing, without a checkout."""

    async def has_remote(self, remote: str) -> bool: ...

    async def propose(self, workspace: Workspace, message: str) -> Proposal:
        """The merge of a branch into its base, as a commit that nothing points to yet."""
        ...

    async def try_out(self, workspace: Workspace, commit: str, adopt: bool = False) -> str:
        """Bring the working tree to a commit and nothing else; the rest is kept under the rescue ref it returns.

        With `adopt` the branch goes on from that commit; otherwise it stays where it is.
        """
        ...

    async def land(self, workspace: Workspace, proposal: Proposal) -> MergeResult | None:
        """Move the base to a proposal; None when the base moved meanwhile and there must be a new one."""
        ...

    async def push(self, remote: str, branch: str) -> None: ...


class Checks(Protocol):
    """Runs the checks that need the working tree itself."""

    async def run(self, name: str, check: Check, workspace: Workspace, mark: str) -> CheckResult: ...


class Tracker(Protocol):
    """Where issues live."""

    async def read(self, number: int) -> Issue: ...

    async def labelled(self, label: str) -> tuple[Issue, ...]: ...

    async def change(self, number: int, change: IssueChange) -> None:
        """Carry out a change. Safe to repeat."""
        ...


class Forge(Protocol):
    """Where pull requests live."""

    async def find(self, branch: str) -> str:
        """The address of the open pull request of a branch, or an empty string."""
        ...

    async def open(self, request: PullRequest) -> str: ...


class Journal(Protocol):
    """The record of a run, one event per line."""

    def emit(self, event: Event) -> None: ...


class Clock(Protocol):
    def elapsed(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None: ...
