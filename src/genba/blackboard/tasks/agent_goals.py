"""Goals that agents write. Law: none of them runs a program or asks another host before a person enabled that.

A person enables it for a task and everything below it. An enabled goal still says that an agent wrote it.
"""

from genba.blackboard.database.sanitize import named, now
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import AGENT_COMMANDS_DISABLED, AGENT_COMMANDS_ENABLED, NewEvent, tell
from genba.blackboard.tasks.task_rows import hold
from genba.blackboard.tasks.task_tree import descendants, line_of
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.goals.goal import DECLARATIVE, Goal, GoalSource, goal_type, what_it_runs
from genba.domain.tasks.task import Actor, ActorKind, Task

_LAST = Statement("""
SELECT kind FROM events WHERE task_id = :task AND kind IN ('agent_commands_enabled', 'agent_commands_disabled')
ORDER BY id DESC LIMIT 1
""")
_ENABLE = Statement("UPDATE task_goals SET enabled = :yes WHERE task_id = :task AND source = 'ai_inferred'")


def source_of(tx: Transaction, number: int, goal: Goal, by_agent: bool) -> tuple[GoalSource, bool]:
    """Whose a goal is, and whether a person enabled what it runs.

    Raises UsageError for a goal of an agent that runs something no person enabled.
    """
    if not by_agent:
        return GoalSource.HUMAN_DEFINED, False
    field = what_it_runs(goal)
    if not field:
        return GoalSource.AI_INFERRED, False
    if not are_enabled(tx, number):
        line = line_of(tx, number)  # a new task is not there yet: a person enables it for the one above
        raise refused_goal(goal, field, line[1].number if len(line) > 1 else number)
    return GoalSource.AI_INFERRED, True


def are_enabled(tx: Transaction, number: int) -> bool:
    """True when a person enabled commands of agents for the task, or for one above it. The nearest decision counts."""
    for task in line_of(tx, number):
        row = tx.one(_LAST, task=task.id)
        if row is not None:
            return bool(row[0] == AGENT_COMMANDS_ENABLED)
    return False


def enable(tx: Transaction, number: int, enabled: bool, actor: Actor) -> Task:
    """Write down that a person enables commands of agents in the goals of a task and those below it, or ends that."""
    named(actor)
    if actor.kind is not ActorKind.HUMAN:
        raise StateConflictError(
            f"task #{number}: only a person enables commands of agents",
            unchanged="nothing was changed.",
            hint=f'genba task comment {number} "…"   tells a person what you need',
        )
    task = hold(tx, number).task
    if enabled:
        for row in (task.id, *(below.id for below in descendants(tx, task.id))):
            tx.do(_ENABLE, task=row, yes=True)
    kind = AGENT_COMMANDS_ENABLED if enabled else AGENT_COMMANDS_DISABLED
    tell(tx, actor, now(), [NewEvent(task=task.id, version=task.version, kind=kind, data={})])
    return hold(tx, number).task


def refused_goal(goal: Goal, field: str, number: int) -> UsageError:
    return UsageError(
        f"{goal_type(goal)} with `{field}`: a goal that an agent writes runs nothing and asks no other host",
        unchanged="nothing was changed.",
        hint=f"allowed: {', '.join(DECLARATIVE)}. A person can enable it: genba task edit {number} --agent-commands",
    )
