"""Closing a session of `genba run` whose commit the fleet landed: its task, its labels, its worktree and its branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.application.sessions.session_record import resumed_plan
from genba.domain.errors import GenbaError
from genba.domain.sessions.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from genba.application.project.project_context import ProjectContext
    from genba.execution.run_values import RunPlan, RunResult


async def close_landed(
    context: ProjectContext, execute: Callable[[RunPlan], Awaitable[RunResult]], run: str, landed: str
) -> bool:
    """Close the session as `genba run` does after its own merge. Safe to repeat.

    False where that is not possible here: another machine made the session, or a person resumes it now.
    """
    try:
        plan = resumed_plan(context, run, {})
        state, workspace = plan.state, plan.workspace
        if state is None or state.outcome is not Outcome.COMPLETED or workspace is None:
            return False
        if context.is_running(workspace.branch):
            return False
        closing = msgspec.structs.replace(plan, merged=landed, delivered=True)
        result = await execute(closing)
    except GenbaError:
        return False
    return result.outcome is Outcome.COMPLETED
