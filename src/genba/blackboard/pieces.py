"""Tasks and subtasks, as far as the next action depends on them."""

from typing import Any

import msgspec

from genba.blackboard.rows import id_of, look, select_tasks, task_of
from genba.blackboard.store import Statement, Transaction
from genba.domain.goals import Goal, goal_type
from genba.domain.tasks import Task, TaskStatus
from genba.domain.workflow import Piece

FAMILY = select_tasks(
    "WHERE (t.id = :task OR t.parent_task_id = :task) AND (t.id = :task OR t.review_of IS NULL) ORDER BY t.id"
)
"""A task, and everything right below it but its reviews, in the order in which it was made."""
_ATTEMPTS = Statement("""
SELECT t.number, count(*) FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE (t.parent_task_id = :task OR t.id = :task) AND s.status = 'ended' AND s.outcome <> 'completed'
  AND s.purpose IN ('work', 'manage') GROUP BY t.number
""")
_WITH_PERSON = Statement("""
SELECT t.number, e.evidence FROM escalations e JOIN tasks t ON t.id = e.task_id
WHERE (t.parent_task_id = :task OR t.id = :task) AND e.status = 'open'
""")
_BELOW = Statement("""
WITH RECURSIVE below(id, number) AS (
  SELECT id, number FROM tasks WHERE parent_task_id = :task
  UNION ALL
  SELECT t.id, t.number FROM tasks t JOIN below ON t.parent_task_id = below.id)
SELECT number FROM below
""")

_evidence = msgspec.json.Decoder(dict[str, Any])


def piece(tx: Transaction, number: int) -> Piece:
    task = look(tx, number).task
    return with_story(tx, task.id, [piece_of(task)])[0]


def pieces(tx: Transaction, parent: int) -> tuple[Piece, ...]:
    """Everything right below a task but its reviews, in the order in which it was made."""
    task = id_of(tx, parent)
    found = [task_of(row) for row in tx.all(FAMILY, task=task)]
    return tuple(with_story(tx, task, [piece_of(one) for one in found if one.id != task]))


def below(tx: Transaction, number: int) -> frozenset[int]:
    return frozenset(int(row[0]) for row in tx.all(_BELOW, task=id_of(tx, number)))


def piece_of(task: Task) -> Piece:
    return Piece(
        number=task.number,
        title=task.title,
        body=task.body,
        type=task.type,
        status=task.status,
        priority=task.priority,
        assignee=task.assignee,
        dependencies=task.dependencies,
        goals=tuple(told(goal) for goal in task.goals),
        scope=task.scope,
        blocker=task.blocker,
        version=task.version,
    )


def told(goal: Goal) -> str:
    """A goal in a line: its type, and what it is about."""
    main = goal.main
    about = getattr(goal, main) if main else None
    words = " ".join(about) if isinstance(about, tuple) else about
    line = f"{goal_type(goal)}: {words}" if words is not None else goal_type(goal)
    return line if goal.required else f"{line} (reported only)"


def with_story(tx: Transaction, task: int, found: list[Piece]) -> list[Piece]:
    """A task and its parts, with the attempts that came to nothing, and whether a manager gave it to a person."""
    attempts = {int(number): int(count) for number, count in tx.all(_ATTEMPTS, task=task)}
    asked = {int(number) for number, raw in tx.all(_WITH_PERSON, task=task) if _evidence.decode(raw).get("by")}
    if not attempts and not asked:
        return found
    return [
        msgspec.structs.replace(one, attempts=attempts.get(one.number, 0), with_human=one.number in asked)
        if one.number in attempts or one.number in asked
        else one
        for one in found
    ]


def is_waiting_for_a_worker(one: Piece, done: frozenset[int]) -> bool:
    """Whether a part could begin at once, if only there were a worker."""
    return one.status is TaskStatus.OPEN and bool(one.assignee) and done.issuperset(one.dependencies)
