"""What the orchestrator may do next. A move is decided here, and carried out by `coordination` in one transaction.

Every action is safe to decide again. A death before it is carried out loses nothing: the next pass over the
field comes to the same move.
"""

from enum import StrEnum

import msgspec

from genba.domain.fleet.records import Cause, Escalation, Purpose, Resources
from genba.domain.sessions.loop_state import Feedback
from genba.domain.tasks.task import Blocker


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that can be started here."""

    name: str
    capabilities: tuple[str, ...] = ()
    provider: str = ""
    manages: bool = False
    """Whether it has others carry out the parts of its task, rather than work itself."""


class WorkerContext(msgspec.Struct, frozen=True, kw_only=True):
    """The executor that decides, and what it has."""

    executor: str
    host: str = ""
    workers: int = 1
    running: int = 0
    """Parts that run or are enqueued here."""
    agents: tuple[Agent, ...] = ()
    resources: Resources = Resources()
    stages: dict[str, tuple[str, ...]] = {}
    """By type of task: the agents that work on it one after the other."""
    only_agent: str = ""
    only_label: str = ""
    only_board: str = ""
    """The board whose issues are taken here, and no others; empty: issues of any board and of none."""
    on_board: frozenset[int] = frozenset()
    """The issues on that board."""
    turning: frozenset[str] | None = None
    """Targets whose queue takes a turn right now, anywhere; None: unknown."""


class WaitReason(StrEnum):
    """Why nothing is done for a task now, in one word."""

    BACKLOG = "backlog"
    DEPENDENCY = "dependency"
    PARTS = "parts"
    DEADLOCK = "deadlock"
    PERSON = "person"
    HELD = "held"
    PAUSED = "paused"
    STOPPING = "stopping"
    WORKERS = "workers"
    LIMIT = "limit"
    RESOURCES = "resources"
    OVERLAP = "overlap"
    PROVIDER = "provider"
    BACKOFF = "backoff"
    BUDGET = "budget"
    REVIEW = "review"
    MERGE = "merge"
    PULL_REQUEST = "pull_request"
    ELSEWHERE = "elsewhere"
    """Another executor has it."""
    FILTER = "filter"
    AGENT = "agent"
    """There is no agent for it."""


class _SchedulerAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="move", tag=str.lower):
    pass


class Start(_SchedulerAction, frozen=True, kw_only=True):
    """Begin a session."""

    task: int
    agent: str
    purpose: Purpose
    attempt: int
    reason: str
    provider: str = ""
    base_branch: str = ""
    """Where a task without a parent starts and lands; empty: the branch that is checked out."""
    price: float = 0.0
    """How much it is expected to get in the way of others."""
    gap: Feedback | None = None


class Continue(_SchedulerAction, frozen=True, kw_only=True):
    """Begin the next part of a session that waits."""

    run: str
    task: int
    part: int
    """The number of the part that begins."""
    cause: Cause
    reason: str
    gap: Feedback | None = None
    landed: str = ""

    @property
    def asks(self) -> bool:
        """True when an agent may be asked: the closure of landed work asks none."""
        return self.cause is not Cause.LANDED


class Queue(_SchedulerAction, frozen=True, kw_only=True):
    """Put verified work into the merge queue of its target."""

    run: str
    task: int
    commit: str
    target: str
    round: int = 1


class Withdraw(_SchedulerAction, frozen=True, kw_only=True):
    """Take work out of the merge queue."""

    entry: int
    task: int
    reason: str


class RunQueue(_SchedulerAction, frozen=True, kw_only=True):
    """Let the merge queue of a target take a turn."""

    target: str


class AskReview(_SchedulerAction, frozen=True, kw_only=True):
    """Make the task that reviews a commit of another one."""

    task: int
    commit: str
    reviewer_type: str
    assignee: str = ""
    reason: str = ""
    """Why a person reviews it, where an agent should."""


class Escalate(_SchedulerAction, frozen=True, kw_only=True):
    """Ask a person."""

    escalation: Escalation
    blocker: Blocker | None = None

    @property
    def task(self) -> int:
        return self.escalation.task


class Block(_SchedulerAction, frozen=True, kw_only=True):
    """Say on a task why it does not go on: its manager decides what becomes of it."""

    task: int
    blocker: Blocker


class CreateSubtasks(_SchedulerAction, frozen=True, kw_only=True):
    plan: int
    task: int


class RejectPlan(_SchedulerAction, frozen=True, kw_only=True):
    plan: int
    task: int
    reason: str


class EndSession(_SchedulerAction, frozen=True, kw_only=True):
    """End a session that waits for what never comes."""

    run: str
    task: int
    part: int
    """The last part that began: a session that has gone on since is left alone."""
    outcome: str
    reason: str
    gives_back: bool = False
    """Whether its task is open again."""


class Close(_SchedulerAction, frozen=True, kw_only=True):
    """Call a task done whose work is on its target, where no session can do it any more."""

    task: int
    run: str
    commit: str
    landed: str


class Reopen(_SchedulerAction, frozen=True, kw_only=True):
    """Open a task again: no session works on it although its status says so, or its blocker is done."""

    task: int
    reason: str


class Wait(_SchedulerAction, frozen=True, kw_only=True):
    """Nothing can be done for a task now. Task 0 is the project as a whole."""

    task: int
    kind: WaitReason
    why: str
    until: str = ""
    """When to look again, where a time is known."""


SchedulerAction = (
    Start
    | Continue
    | Queue
    | Withdraw
    | RunQueue
    | AskReview
    | Escalate
    | Block
    | CreateSubtasks
    | RejectPlan
    | EndSession
    | Close
    | Reopen
    | Wait
)
