"""The goals of a task: each is written down once, and known by its fingerprint."""

import hashlib
from collections.abc import Sequence

from genba.blackboard.database.sanitize import as_json, seen, storable
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.agent_goals import source_of
from genba.domain.goals.goal import FrozenGoal, Goal, GoalLevel, GoalSource, goal_type

_UPSERT = Statement("""
INSERT INTO task_goals (task_id, position, level, type, condition, required, source, origin, fingerprint, enabled)
VALUES (:task, :position, :level, :type, :condition, :required, :source, :origin, :fingerprint, :enabled)
ON CONFLICT (task_id, fingerprint) DO UPDATE SET origin = excluded.origin,
  source = CASE WHEN excluded.position IS NULL AND task_goals.position IS NOT NULL THEN task_goals.source
    ELSE excluded.source END,
  enabled = CASE WHEN excluded.position IS NULL THEN task_goals.enabled ELSE excluded.enabled END,
  position = coalesce(excluded.position, task_goals.position)
RETURNING id
""")
_KNOWN = Statement("""
SELECT fingerprint, source, enabled FROM task_goals WHERE task_id = :task AND position IS NOT NULL
""")
_DROP = Statement("UPDATE task_goals SET position = NULL WHERE task_id = :task")


def fingerprint(level: GoalLevel, goal: Goal) -> str:
    """The same level and the same condition are the same goal, wherever it was written."""
    return hashlib.sha256(f"{level}\n{as_json(goal)}".encode()).hexdigest()


def without_twins(goals: Sequence[Goal]) -> tuple[Goal, ...]:
    return tuple({fingerprint(GoalLevel.ACCEPTANCE_CRITERIA, goal): goal for goal in goals}.values())


def set_criteria(tx: Transaction, task: int, number: int, goals: tuple[Goal, ...], by_agent: bool) -> None:
    """Make these the acceptance criteria of a task. Dropped ones stay, for the results that they have.

    An unchanged goal keeps its source. Raises UsageError for what agents may not write.
    """
    known = {row[0]: (GoalSource(row[1]), bool(row[2])) for row in tx.all(_KNOWN, task=task)}
    tx.do(_DROP, task=task)
    for position, goal in enumerate(goals, 1):
        storable(as_json(goal), "a goal")
        kept = known.get(fingerprint(GoalLevel.ACCEPTANCE_CRITERIA, goal))
        source, enabled = kept or source_of(tx, number, goal, by_agent)
        frozen = FrozenGoal(level=GoalLevel.ACCEPTANCE_CRITERIA, source=source, origin=f"task #{number}", goal=goal)
        write_goal(tx, task, frozen, position, enabled)


def write_goal(
    tx: Transaction, task: int, frozen: FrozenGoal, position: int | None = None, enabled: bool = False
) -> int:
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
        enabled=enabled,
    )
    return int(row[0]) if row else 0
