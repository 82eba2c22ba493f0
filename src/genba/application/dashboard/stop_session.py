"""Stops one session for a button.

Law: a session of a fleet is stopped by what is written down; a run of its own by the signal that ctrl-c would send, to
the process that holds the lock of its branch and to no other. It is called stopped when it has let go of that lock.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import TYPE_CHECKING

from genba.domain.errors import NotFoundError, StateConflictError, UnavailableError
from genba.domain.views.summary import ActionResult

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.application.verification.decisions import Decisions
    from genba.domain.fleet.records import FleetSession

_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.1


async def stop_run(decisions: Decisions, run: str, branch: str, process: int, reason: str = "") -> ActionResult:
    """Suspend a run. `branch` is the one that it works on, `process` who says that it does."""
    session = await asyncio.to_thread(_session, decisions, run)
    if session is not None and session.status == "ended":
        raise _over(run)
    if session is not None and session.executor:
        return await asyncio.to_thread(decisions.stop, session.task, reason)
    return await _interrupt(decisions.context, run, branch, process)


async def stop_task(decisions: Decisions, number: int, reason: str = "") -> ActionResult:
    """Suspend the session that works on a task, in a fleet or alone."""
    sessions = await asyncio.to_thread(decisions.board.sessions, number)
    alone = next((each for each in reversed(sessions) if each.status == "running" and not each.executor), None)
    if alone is not None and alone.branch and decisions.context.is_running(alone.branch):
        begun = await asyncio.to_thread(decisions.board.board.newest_session, number)
        return await _interrupt(decisions.context, alone.run, alone.branch, begun.process)
    return await asyncio.to_thread(decisions.stop, number, reason)


def _session(decisions: Decisions, run: str) -> FleetSession | None:
    try:
        return decisions.board.session(run)
    except NotFoundError:
        return None


async def _interrupt(context: ProjectContext, run: str, branch: str, process: int) -> ActionResult:
    if not process or _holder(context, run, branch) != process:
        raise _over(run)
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        raise _over(run) from None
    except PermissionError:
        raise StateConflictError(
            f"{run} belongs to another user", unchanged="nothing was changed.", hint=f"as that user: kill {process}"
        ) from None
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if _holder(context, run, branch) != process:
            message = f"{run} is suspended; its branch and its commits stay"
            return ActionResult(sentence=message, hint=f"genba run --resume {run}")
        await asyncio.sleep(_POLL_SECONDS)
    raise UnavailableError(
        f"{run} must stop, and has not ended after {_PATIENCE_SECONDS:.0f} seconds", hint=f"genba logs {run}"
    )


def _holder(context: ProjectContext, run: str, branch: str) -> int | None:
    """The process of this run, if it holds the lock of its branch now."""
    if not branch or not context.is_running(branch):
        return None
    try:
        result = json.loads(context.layout.branch_lock(branch).read_text("utf-8"))
        return int(result["process"]) if result["holder"] == run else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _over(run: str) -> StateConflictError:
    return StateConflictError(f"{run} does not run here", unchanged="nothing was changed.", hint=f"genba logs {run}")
