"""Tasks and subtasks, as far as the next action depends on them."""

from collections import Counter
from functools import lru_cache
from typing import Any

import msgspec

from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.task_rows import id_of, task_with_rows
from genba.domain.decoding import reader
from genba.domain.goals.goal import Goal, goal_type
from genba.domain.tasks.task import Blocker, BlockerKind, Priority, Task, TaskStatus
from genba.domain.workflow.actions import SubtaskView

_WITHIN = "FROM tasks t WHERE (t.id = :task OR t.parent_task_id = :task) AND (t.id = :task OR t.review_of IS NULL)"
"""A task, and everything right below it but its reviews."""
_FAMILY = Statement(
    f"""
SELECT t.id, t.number, t.title, t.description, t.type, t.status, t.priority, t.assignee, t.scope, t.version, t.in_plan,
  t.created_at, t.blocker_kind, t.blocker_reason, (SELECT b.number FROM tasks b WHERE b.id = t.blocker_task_id)
{_WITHIN} ORDER BY t.id
"""  # noqa: S608  (words of this module)
)
_DEPENDENCIES = Statement(f"""
SELECT d.task_id, o.number FROM task_dependencies d JOIN tasks o ON o.id = d.depends_on_id
WHERE d.task_id IN (SELECT t.id {_WITHIN}) ORDER BY o.number
""")  # noqa: S608
_GOALS = Statement(f"""
SELECT g.task_id, g.condition FROM task_goals g
WHERE g.task_id IN (SELECT t.id {_WITHIN}) AND g.position IS NOT NULL ORDER BY g.task_id, g.position
""")  # noqa: S608
_ATTEMPTS = Statement("""
SELECT t.number, count(*) FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE (t.parent_task_id = :task OR t.id = :task) AND s.status = 'ended' AND s.outcome <> 'completed'
  AND s.purpose IN ('work', 'manage') GROUP BY t.number
UNION ALL
SELECT t.number, count(*) FROM escalations e JOIN tasks t ON t.id = e.task_id
  JOIN agents a ON a.project_id = t.project_id AND a.name = e.answered_by
WHERE (t.parent_task_id = :task OR t.id = :task) AND e.kind = 'question' AND e.status IN ('answered', 'approved')
GROUP BY t.number
""")
"""Sessions that came to nothing, and questions that no person has answered."""
_WITH_PERSON = Statement("""
SELECT t.number, e.evidence FROM escalations e JOIN tasks t ON t.id = e.task_id
WHERE (t.parent_task_id = :task OR t.id = :task) AND e.status = 'open'
""")
_BELOW = Statement("""
WITH RECURSIVE below(id, number) AS (
  SELECT id, number FROM tasks WHERE parent_task_id = :task AND review_of IS NULL
  UNION ALL
  SELECT t.id, t.number FROM tasks t JOIN below ON t.parent_task_id = below.id AND t.review_of IS NULL)
SELECT number FROM below
""")

_evidence = reader(dict[str, Any])
_texts = reader(tuple[str, ...])
_goal = reader(Goal)


class SubtaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A subtask with its row."""

    id: int
    in_plan: bool
    created_at: str
    view: SubtaskView


def subtask_view(tx: Transaction, number: int) -> SubtaskView:
    task = task_with_rows(tx, number).task
    return with_story(tx, task.id, [subtask_view_of(task)])[0]


def subtask_views(tx: Transaction, parent: int) -> tuple[SubtaskView, ...]:
    """Everything right below a task but its reviews, in the order in which it was made."""
    task = id_of(tx, parent)
    return tuple(with_story(tx, task, [one.view for one in family(tx, task) if one.id != task]))


def family(tx: Transaction, task: int) -> list[SubtaskRow]:
    """A task, and everything right below it but its reviews, in the order in which it was made."""
    dependencies: dict[int, list[int]] = {}
    for id_, on in tx.all(_DEPENDENCIES, task=task):
        dependencies.setdefault(id_, []).append(on)
    goals: dict[int, list[str]] = {}
    for id_, condition in tx.all(_GOALS, task=task):
        goals.setdefault(id_, []).append(_condition_text(condition))
    return [
        SubtaskRow(
            id=row[0],
            in_plan=bool(row[10]),
            created_at=row[11],
            view=_read(row, tuple(dependencies.get(row[0], ())), tuple(goals.get(row[0], ()))),
        )
        for row in tx.all(_FAMILY, task=task)
    ]


def _read(row: Row, dependencies: tuple[int, ...], goals: tuple[str, ...]) -> SubtaskView:
    return SubtaskView(
        number=row[1],
        title=row[2],
        body=row[3],
        type=row[4],
        status=TaskStatus(row[5]),
        priority=Priority(row[6]),
        assignee=row[7],
        dependencies=dependencies,
        goals=goals,
        scope=() if row[8] == "[]" else _texts.decode(row[8]),
        blocker=None if row[12] is None else Blocker(BlockerKind(row[12]), row[13], row[14]),
        version=row[9],
    )


def below(tx: Transaction, number: int) -> frozenset[int]:
    return frozenset(int(row[0]) for row in tx.all(_BELOW, task=id_of(tx, number)))


def subtask_view_of(task: Task) -> SubtaskView:
    return SubtaskView(
        number=task.number,
        title=task.title,
        body=task.body,
        type=task.type,
        status=task.status,
        priority=task.priority,
        assignee=task.assignee,
        dependencies=task.dependencies,
        goals=tuple(goal_text(goal) for goal in task.goals),
        scope=task.scope,
        blocker=task.blocker,
        version=task.version,
    )


@lru_cache(maxsize=512)
def _condition_text(condition: str) -> str:
    try:
        return goal_text(_goal.decode(condition))
    except msgspec.ValidationError:
        return "a goal that this version of Genba does not know"


def goal_text(goal: Goal) -> str:
    """A goal in a line: its type, and what it is about."""
    main = goal.main
    about = getattr(goal, main) if main else None
    words = " ".join(about) if isinstance(about, tuple) else about
    line = f"{goal_type(goal)}: {words}" if words is not None else goal_type(goal)
    return line if goal.required else f"{line} (reported only)"


def with_story(tx: Transaction, task: int, found: list[SubtaskView]) -> list[SubtaskView]:
    """A task and its parts, with the attempts that came to nothing, and whether a manager gave it to a person."""
    attempts: Counter[int] = Counter()
    for number, count in tx.all(_ATTEMPTS, task=task):
        attempts[int(number)] += int(count)
    asked = {int(number) for number, raw in tx.all(_WITH_PERSON, task=task) if _evidence.decode(raw).get("by")}
    if not attempts and not asked:
        return found
    return [
        msgspec.structs.replace(one, attempts=attempts.get(one.number, 0), with_human=one.number in asked)
        if one.number in attempts or one.number in asked
        else one
        for one in found
    ]


def is_waiting_for_a_worker(one: SubtaskView, done: frozenset[int]) -> bool:
    """Whether a part could begin at once, if only there were a worker."""
    return one.status is TaskStatus.OPEN and bool(one.assignee) and done.issuperset(one.dependencies)
