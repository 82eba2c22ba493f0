"""Closing a session of `genba run` whose commit the fleet landed: its task, its labels, its worktree and its branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import GenbaError
from genba.domain.sessions.outcomes import Outcome

if TYPE_CHECKING:
    from genba.execution.session_context import SessionContext
    from genba.wiring.project.project_context import ProjectContext
    from genba.wiring.sandbox.agent_environment import AgentEnvironmentKeeper


async def close_landed(context: ProjectContext, run: str, landed: str) -> bool:
    """Close the session as `genba run` does after its own merge. Safe to repeat.

    False where that is not possible here: another machine made the session, or somebody resumes it now.
    """
    try:
        plan = context.resumed(run, {})
        state, workspace = plan.state, plan.workspace
        if state is None or state.outcome is not Outcome.COMPLETED or workspace is None:
            return False
        if context.is_running(workspace.branch):
            return False
        closing = msgspec.structs.replace(plan, merged=landed, delivered=True)
        result = await context.prepare(closing, dress=_as_it_is).execute()
    except GenbaError:
        return False
    return result.outcome is Outcome.COMPLETED


def _as_it_is(world: SessionContext, keeper: AgentEnvironmentKeeper) -> SessionContext:  # noqa: ARG001  (the signature of a dress)
    """The fleet keeps the connections to GitHub, which a session on its own would close."""
    return world
