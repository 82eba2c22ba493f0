"""Planning: the context of a session that plans a task, and what becomes of its plan.

Law: a plan reaches the blackboard only when nothing is wrong with it. Proposing is all that happens here: who approves
it, and who makes tasks of it, is decided by others. Safe to repeat.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.definitions.project.work_sections import DecomposeSettings
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import Plan, SegmentEnd, SegmentOrder
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import Task
from genba.execution.run_values import RunResult
from genba.judgement.language.wording import say
from genba.judgement.scheduling.plans import TYPES, PlanLimits, goal_line, plan_limits, read_plan

_DEEPEST = 100


def limits_of(
    board: FleetBoard,
    task: Task,
    settings: DecomposeSettings,
    agents: tuple[str, ...] | None = None,
    types: tuple[str, ...] = TYPES,
) -> PlanLimits:
    """What a plan of this task is held to: the settings of the project, and the tasks around it."""
    around = {number: board.board.get(number) for number in task.children}
    above, parent = 0, task.parent
    while parent is not None and above < _DEEPEST:
        around[parent] = board.board.get(parent)
        parent, above = around[parent].parent, above + 1
    limits = plan_limits(
        task, around, max_parts=settings.max_parts, max_depth=settings.max_depth, agents=agents, types=types
    )
    return msgspec.structs.replace(limits, commands=board.board.agent_commands(task.number))


def plan_parameters(task: Task, limits: PlanLimits, declared: Collection[str], language: str = "en") -> dict[str, Any]:
    """The parameters of a session that plans; a planner of your own gets those that it declares."""
    values = {
        "issue": task.number,
        "max_parts": limits.max_parts,
        "task_types": ", ".join(dict.fromkeys((*limits.types, task.type))),
        "agents": ", ".join(limits.agents or ()) or say(language, "no_agents_named"),
        "parts": "; ".join(limits.titles) or say(language, "no_parts"),
        "criteria": "\n".join(f"- {goal_line(goal)}" for goal in task.goals) or say(language, "no_own_goals"),
    }
    return {name: value for name, value in values.items() if name in declared}


def finish_plan(result: RunResult, order: SegmentOrder, board: FleetBoard, limits: PlanLimits) -> SegmentEnd:
    """Propose the plan that a session came back with. What is still no plan ends it without one."""
    task = board.board.get(order.task)
    read = read_plan(result.output or {}, task, limits, order.run)
    if not isinstance(read, Plan):
        message = "; ".join(str(problem) for problem in read[:3])
        more = f" and {len(read) - 3} more" if len(read) > 3 else ""  # noqa: PLR2004  (those that were named)
        return _ended(order, Outcome.INCOMPLETE, f"no plan that can be used: {message}{more}")
    try:
        board.propose(read)
    except (StateConflictError, NotFoundError) as error:
        return _ended(order, Outcome.ABORTED, f"the plan is not wanted any more: {error.message}")
    count = "1 part" if len(read.subtasks) == 1 else f"{len(read.subtasks)} parts"
    return _ended(order, Outcome.COMPLETED, f"proposes {count}")


def _ended(order: SegmentOrder, outcome: Outcome, reason: str) -> SegmentEnd:
    return SegmentEnd(run=order.run, part=order.part, outcome=outcome, reason=reason)
