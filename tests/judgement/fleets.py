"""Small fields, and what the orchestrator would do with them."""

from typing import Any, TypeVar

import msgspec

from genba.definitions.project.work_sections import FleetSettings
from genba.domain.fleet.records import (
    EntryStatus,
    Escalation,
    EscalationKind,
    FleetSession,
    FleetSnapshot,
    MergeEntry,
    Plan,
    Purpose,
    Review,
    Subtask,
    WaitsFor,
)
from genba.domain.tasks.task import Task, TaskStatus
from genba.judgement.scheduling.actions import Agent, SchedulerAction, Start, Wait, WorkerContext
from genba.judgement.scheduling.dispatch import scheduler_actions

M = TypeVar("M")

NOW = "2026-03-01T12:00:00.000000Z"
BEFORE = "2026-03-01T11:00:00.000000Z"
COMMIT = "c" * 40
AGENTS = (
    Agent(name="builder", capabilities=("bug", "docs"), provider="north"),
    Agent(name="iterator", provider="north"),
    Agent(name="planner", provider="north"),
    Agent(name="reviewer", capabilities=("review",), provider="south"),
)


def task(number: int, **more: Any) -> Task:
    return Task(id=number, number=number, title=f"task {number}", **{"created_at": BEFORE, **more})


def session(number: int, **more: Any) -> FleetSession:
    """A session that runs; with `waits_for` one that waits."""
    status = "waiting" if "waits_for" in more else "running"
    values = {"run": f"run-{number}", "agent": "iterator", "attempt": 1, "provider": "north", "status": status}
    return FleetSession(task=number, **{**values, "base_branch": "main", "branch": f"genba/{number}-x", **more})


def failure(number: int, attempt: int, **more: Any) -> FleetSession:
    values = {"run": f"run-{number}-{attempt}", "status": "ended", "outcome": "failed", "reason": "tests_pass failed"}
    return session(number, **{**values, "attempt": attempt, "ended_at": BEFORE, **more})


def verified(number: int, waits_for: WaitsFor = WaitsFor.MERGE, **more: Any) -> FleetSession:
    return session(number, **{"waits_for": waits_for, "verified": COMMIT, **more})


def in_review(number: int, **more: Any) -> Task:
    return task(number, status=TaskStatus.REVIEW, **more)


def entry(number: int, status: EntryStatus = EntryStatus.QUEUED, **more: Any) -> MergeEntry:
    values = {"id": number, "run": f"run-{number}", "branch": f"genba/{number}-x", "commit": COMMIT, "target": "main"}
    return MergeEntry(task=number, status=status, **{**values, "enqueued_at": BEFORE, **more})


def asked(number: int, kind: EscalationKind, status: str = "open", **more: Any) -> Escalation:
    values = {"question": "which one?", "run": f"run-{number}", "status": status, "answered_at": BEFORE}
    return Escalation(task=number, kind=kind, **{**values, **more})


def plan(number: int, parts: int = 2, **more: Any) -> Plan:
    subtasks = tuple(Subtask(key=f"p{part}", title=f"part {part}") for part in range(parts))
    return Plan(id=7, task=number, subtasks=subtasks, **more)


def review(number: int, of: int, **more: Any) -> Review:
    return Review(task=number, of=of, **{"commit": COMMIT, "reviewer_type": "ai", **more})


def review_task(number: int, of: int, **more: Any) -> Task:
    return task(number, type="review", parent=of, review_of=of, review_commit=COMMIT, **more)


def field(*tasks: Task, **more: Any) -> FleetSnapshot:
    ready = tuple(one.number for one in tasks if one.status is TaskStatus.OPEN)
    values = {"now": NOW, "tasks": {one.number: one for one in tasks}, "ready": ready, "authors": _authors(more)}
    return FleetSnapshot(**{**values, **more})


def _authors(more: dict[str, Any]) -> dict[int, frozenset[str]]:
    """Everybody who has worked on a task, as the blackboard tells it."""
    found: dict[int, frozenset[str]] = {}
    failures = [one for each in more.get("failures", {}).values() for one in each]
    for one in (*more.get("sessions", ()), *failures):
        if one.purpose in (Purpose.WORK, Purpose.INTEGRATE):
            found[one.task] = found.get(one.task, frozenset()) | {one.agent}
    return found


def settings(**sections: dict[str, Any]) -> FleetSettings:
    return msgspec.convert(sections, FleetSettings)


def me(**more: Any) -> WorkerContext:
    return WorkerContext(**{"executor": "here", "host": "laptop", "workers": 4, "agents": AGENTS, **more})


def decide(here: FleetSnapshot, reported: FleetSettings | None = None, **about_me: Any) -> tuple[SchedulerAction, ...]:
    return scheduler_actions(here, reported or FleetSettings(), me(**about_me))


def only(kind: type[M], found: tuple[SchedulerAction, ...]) -> M:
    """The one move of this kind."""
    these = [move for move in found if isinstance(move, kind)]
    assert len(these) == 1, found
    return these[0]


def none(kind: type[Any], found: tuple[SchedulerAction, ...]) -> bool:
    return not any(isinstance(move, kind) for move in found)


def wait_of(number: int, found: tuple[SchedulerAction, ...]) -> Wait:
    return next(move for move in found if isinstance(move, Wait) and move.task == number)


def started(found: tuple[SchedulerAction, ...]) -> list[int]:
    """The tasks of the sessions that begin, in order."""
    return [move.task for move in found if isinstance(move, Start)]
