"""The nouns of a fleet: many sessions, their parts, the merge queue, escalations, budgets and executors.

A session is a chain of parts. One part is one durable run of the loop: it begins for a cause, and ends with the session
waiting for something or ended. Between parts a session holds no worker: what it waits for stands on the blackboard.
"""

from enum import StrEnum
from typing import Any

import msgspec

from genba.domain.goals.goal import Goal
from genba.domain.sessions.loop_state import Feedback
from genba.domain.sessions.session import SessionStart
from genba.domain.tasks.task import Priority, Task
from genba.domain.tracker.remote import TrackedPullRequest


class Purpose(StrEnum):
    """What a session is for."""

    WORK = "work"
    PLAN = "plan"
    """Propose the parts of a task. Leaves no commit."""
    REVIEW = "review"
    """Judge one commit of another task. Leaves no commit."""
    INTEGRATE = "integrate"
    """Bring a task home whose parts are merged into its branch: verify first, ask only if that is red."""
    MANAGE = "manage"
    """Have others carry out the parts of a task, by a manager that asks what is next. Leaves no commit."""


class WaitsFor(StrEnum):
    """What a session that holds no worker waits for."""

    NOTHING = ""
    ANSWER = "answer"
    REVIEW = "review"
    MERGE = "merge"
    """It is in the merge queue."""
    PULL_REQUEST = "pull_request"
    BUDGET = "budget"
    RESUME = "resume"
    """It was stopped by a person or suspended by Genba."""
    PARTS = "parts"
    """Others carry out the parts of its task; it goes on when something happens to one of them."""


class Cause(StrEnum):
    """Why a part of a session begins."""

    START = "start"
    ANSWER = "answer"
    FINDINGS = "findings"
    """A reviewer wants changes."""
    CONFLICT = "conflict"
    FAILED = "failed"
    """A goal fails on what would have landed."""
    LANDED = "landed"
    """The work is on its target: only the closure is left."""
    RESUMED = "resumed"
    WOKEN = "woken"
    """Something happened to a part of its task."""


def segment_workflow(run: str, part: int) -> str:
    """The name of the workflow that carries out a part of a run."""
    return f"session:{run}:part:{part}"


def session_of_workflow(workflow: str) -> str:
    """The run that a workflow carries out a part of; empty when it is about something else."""
    kind, _, rest = workflow.partition(":")
    return rest.rpartition(":part:")[0] if kind == "session" else ""


class SegmentOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The input of one durable segment. It is stored by its workflow, so fields are only ever added."""

    run: str
    task: int
    agent: str
    attempt: int
    part: int = 1
    purpose: Purpose = Purpose.WORK
    cause: Cause = Cause.START
    gap: Feedback | None = None
    """What the next prompt must know: the answer, the conflict, the failing goals, the findings."""
    over: str = ""
    """With `conflict` and `failed`: the commit of the target that it was tried on."""
    paths: tuple[str, ...] = ()
    """With `conflict`: the paths in conflict."""
    landed: str = ""
    """With `landed`: the commit on the target."""
    handover: str = ""
    """What the attempts before have left for this one."""
    external: bool = False
    """The agent connected by itself: Genba did not start it and cannot prompt it."""

    @property
    def workflow(self) -> str:
        """The same for the same part of the same run, however often it is ordered."""
        return segment_workflow(self.run, self.part)


class FleetSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as the orchestrator sees it."""

    run: str
    task: int
    agent: str
    attempt: int
    purpose: Purpose = Purpose.WORK
    status: str = "running"
    """running | waiting | ended"""
    waits_for: WaitsFor = WaitsFor.NOTHING
    part: int = 1
    executor: str = ""
    external: bool = False
    """Its agent connected by itself; `executor` is the id of the connection."""
    host: str = ""
    branch: str = ""
    base: str = ""
    base_branch: str = ""
    verified: str = ""
    """The commit that every required goal passed on."""
    outcome: str = ""
    reason: str = ""
    provider: str = ""
    phase: str = ""
    """What it does right now, in one word: opening, iterating, verifying, closing."""
    step: str = ""
    iterations: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    changed: tuple[str, ...] = ()
    """The paths it has changed so far."""
    rounds: int = 0
    """How often its work came back from the merge queue."""
    reviews: int = 0
    """How often a reviewer wanted changes."""
    started_at: str = ""
    heartbeat_at: str = ""
    ended_at: str = ""


class SegmentEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a part ended: the session waits for something, or it is over."""

    run: str
    part: int
    waits_for: WaitsFor = WaitsFor.NOTHING
    outcome: str = ""
    """Of the session, when it waits for nothing."""
    reason: str = ""
    verified: str = ""
    state: str = ""
    """The state of its loop, as JSON: what the next part goes on from."""
    iterations: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class BranchHandover(msgspec.Struct, frozen=True, kw_only=True):
    """The verified branch of an outside manager, and the session that brings it home."""

    manager: str
    """The run of the manager's own session, which ends here."""
    order: SegmentOrder
    start: SessionStart
    executor: str
    commit: str
    plan: str
    base_branch: str
    state: str


class EntryStatus(StrEnum):
    QUEUED = "queued"
    MERGING = "merging"
    MERGED = "merged"
    CONFLICT = "conflict"
    FAILED = "failed"
    STUCK = "stuck"
    """The target cannot be moved now: a checkout with changes, a rebase. It is tried again."""
    WITHDRAWN = "withdrawn"

    @property
    def ended(self) -> bool:
        return self in (EntryStatus.MERGED, EntryStatus.CONFLICT, EntryStatus.FAILED, EntryStatus.WITHDRAWN)


class MergeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One branch that wants to land on one target."""

    id: int = 0
    task: int
    run: str
    branch: str
    commit: str
    """The verified commit of the branch; another tip makes the entry stale."""
    target: str
    title: str = ""
    agent: str = ""
    priority: Priority = Priority.MEDIUM
    status: EntryStatus = EntryStatus.QUEUED
    round: int = 1
    turns: int = 0
    """How many turns of the queue have passed it by: what keeps it from waiting for ever."""
    landed: str = ""
    paths: tuple[str, ...] = ()
    """The paths in conflict."""
    detail: str = ""
    """Why it failed or is stuck; with the evidence for its author."""
    over: str = ""
    """The commit of the target that it was tried on last."""
    enqueued_at: str = ""
    finished_at: str = ""


class EscalationKind(StrEnum):
    QUESTION = "question"
    ATTEMPTS = "attempts"
    CONFLICT = "conflict"
    FAILED = "failed"
    REVIEW = "review"
    """A person must approve a commit."""
    BUDGET = "budget"
    PLAN = "plan"
    """A person must approve the subtasks that a planner proposes."""
    STOPPED = "stopped"


class Escalation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that only a person can decide, with everything needed to decide it."""

    id: int = 0
    task: int
    kind: EscalationKind
    question: str
    run: str = ""
    commit: str = ""
    evidence: dict[str, Any] = {}
    """Branch, failing goals, conflicts, what was tried, cost so far: whatever the decision needs."""
    status: str = "open"
    """open | answered | approved | rejected | withdrawn"""
    answer: str = ""
    answered_by: str = ""
    created_at: str = ""
    answered_at: str = ""


class Subtask(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a task, as a planner proposes it."""

    key: str
    """Its name within the plan, for dependencies."""
    title: str
    body: str = ""
    type: str = "task"
    priority: Priority = Priority.MEDIUM
    depends_on: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    goals: tuple[Goal, ...] = ()
    assignee: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    id: int = 0
    task: int
    run: str = ""
    subtasks: tuple[Subtask, ...] = ()
    summary: str = ""
    status: str = "proposed"
    """proposed | created | rejected"""
    created_at: str = ""


class Executor(msgspec.Struct, frozen=True, kw_only=True):
    """One process that carries out parts: `genba work`."""

    id: str
    host: str
    process: int
    workers: int
    status: str = "live"
    """live | suspended | dead"""
    started_at: str = ""
    heartbeat_at: str = ""


class ProviderPause(msgspec.Struct, frozen=True, kw_only=True):
    """No session asks this provider before that time."""

    provider: str
    until: str
    reason: str = ""


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What one iteration cost. Written once."""

    run: str
    iteration: int
    tokens: int
    cost_usd: float


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Money and tokens, added up."""

    cost_usd: float = 0.0
    tokens: int = 0


class SpendingTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent so far, by what a budget can be set for."""

    project: Cost = Cost()
    today: Cost = Cost()
    by_agent_today: dict[str, Cost] = {}
    by_task: dict[int, Cost] = {}


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A review: a child task that is bound to one commit of its parent."""

    task: int
    """The number of the review task."""
    of: int
    commit: str
    reviewer_type: str
    status: str = "open"
    """open | approved | changes | stale"""
    reviewer: str = ""
    findings: tuple[str, ...] = ()


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine has left."""

    free_memory_mb: int = 1 << 30
    free_disk_mb: int = 1 << 30


class FleetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the orchestrator decides on, read in one transaction."""

    now: str
    tasks: dict[int, Task]
    """Every task that has not ended, and the ended ones that those depend on, by number."""
    ready: tuple[int, ...] = ()
    """Open, every dependency done, every part ended; by priority, then by age."""
    sessions: tuple[FleetSession, ...] = ()
    """The newest session of each purpose of each task that has not ended, running ones included."""
    failures: dict[int, tuple[FleetSession, ...]] = {}
    """By task: its ended sessions that came to nothing since it was last opened by a person, oldest first."""
    entries: tuple[MergeEntry, ...] = ()
    """The newest entry of each run that has not ended, or whose task is in review."""
    escalations: tuple[Escalation, ...] = ()
    """Open ones, and the newest answered one of each task."""
    reviews: tuple[Review, ...] = ()
    authors: dict[int, frozenset[str]] = {}
    """By task that is in review: every agent that has worked on it, and so may not judge it."""
    plans: tuple[Plan, ...] = ()
    """The newest plan of each task."""
    proposals: dict[int, TrackedPullRequest] = {}
    """By task whose session waits for a pull request: that pull request, as it was last seen."""
    findings: dict[int, Feedback] = {}
    """By such a task: feedback on its pull request that its author has not received."""
    pauses: tuple[ProviderPause, ...] = ()
    executors: tuple[Executor, ...] = ()
    ledger: SpendingTotals = SpendingTotals()
    paused: bool = False
    """Nothing new is started in this project."""
    held: frozenset[int] = frozenset()
    """Tasks that a person paused."""
    stopping: bool = False
    """All executors suspend their sessions and end."""
