"""A task as one row: what is read of it, in one statement, and how it becomes a value."""

from typing import NamedTuple

import msgspec

from genba.blackboard.database.sanitize import LARGEST
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.goals.goal import Goal
from genba.domain.tasks.task import Blocker, BlockerKind, Phase, Priority, Task, TaskStatus

GOING = "status IN ('backlog', 'open', 'in_progress', 'review', 'blocked')"
"""Not ended, written so that the index of the status is used."""

_COLUMNS = """
SELECT t.id, t.number, t.title, t.description, t.type, t.status, t.priority, t.labels,
  (SELECT p.number FROM tasks p WHERE p.id = t.parent_task_id),
  (SELECT $numbers(c.number) FROM tasks c WHERE c.parent_task_id = t.id $steps),
  (SELECT $numbers(o.number) FROM task_dependencies d JOIN tasks o ON o.id = d.depends_on_id WHERE d.task_id = t.id),
  t.assignee, t.requires_review, t.reviewer_type,
  (SELECT $goals),
  t.may_change, t.blocker_kind, t.blocker_reason,
  (SELECT b.number FROM tasks b WHERE b.id = t.blocker_task_id),
  t.tracker, t.tracker_reference, t.version, t.created_at, t.updated_at, t.parent_task_id, t.blocker_task_id,
  t.scope, t.decompose, t.budget_usd, t.review_of, t.review_commit, t.in_plan,
  (SELECT $by_agents),
  (SELECT $enabled), t.phases, t.due
FROM tasks t
"""

_GOALS_OF_SQLITE = """group_concat(g.condition, ',') FROM (SELECT condition FROM task_goals
    WHERE task_id = t.id AND position IS NOT NULL ORDER BY position) g"""
_GOALS_OF_POSTGRES = """string_agg(g.condition, ',' ORDER BY g.position) FROM task_goals g
    WHERE g.task_id = t.id AND g.position IS NOT NULL"""

_OF_AGENTS = "position IS NOT NULL AND source = 'ai_inferred'"
_ENABLED = "position IS NOT NULL AND enabled"

_FOR_SQLITE = (
    _COLUMNS.replace("$numbers", "group_concat")
    .replace("$goals", _GOALS_OF_SQLITE)
    .replace("$by_agents", _GOALS_OF_SQLITE.replace("position IS NOT NULL", _OF_AGENTS))
    .replace("$enabled", _GOALS_OF_SQLITE.replace("position IS NOT NULL", _ENABLED))
)
_FOR_POSTGRES = (
    _COLUMNS.replace("$numbers(c.number)", "string_agg(CAST(c.number AS text), ',')")
    .replace("$numbers(o.number)", "string_agg(CAST(o.number AS text), ',')")
    .replace("$goals", _GOALS_OF_POSTGRES)
    .replace("$by_agents", _GOALS_OF_POSTGRES.replace("g.position IS NOT NULL", f"g.{_OF_AGENTS}"))
    .replace("$enabled", _GOALS_OF_POSTGRES.replace("g.position IS NOT NULL", f"g.{_ENABLED}"))
)


def select_tasks(condition: str, postgres: str | None = None, *, with_steps: bool = True) -> Statement:
    """Tasks, as `t`, for which a condition holds; an order and a limit may follow it.

    Without steps, the children of a task are those that are carried out by themselves.
    """
    steps = "" if with_steps else "AND NOT c.in_plan"
    return Statement(
        _FOR_SQLITE.replace("$steps", steps) + condition,
        _FOR_POSTGRES.replace("$steps", steps) + (condition if postgres is None else postgres),
    )


_ONE = select_tasks("WHERE t.project_id = :project AND t.number = :number")
_LOCK = Statement("SELECT id FROM tasks WHERE project_id = :project AND number = :number FOR NO KEY UPDATE")
_ID = Statement("SELECT id FROM tasks WHERE project_id = :project AND number = :number")

_STATUSES = {str(status): status for status in TaskStatus}
_PRIORITIES = {str(priority): priority for priority in Priority}
_texts = reader(tuple[str, ...])
_goals = reader(tuple[Goal, ...])
_phases = reader(tuple[Phase, ...])


class TaskWithRows(NamedTuple):
    """A task with the rows that it names."""

    task: Task
    parent_id: int | None
    blocker_id: int | None


def task_with_rows(tx: Transaction, number: int) -> TaskWithRows:
    row = tx.one(_ONE, project=tx.project, number=number) if 0 < number <= LARGEST else None
    if row is None:
        raise missing(number)
    return TaskWithRows(task_of(row), row[24], row[25])


def hold(tx: Transaction, number: int) -> TaskWithRows:
    """Lock a task until this transaction ends."""
    if tx.on_postgres and 0 < number <= LARGEST:
        # First the lock, then the look: what a statement sees beside the row is older than the lock it waited for.
        tx.one(_LOCK, project=tx.project, number=number)
    return task_with_rows(tx, number)


def id_of(tx: Transaction, number: int) -> int:
    row = tx.one(_ID, project=tx.project, number=number) if 0 < number <= LARGEST else None
    if row is None:
        raise missing(number)
    return int(row[0])


def missing(number: int) -> NotFoundError:
    return NotFoundError(f"there is no task #{number}", unchanged="nothing was changed.", hint="genba task list")


def task_of(row: Row) -> Task:
    labels, children, dependencies, goals, may_change, kind = row[7], row[9], row[10], row[14], row[15], row[16]
    return Task(
        id=row[0],
        number=row[1],
        title=row[2],
        body=row[3],
        type=row[4],
        status=_STATUSES[row[5]],
        priority=_PRIORITIES[row[6]],
        labels=() if labels == "[]" else _texts.decode(labels),
        parent=row[8],
        children=() if children is None else numbers_of(children),
        dependencies=() if dependencies is None else numbers_of(dependencies),
        assignee=row[11],
        requires_review=bool(row[12]),
        reviewer_type=row[13],
        goals=() if goals is None else _read_goals(row[1], goals),
        may_change=() if may_change == "[]" else _texts.decode(may_change),
        scope=() if row[26] == "[]" else _texts.decode(row[26]),
        decompose=bool(row[27]),
        budget_usd=row[28],
        review_of=row[29],
        review_commit=row[30],
        in_plan=bool(row[31]),
        agent_goals=() if row[32] is None else _read_goals(row[1], row[32]),
        enabled_goals=() if row[33] is None else _read_goals(row[1], row[33]),
        due=row[35],
        phases=() if row[34] == "[]" else _phases.decode(row[34]),
        blocker=None if kind is None else Blocker(BlockerKind(kind), row[17], row[18]),
        tracker=row[19],
        tracker_reference=row[20],
        version=row[21],
        created_at=row[22],
        updated_at=row[23],
    )


def _read_goals(number: int, joined: str) -> tuple[Goal, ...]:
    """The acceptance criteria. One that is not understood must not be left out: the task would be done without it."""
    try:
        return _goals.decode(f"[{joined}]")
    except msgspec.ValidationError as error:
        raise StateConflictError(
            f"task #{number} has a goal that this version of Genba does not know: {error}",
            unchanged="nothing was changed.",
            hint="pip install --upgrade genba",
        ) from error


def numbers_of(joined: str | int) -> tuple[int, ...]:
    return tuple(sorted(map(int, str(joined).split(","))))
