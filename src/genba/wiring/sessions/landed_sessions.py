"""Closing a session of `genba run` whose commit the fleet landed: its task, its labels, its worktree and its branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import GenbaError
from genba.domain.sessions.outcomes import Outcome
from genba.wiring.sessions.session_factory import closing_session

if TYPE_CHECKING:
    from genba.wiring.project.project_context import ProjectContext


async def close_landed(context: ProjectContext, run: str, landed: str) -> bool:
    """Close the session as `genba run` does after its own merge. Safe to repeat.

    False where that is not possible here: another machine made the session, or a person resumes it now.
    """
    try:
        plan = context.resumed(run, {})
        state, workspace = plan.state, plan.workspace
        if state is None or state.outcome is not Outcome.COMPLETED or workspace is None:
            return False
        if context.is_running(workspace.branch):
            return False
        closing = msgspec.structs.replace(plan, merged=landed, delivered=True)
        result = await closing_session(context, closing).execute()
    except GenbaError:
        return False
    return result.outcome is Outcome.COMPLETED
