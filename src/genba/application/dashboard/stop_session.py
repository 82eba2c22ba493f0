"""Stop sessions, for the command line and the dashboard.

A session of `genba work` is stopped by a record in the database, one of `genba run` by the signal of ctrl-c. It is sent
only to the process that holds the lock of the branch. The session counts as stopped when that lock is free.
"""

from __future__ import annotations

import asyncio
import contextlib
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


async def stop_all(decisions: Decisions, reason: str = "") -> ActionResult:
    """Suspend every session that has a task, and end every `genba work`."""
    result = await asyncio.to_thread(decisions.stop, None, reason)
    for session in decisions.board.field().sessions:
        if session.status != "running" or session.executor or not session.branch:
            continue
        if decisions.context.is_running(session.branch):
            started = await asyncio.to_thread(decisions.board.board.newest_session, session.task)
            with contextlib.suppress(StateConflictError):  # it ended meanwhile
                await _interrupt(decisions.context, session.run, session.branch, started.process)
    return result


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
