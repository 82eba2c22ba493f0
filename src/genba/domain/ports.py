"""The few small seams to the outside. Each has a scripted double and a conformance suite in `genba.testing`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from genba.domain.events import Event
from genba.domain.processes import Command, Exit, OutputListener
from genba.domain.sessions.evidence import Check, CheckResult, TreeFacts
from genba.domain.sessions.replies import AgentSession, Ask, InstanceStatus, Reply
from genba.domain.sessions.workspaces import MergeResult, Proposal, PullRequest, Removal, Workspace, WorkspaceRequest
from genba.domain.tracker.issues import Issue, IssueChange

if TYPE_CHECKING:  # a run without a task and without goals never pays for their types
    from genba.domain.fleet.merge_queue import MergeHistory, Stacked, UpdatedBranch, Work
    from genba.domain.fleet.notifications import Notification
    from genba.domain.fleet.records import MergeEntry, Review
    from genba.domain.goals.goal import Goal
    from genba.domain.goals.verification import BranchFacts, Kept, Place, Verification
    from genba.domain.sessions.sandbox import SandboxSpec
    from genba.domain.sessions.session import Briefing, Died, SessionEnd, SessionStart
    from genba.domain.tasks.task import StatusChange, Task
    from genba.domain.tracker.outbox import DeliveryReceipt, RemoteChange
    from genba.domain.tracker.remote import CardPage, Details, IssuePage, TrackedPullRequest
    from genba.domain.workflow.actions import Message, SessionResult


T = TypeVar("T")


class Steps(Protocol):
    """The steps of a run. A plain run just does them; a durable one remembers what each came to."""

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        """Do the work, or return what it came to before the process died. The work is safe to repeat.

        `kind` is what it comes to: a type that msgspec can write as JSON and read again.
        """
        ...


class AgentInstance(Protocol):
    """One running process of an agent, as its adapter knows it."""

    @property
    def session(self) -> AgentSession: ...


class AgentAdapter(Protocol):
    """A translator between Genba and one kind of agent."""

    async def start(self, session: AgentSession) -> AgentInstance: ...

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        """Put one question. Raises RecoverableError where trying again may help."""
        ...

    async def status(self, instance: AgentInstance) -> InstanceStatus: ...

    async def stop(self, instance: AgentInstance) -> None:
        """End the instance and everything it started. Safe to repeat."""
        ...


class Processes(Protocol):
    """The one place that starts, watches and ends processes."""

    async def run(self, command: Command, on_output: OutputListener) -> Exit: ...

    async def sweep(self, mark: str) -> int:
        """End every living process that carries the mark; say how many there were."""
        ...


class SandboxHandle(Protocol):
    """Processes inside one sandbox. What runs there reaches what its spec names, and nothing else."""

    @property
    def ports(self) -> Mapping[str, int]:
        """The port on the loopback inside, by the name of its egress port."""
        ...

    async def run(self, command: Command, on_output: OutputListener) -> Exit: ...

    async def sweep(self, mark: str) -> int:
        """End every living process that carries the mark; say how many there were."""
        ...

    async def close(self) -> None:
        """Close the egress ports, and end whatever still runs. Safe to repeat."""
        ...


class Sandbox(Protocol):
    """One kind of sandbox."""

    def problem(self) -> str:
        """Why this kind cannot be used on this machine; empty when it can."""
        ...

    async def open(self, spec: SandboxSpec) -> SandboxHandle: ...


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

    async def left_elsewhere(self, email: str, workspace: Workspace) -> tuple[str, ...]:
        """Other branches on which this author left commits that have not arrived on the base."""
        ...


class Target(Protocol):
    """The branches that work lands on. Nothing here needs a checkout, and every call is safe to repeat."""

    async def tip(self, target: str) -> str | None:
        """The commit of a target, as everybody sees it; None where there is no such branch."""
        ...

    async def tip_of(self, entry: MergeEntry) -> str | None:
        """The commit that the branch of an entry is on, brought here first where another host has it.

        Raises StateConflictError where only the host that made it can have it.
        """
        ...

    async def stack(self, base: str, works: Sequence[Work], history: MergeHistory) -> tuple[Stacked, ...]:
        """Put each work on top of the one before it. What does not fit is left out, and the rest goes on."""
        ...

    async def land(self, target: str, old: str, new: str, keep: Sequence[Work] = ()) -> MergeResult | None:
        """Move the target from one commit to another; None when it is no longer where it was.

        `keep` are works whose own commits are not behind the new one: they stay reachable under a ref.
        """
        ...

    async def landed(self, target: str, work: Work, history: MergeHistory) -> str:
        """The commit with which a work came onto the target; nothing where it did not."""
        ...


class Rework(Protocol):
    """Work that comes back from its target to its author."""

    async def adopt(self, workspace: Workspace, over: str, message: str) -> UpdatedBranch:
        """Merge a commit of the target into the branch, and bring the working tree along. Safe to repeat.

        What is in conflict gets markers. The caller has reopened the workspace.
        """
        ...

    async def tip(self, branch: str) -> str:
        """The commit of a branch on the remote, which is here afterwards; nothing where there is none."""
        ...

    async def markers_left(self, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of the paths in which a commit still has the markers of a conflict."""
        ...


class Checks(Protocol):
    """Runs the checks that need the working tree itself."""

    async def run(self, name: str, check: Check, workspace: Workspace, mark: str) -> CheckResult: ...


class History(Protocol):
    """What git shows of commits and files, without a checkout."""

    async def commit_of(self, name: str) -> str | None:
        """The commit that a branch, a tag or a hash names."""
        ...

    async def fork_point(self, base: str, commit: str) -> str | None:
        """The newest commit that both have in common."""
        ...

    async def facts(self, base: str, commit: str) -> BranchFacts: ...

    async def files(self, commit: str) -> tuple[str, ...]:
        """Every file of a commit."""
        ...

    async def read(self, names: tuple[str, ...]) -> dict[str, str]:
        """The text of each `blob` or `commit:path`; what is not there, or is no text, is left out."""
        ...


class Checkouts(Protocol):
    """Clean checkouts to verify in: no agent has ever seen one of them."""

    async def open(self, commit: str, over: tuple[tuple[str, str], ...] = (), sandboxed: bool = True) -> str:
        """A folder for the files of a commit; `over` lays other blobs over it, as (path, blob).

        Without `sandboxed` nothing is mounted for what runs there. Nothing runs before the first `renew`.
        """
        ...

    async def renew(self, folder: str, setup: bool = False, kept: Kept | None = None) -> None:
        """Give the folder, its HOME and its temporary folder a new content: the commit, and what a setup made.

        Nothing that ran there before can be seen. With `setup` the setup is what runs next. In a sandbox what runs
        next cannot write what is `kept`.
        """
        ...

    async def changed(self, folder: str) -> tuple[str, ...]:
        """Which of the kept files differ from the commit, after what ran since the last `renew`."""
        ...

    async def keep(self, folder: str) -> None:
        """What the setup made, that ran since the last `renew`, is seen after every further one, under the commit."""
        ...

    async def close(self, folder: str) -> None: ...


class GoalRunner(Protocol):
    """Runs the goals that need more than what git shows."""

    async def run(self, goal: Goal, place: Place, mark: str) -> CheckResult: ...


class ResultStore(Protocol):
    """Results of goals by what they depend on, and their logs."""

    def find(self, key: str) -> CheckResult | None: ...

    def keep(self, key: str, result: CheckResult, reusable: bool) -> str:
        """Keep a result and its whole output; returns the name of the log."""
        ...

    def log(self, name: str) -> str: ...


class TaskLedger(Protocol):
    """The blackboard, as one run sees it: its task, and nothing else."""

    async def look(self, number: int) -> Task: ...

    async def begin(self, number: int, session: SessionStart, died: Died | None = None) -> Briefing:
        """Claim the task for a run: open → in_progress. Safe to repeat for the same run.

        A task that another run has claimed is taken over only if `died` says so of that run; without it, all are dead.
        """
        ...

    async def record(self, number: int, run: str, verification: Verification) -> None:
        """Write down artifacts, goals and results."""
        ...

    async def move(self, number: int, change: StatusChange) -> Task: ...

    async def ask_review(self, number: int, commit: str, run: str, rounds: int) -> Review:
        """Create the review task of a verified commit; where a person reviews, also the decision. Safe to repeat.

        After `rounds` requests for changes a person decides.
        """
        ...

    async def end(self, session: SessionEnd) -> None: ...


class Inbox(Protocol):
    """What agents say to each other, as one run sees it."""

    async def open(self, run: str) -> tuple[Message, ...]:
        """Every unresolved message to the task of the run, oldest first."""
        ...

    async def deliver(self, run: str, last: int) -> None:
        """Everything up to this message has reached the agent. Safe to repeat."""
        ...


class Workflow(Protocol):
    """The blackboard, as a run sees it whose agent asks what is next."""

    async def credential(self, run: str) -> str:
        """A new secret, good for one authentication of an instance of this run; an older one is good no more."""
        ...

    async def standing(self, run: str) -> SessionResult:
        """How far the run has come by what its instance did, not by what it claims."""
        ...

    async def leave(self, run: str, why: str) -> None:
        """The instance has ended: no agent speaks for this run any more. Safe to repeat."""
        ...


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

    async def open(self, request: PullRequest) -> str:
        """Open it, or bring the open one of the same branch up to date; its address. Safe to repeat."""
        ...


class RemoteIssues(Protocol):
    """The issues of a repository on a tracker, for who keeps a copy of them. It only looks.

    Every call raises RateLimited with the time of the next request, RecoverableError where trying again may help,
    and AccessRefusedError where the credentials are not good (any more).
    """

    async def page(self, *, since: str = "", following: str = "", etag: str = "", label: str = "") -> IssuePage:
        """The issues that changed since a time, open and closed, oldest change first; `following` goes on."""
        ...

    async def details(self, references: Sequence[str]) -> Details:
        """Everything about these issues, and about their pull requests. At most 50 of them."""
        ...

    async def issue(self, number: int) -> Details:
        """Everything about one issue; NotFoundError where there is none, or where the number is a pull request."""
        ...

    async def pull_requests(self, numbers: Sequence[int]) -> tuple[TrackedPullRequest, ...]:
        """These pull requests as they are now; those that are not there are left out. At most 50 of them."""
        ...

    async def pull_request_of(self, branch: str) -> TrackedPullRequest | None:
        """The newest pull request of a branch of the repository itself."""
        ...

    async def cards(self, owner: str, project: int, field: str, following: str = "", since: str = "") -> CardPage:
        """The cards of a board that belong to issues of this repository, with their status.

        With `since` those that did not change since that day may be left out.
        """
        ...

    @property
    def spent(self) -> tuple[int, int]:
        """REST requests and GraphQL points that this object has spent."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts about the tracker itself that a person should know: that it goes by another name now."""
        ...


class RemoteChanges(Protocol):
    """Carries out changes on the outside, and can look whether one was carried out already."""

    async def find(self, change: RemoteChange, key: str) -> DeliveryReceipt | None:
        """What the change left, if it was carried out already, by whomever; None when it is still to do. Only looks."""
        ...

    async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
        """Send it, once. Never sends again by itself what is not safe to repeat.

        Raises RateLimited or RecoverableError where it may be tried again (after a look), AccessRefusedError where the
        credentials are not good, UnrecoverableError where the other side refuses.
        """
        ...


class Channel(Protocol):
    """A way to tell a person that something waits for them."""

    async def send(self, notice: Notification) -> None:
        """Send it. It may have been sent before: the key of the notice says so.

        Raises RateLimited or RecoverableError where it may be tried again, UnrecoverableError where that is no use.
        """
        ...


class Journal(Protocol):
    """The record of a run, one event per line."""

    def emit(self, event: Event) -> None: ...

    def room(self) -> int:
        """How many bytes of output the next question may add."""
        ...


class Clock(Protocol):
    def elapsed(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None: ...
