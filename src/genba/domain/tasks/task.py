"""A task: Genba's record of an issue, or of a part of one, on the blackboard."""

from datetime import date
from enum import StrEnum
from typing import Any

import msgspec

from genba.domain.goals.goal import Goal

_DAY_LENGTH = len("2026-12-01")


def is_day(text: str) -> bool:
    """True for a date such as 2026-12-01."""
    try:
        return len(text) == _DAY_LENGTH and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


class TaskStatus(StrEnum):
    BACKLOG = "backlog"
    OPEN = "open"
    IN_PROGRESS = "in_progress"
    REVIEW = "review"
    DONE = "done"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (TaskStatus.DONE, TaskStatus.CANCELLED)

    @classmethod
    def read(cls, word: str) -> "TaskStatus":
        """A status as others write it: `todo` is read as `open`."""
        return cls.OPEN if word == "todo" else cls(word)


class Priority(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class ActorKind(StrEnum):
    """Who changes a status. Every actor has a name."""

    HUMAN = "human"
    MANAGER = "manager"
    ORCHESTRATOR = "orchestrator"
    WORKER = "worker"
    REVIEWER = "reviewer"
    TRACKER = "tracker"
    """A person on the tracker of the project, as its local copy shows."""


class Actor(msgspec.Struct, frozen=True):
    kind: ActorKind
    name: str


class BlockerKind(StrEnum):
    NEEDS_INPUT = "needs_input"
    DEPENDENCY = "dependency"
    RESOURCE = "resource"
    FAILED = "failed"
    CONFLICT = "conflict"


class Blocker(msgspec.Struct, frozen=True):
    """Why a task cannot go on."""

    kind: BlockerKind
    reason: str
    task: int | None = None
    """The number of the task that stands in the way, where it is one."""


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    author: str
    body: str
    created_at: str


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent completed of a task with `label-only`: it is verified and has landed, and the task goes on."""

    agent: str
    commit: str
    session: str = ""
    artifacts: tuple[str, ...] = ()
    """The kinds of artifact that its verification found."""
    shown: tuple[Goal, ...] = ()
    """The goals about changes that its commit met."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the blackboard knows of a task. Other tasks are named by their numbers."""

    id: int
    number: int
    title: str
    body: str = ""
    type: str = "task"
    status: TaskStatus = TaskStatus.OPEN
    priority: Priority = Priority.MEDIUM
    labels: tuple[str, ...] = ()
    parent: int | None = None
    children: tuple[int, ...] = ()
    dependencies: tuple[int, ...] = ()
    assignee: str = ""
    requires_review: bool = False
    reviewer_type: str = "human"
    approved: str = ""
    """The commit that was approved last."""
    goals: tuple[Goal, ...] = ()
    """The acceptance criteria; those of the project and of the type are added when it is verified."""
    agent_goals: tuple[Goal, ...] = ()
    """Those of them that an agent wrote."""
    enabled_goals: tuple[Goal, ...] = ()
    """Those of an agent that run something, and that a person enabled."""
    may_change: tuple[str, ...] = ()
    """Protected paths that this task may change."""
    scope: tuple[str, ...] = ()
    """The paths that it is going to write, as patterns; empty: unknown."""
    decompose: bool = False
    """Whether a planner proposes its parts before anybody works on it."""
    budget_usd: float | None = None
    """The most that all of its sessions together may cost."""
    review_of: int | None = None
    """The task whose commit this one judges."""
    review_commit: str = ""
    in_plan: bool = False
    """A step of its parent's own plan: the agent of the parent carries it out, on the same branch."""
    due: str = ""
    """The day of its deadline, such as 2026-12-01; empty without one."""
    phases: tuple[Phase, ...] = ()
    """The phases that are complete, oldest first; none after a person reopened the task."""
    blocker: Blocker | None = None
    tracker: str = "local"
    tracker_reference: str = ""
    version: int = 1
    created_at: str = ""
    updated_at: str = ""

    def has_let_go_of(self, session: str) -> bool:
        """True when nothing is left for a session to do: the task has ended, or its phase is complete."""
        return self.status.ended or any(phase.session == session for phase in self.phases)


PERSON = "@"
"""The name of a person begins with it where a task says to whom it is assigned; other names are those of agents."""


def at_name(assignee: str) -> str:
    """An assignee as people read it: an agent and a person alike, with one `@`."""
    return PERSON + assignee.removeprefix(PERSON)


class TaskDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is not written down yet."""

    title: str
    body: str = ""
    type: str = "task"
    status: TaskStatus = TaskStatus.OPEN
    """`open` or `backlog`."""
    priority: Priority = Priority.MEDIUM
    labels: tuple[str, ...] = ()
    parent: int | None = None
    dependencies: tuple[int, ...] = ()
    assignee: str = ""
    requires_review: bool = False
    reviewer_type: str = "human"
    goals: tuple[Goal, ...] = ()
    may_change: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    decompose: bool = False
    budget_usd: float | None = None
    review_of: int | None = None
    review_commit: str = ""
    in_plan: bool = False
    due: str = ""
    tracker: str = "local"
    tracker_reference: str = ""
    number: int | None = None
    """By default the next one of the project."""


class TaskEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What to change of a task; None leaves a field as it is. A status is changed by the gateway alone."""

    title: str | None = None
    body: str | None = None
    type: str | None = None
    priority: Priority | None = None
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    assignee: str | None = None
    requires_review: bool | None = None
    reviewer_type: str | None = None
    goals: tuple[Goal, ...] | None = None
    may_change: tuple[str, ...] | None = None
    scope: tuple[str, ...] | None = None
    decompose: bool | None = None
    budget_usd: float | None = None
    """0 takes the budget away."""
    due: str | None = None
    """Empty takes the deadline away."""


class StatusChange(msgspec.Struct, frozen=True, kw_only=True):
    """What one call of the gateway asks for."""

    to: TaskStatus
    actor: Actor
    reason: str = ""
    blocker: Blocker | None = None
    """Mandatory on the way to `blocked`."""
    commit: str = ""
    """On the way to `review` and `done`: the commit that was verified."""
    finalized: str = ""
    """On the way from `review` to `done` or `open`: how the work left its branch, such as `merged 3f9c2ab`."""
    phase: str = ""
    """On the way from `review` to `open`: the agent whose phase is complete."""
    version: int | None = None
    """The row version that the caller has seen; another one refuses the change."""
    session: str = ""
    """The run on whose behalf the change is made."""


class TaskEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a task's history on the blackboard."""

    kind: str
    actor: Actor
    at: str
    version: int
    data: dict[str, Any] = {}
