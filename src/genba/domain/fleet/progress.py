"""What `genba work` shows: its events, its current state and its result."""

from enum import StrEnum

import msgspec

from genba.domain.fleet.records import EntryStatus, EscalationKind, Purpose


class FleetEventKind(StrEnum):
    """The events of a fleet. Each is one word on the screen."""

    OPENED = "opened"
    """A `genba work` starts."""
    STARTED = "started"
    """A session starts."""
    CONTINUED = "continued"
    """A waiting session continues."""
    STEP = "step"
    """An iteration ended."""
    VERIFIED = "verified"
    REJECTED = "rejected"
    """Work fails a required goal. The session continues with the evidence."""
    REVIEW = "review"
    """A review was requested, or a reviewer gave a verdict."""
    PLANNED = "planned"
    """A planner proposed subtasks, or they were created."""
    QUEUED = "queued"
    MERGED = "merged"
    CONFLICT = "conflict"
    MERGE_FAILED = "merge_failed"
    STUCK = "stuck"
    MOVED = "moved"
    """Another process moved a target."""
    PHASE = "phase"
    """A phase of a task is complete, and the task continues."""
    DONE = "done"
    FAILED = "failed"
    """A session ended without a result."""
    WAITS = "waits"
    """A session waits and gave up its worker."""
    ESCALATED = "escalated"
    """A person must decide."""
    DECIDED = "decided"
    """A person decided."""
    PAUSED = "paused"
    """No session starts, because of a provider, the project, a task, a budget or the machine."""
    RESUMED = "resumed"
    SUSPENDING = "suspending"
    SUSPENDED = "suspended"
    TAKEN_OVER = "taken_over"
    """The work of a dead executor continues here."""
    NOTICE = "notice"


class FleetEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened."""

    kind: FleetEventKind
    task: int | None = None
    title: str = ""
    agent: str = ""
    run: str = ""
    detail: str = ""
    """The rest of the sentence: the step, the commit, the paths, the reason."""
    command: str = ""
    """What a person can type about it."""


class GoalMark(msgspec.Struct, frozen=True, kw_only=True):
    """One goal of a verification."""

    name: str
    status: str
    """passed | failed | error"""
    detail: str = ""


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """One session that holds a worker."""

    task: int
    title: str = ""
    agent: str = ""
    run: str = ""
    purpose: Purpose = Purpose.WORK
    phase: str = ""
    """opening, iterating, verifying, closing, merging: one word."""
    step: str = ""
    iteration: int = 0
    iterations: int | None = None
    """How many it may have; None without a limit."""
    doing: str = ""
    """The last output of its agent."""
    seconds: float = 0.0
    tokens: int = 0
    cost_usd: float = 0.0
    goals: tuple[GoalMark, ...] = ()
    """Of its last verification."""


class QueueEntryView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the merge queue."""

    task: int
    target: str
    title: str = ""
    status: EntryStatus = EntryStatus.QUEUED
    round: int = 1
    detail: str = ""


class WaitView(msgspec.Struct, frozen=True, kw_only=True):
    """A task that waits, and why."""

    why: str
    task: int | None = None
    """None: it is about all of them."""
    title: str = ""
    until: str = ""
    """The time at which it goes on by itself, where that is known."""


class DecisionView(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person must decide, with the command to type."""

    task: int
    kind: EscalationKind
    question: str
    command: str
    title: str = ""
    since: str = ""


class FleetView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is worth a look, now. It is made from memory: looking at it costs nothing."""

    project: str = ""
    executor: str = ""
    slots: int = 1
    """How many sessions this executor has at one time at most."""
    others: int = 0
    """Other executors that are alive."""
    workers: tuple[WorkerView, ...] = ()
    queue: tuple[QueueEntryView, ...] = ()
    waits: tuple[WaitView, ...] = ()
    needs: tuple[DecisionView, ...] = ()
    ready: int = 0
    open: int = 0
    """Tasks that have not ended, those that are worked on included."""
    done: int = 0
    """Tasks that were done since this executor began."""
    merged: int = 0
    failed: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost_usd: float = 0.0
    budget_usd: float | None = None
    """The budget that is reached first, where there is one."""
    paused: str = ""
    """Why nothing new begins, where that is so."""
    suspending: bool = False


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one task while `genba work` ran."""

    task: int
    title: str = ""
    parent: int | None = None
    status: str = "done"
    """done | failed | waits | rejected | cancelled | suspended | open, after a phase of it has landed"""
    agent: str = ""
    sessions: int = 1
    iterations: int = 0
    goals_passed: int = 0
    goals: int = 0
    merged: str = ""
    detail: str = ""
    """What else is worth a word: a conflict that was resolved, why it failed, what it waits for."""
    command: str = ""
    """What to type about it."""
    cost_usd: float = 0.0


class WorkEndReason(StrEnum):
    """Why `genba work` ended."""

    EMPTY = "empty"
    """There is nothing left that could be done."""
    SUSPENDED = "suspended"
    """A person pressed ctrl-c or sent a signal."""
    STOPPED = "stopped"
    """`genba stop`."""
    BUDGET = "budget"
    """A budget is used up."""


class WorkSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one `genba work` came to."""

    ended: WorkEndReason
    tasks: tuple[TaskResult, ...] = ()
    sessions: int = 0
    merged: int = 0
    done: int = 0
    failed: int = 0
    suspended: int = 0
    """Sessions that go on with the next `genba work`."""
    sessions_failed: int = 0
    """Sessions without a result; their tasks may be done all the same, or wait."""
    needs: tuple[DecisionView, ...] = ()
    waits: tuple[WaitView, ...] = ()
    seconds: float = 0.0
    tokens: int = 0
    cost_usd: float = 0.0
    detail: str = ""
    """Which budget is used up, or who stopped it."""


def command_for(kind: EscalationKind, task: int) -> str:
    """What a person types first about an escalation."""
    match kind:
        case EscalationKind.QUESTION:
            return f'genba answer {task} "…"'
        case EscalationKind.REVIEW | EscalationKind.PLAN | EscalationKind.BUDGET:
            return f"genba approve {task}"
        case EscalationKind.STOPPED:
            return f"genba resume {task}"
        case EscalationKind.ATTEMPTS | EscalationKind.CONFLICT | EscalationKind.FAILED:
            return f"genba decisions show {task}"
