"""The goals of a task: each is written down once, and known by its fingerprint."""

import hashlib
from collections.abc import Sequence

from genba.blackboard.store import Statement, Transaction
from genba.blackboard.texts import as_json, seen, storable
from genba.domain.goals import FrozenGoal, Goal, GoalLevel, GoalSource, goal_type
from genba.domain.tasks import Actor, ActorKind

_UPSERT = Statement("""
INSERT INTO task_goals (task_id, position, level, type, condition, required, source, origin, fingerprint)
VALUES (:task, :position, :level, :type, :condition, :required, :source, :origin, :fingerprint)
ON CONFLICT (task_id, fingerprint) DO UPDATE SET source = excluded.source, origin = excluded.origin,
  position = coalesce(excluded.position, task_goals.position)
RETURNING id
""")
_DROP = Statement("UPDATE task_goals SET position = NULL WHERE task_id = :task")


def fingerprint(level: GoalLevel, goal: Goal) -> str:
    """The same level and the same condition are the same goal, wherever it was written."""
    return hashlib.sha256(f"{level}\n{as_json(goal)}".encode()).hexdigest()


def without_twins(goals: Sequence[Goal]) -> tuple[Goal, ...]:
    return tuple({fingerprint(GoalLevel.ACCEPTANCE_CRITERIA, goal): goal for goal in goals}.values())


def set_criteria(tx: Transaction, task: int, number: int, goals: tuple[Goal, ...], actor: Actor) -> None:
    """Make these the acceptance criteria of a task. Dropped ones stay, for the results that they have."""
    tx.do(_DROP, task=task)
    source = GoalSource.HUMAN_DEFINED if actor.kind is ActorKind.HUMAN else GoalSource.AI_INFERRED
    for position, goal in enumerate(goals, 1):
        storable(as_json(goal), "a goal")
        frozen = FrozenGoal(level=GoalLevel.ACCEPTANCE_CRITERIA, source=source, origin=f"task #{number}", goal=goal)
        write_goal(tx, task, frozen, position)


def write_goal(tx: Transaction, task: int, frozen: FrozenGoal, position: int | None = None) -> int:
    row = tx.one(
        _UPSERT,
        task=task,
        position=position,
        level=str(frozen.level),
        type=goal_type(frozen.goal),
        condition=as_json(frozen.goal),
        required=frozen.goal.required,
        source=str(frozen.source),
        origin=seen(frozen.origin),
        fingerprint=fingerprint(frozen.level, frozen.goal),
    )
    return int(row[0]) if row else 0
