"""One task on the dashboard: text, status and evidence."""

from enum import StrEnum

import msgspec

from genba.domain.fleet.records import Escalation, FleetSession, MergeEntry, Plan
from genba.domain.goals.verification import Verification
from genba.domain.tasks.task import Comment, Task, TaskEvent, TaskStatus
from genba.domain.tracker.remote import TrackedPullRequest
from genba.domain.workflow.actions import Message


class TaskLink(msgspec.Struct, frozen=True, kw_only=True):
    """Another task, as far as a line about it goes."""

    number: int
    title: str
    status: TaskStatus


class VerificationLine(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict, without its evidence."""

    id: int
    run: str
    commit: str
    status: str
    """done | rejected | error"""
    reason: str = ""
    at: str = ""


class AgentChoice(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that an issue is all it needs to begin with."""

    name: str
    title: str = ""
    description: str = ""


class TaskAction(StrEnum):
    """What a person can do with a task as it stands."""

    RUN = "run"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    """Approve the verified commit without having been asked."""
    UNBLOCK = "unblock"
    REOPEN = "reopen"
    CANCEL = "cancel"


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one task."""

    task: Task
    why: str
    """Why it is where it is, in one sentence."""
    held: bool = False
    """True when a person paused it."""
    asked: tuple[Escalation, ...] = ()
    """What waits for a person, oldest first; the newest is decided next."""
    plan: Plan | None = None
    """The parts that a planner proposes, or proposed last."""
    sessions: tuple[FleetSession, ...] = ()
    """Every attempt, oldest first."""
    alive: tuple[str, ...] = ()
    """The ids of its running sessions."""
    verification: Verification | None = None
    """The newest verdict with its evidence."""
    verdicts: tuple[VerificationLine, ...] = ()
    """The newest verdicts, newest first, this one included."""
    entries: tuple[MergeEntry, ...] = ()
    """Its newest places in the merge queue, newest first."""
    comments: tuple[Comment, ...] = ()
    messages: tuple[Message, ...] = ()
    """Messages from other agents, oldest first."""
    events: tuple[TaskEvent, ...] = ()
    """What happened to it last, newest first."""
    events_total: int = 0
    parent: TaskLink | None = None
    parts: tuple[TaskLink, ...] = ()
    waits_for: tuple[TaskLink, ...] = ()
    waited_for_by: tuple[TaskLink, ...] = ()
    url: str = ""
    """Where the issue is, for one of a tracker."""
    pull_requests: tuple[TrackedPullRequest, ...] = ()
    cost_usd: float = 0.0
    tokens: int = 0
    actions: tuple[TaskAction, ...] = ()
    agents: tuple[AgentChoice, ...] = ()
    """Who could be started on it."""
    agent: str = ""
    """Who should be, as the project assigns it."""


class FileLine(msgspec.Struct, frozen=True, kw_only=True):
    """What the work does to one file."""

    path: str
    before: str = ""
    """Its earlier name, where it got another one."""
    added: int = 0
    removed: int = 0
    binary: bool = False


class CommitLine(msgspec.Struct, frozen=True, kw_only=True):
    commit: str
    subject: str
    author: str = ""
    at: str = ""


class DiffView(msgspec.Struct, frozen=True, kw_only=True):
    """The work on a task against what it began at."""

    number: int
    branch: str = ""
    base_branch: str = ""
    base: str = ""
    commit: str = ""
    """Empty: there is nothing to compare."""
    commits: tuple[CommitLine, ...] = ()
    """Newest first."""
    files: tuple[FileLine, ...] = ()
    files_total: int = 0
    added: int = 0
    removed: int = 0


class DiffRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a comparison."""

    kind: str
    """added | removed | same | place | note"""
    text: str
    old: int = 0
    new: int = 0


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of one file."""

    path: str
    rows: tuple[DiffRow, ...] = ()
    cut: bool = False
    """Whether there is more than is shown."""
    binary: bool = False


class DecisionDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Something that only a person can decide, with everything needed to decide it."""

    escalation: Escalation
    task: Task
    ways: tuple[str, ...] = ()
    """answer | approve | reject | resume: how it can be decided."""
    next: bool = False
    """Whether a decision about the task decides this one: of several the newest."""
    sessions: tuple[FleetSession, ...] = ()
    verification: Verification | None = None
    plan: Plan | None = None
    entry: MergeEntry | None = None
    cost_usd: float = 0.0
    tokens: int = 0


class DecisionsView(msgspec.Struct, frozen=True, kw_only=True):
    open: tuple[DecisionDetails, ...] = ()
    """Newest first."""
    decided: tuple[Escalation, ...] = ()
    """Newest first."""
    titles: dict[int, str] = {}
    """Of the tasks that the decided ones are about."""
