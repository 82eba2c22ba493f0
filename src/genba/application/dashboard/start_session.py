"""Starts a session for a button: the command that a person would type, as a process of its own.

Law: it outlives the process that starts it, no shell reads a word of it, and it is called begun only when it has begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from genba.application.dashboard.keys import OPERATOR_VARIABLE, VIEWER_VARIABLE
from genba.application.sessions.liveness import is_alive
from genba.coordination.engine.worker_liveness import absent
from genba.definitions.agent.parameters import ISSUE, option_name
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError, StateConflictError, UnavailableError, UsageError
from genba.domain.views.summary import ActionResult

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.definitions.agent.definition import AgentDefinition

_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.1
_MOST_KEPT = 20
_LONGEST_TAIL = 8192
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_starting: set[tuple[str, int]] = set()
"""What is being started just now, by repository and task."""


class _Began(msgspec.Struct, frozen=True):
    """What is read of the first line of a journal."""

    process: int = 0


async def start_run(context: ProjectContext, agent: str, number: int) -> ActionResult:
    """Start an agent on a task; tell so when its session is there, or why it did not begin."""
    key = (str(context.layout.common), number)
    if key in _starting:
        raise StateConflictError(f"a run on #{number} is being started already", unchanged="nothing was changed.")
    _starting.add(key)
    try:
        words = await asyncio.to_thread(_words, context, agent, number)
        return await _started(context, agent, number, words)
    finally:
        _starting.discard(key)


def _words(context: ProjectContext, agent: str, number: int) -> list[str]:
    """The command, once nothing that is known already speaks against it."""
    if not agent or agent.startswith("-"):
        raise UsageError("say which agent", unchanged="nothing was started.", hint="genba agent list")
    definition: AgentDefinition = context.registry.load(agent)
    parameter = definition.file.parameters.get(ISSUE)
    if parameter is None:
        raise UsageError(f"{agent} takes no issue", unchanged="nothing was started.", hint=f"genba run {agent} --help")
    from genba.blackboard.fleet.fleet_board import FleetBoard  # noqa: PLC0415  (only who starts something pays for it)

    fleet = FleetBoard(context.board(make=False))
    gone = absent(fleet)
    alive = next((each for each in fleet.sessions(number) if is_alive(context, each, gone)), None)
    if alive is not None:
        raise StateConflictError(
            f"{alive.run} works on #{number} already",
            unchanged="nothing was started.",
            hint=f"genba stop {number}   suspends it",
        )
    # It begins in the working tree, from which no module may come: an agent may have written there.
    genba = [sys.executable, "-P", "-m", "genba"]
    return [*genba, "run", agent, option_name(ISSUE, parameter), str(number), "--quiet"]


async def _started(context: ProjectContext, agent: str, number: int, words: list[str]) -> ActionResult:
    output = await asyncio.to_thread(_output, context, agent, number)
    before = await asyncio.to_thread(_runs, context, agent)
    process = await asyncio.to_thread(_spawn, words, context.layout.top, output)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        code = process.poll()
        run = await asyncio.to_thread(_begun, context, agent, before, process.pid)
        if run:
            return ActionResult(sentence=f"{agent} works on #{number}", leads_to=f"/sessions/{quote(run, safe='')}")
        if code is not None:
            raise _refusal(agent, number, code, output)
        await asyncio.sleep(_POLL_SECONDS)
    raise UnavailableError(
        f"{agent} was started on #{number}, and has not begun after {_PATIENCE_SECONDS:.0f} seconds",
        hint=f"genba sessions {number}   and what it says: {output}",
    )


def _spawn(words: list[str], folder: Path, output: Path) -> subprocess.Popen[bytes]:
    """A session of its own: it outlives the process that starts it, and its ctrl-c."""
    kept = {name: value for name, value in os.environ.items() if name not in (OPERATOR_VARIABLE, VIEWER_VARIABLE)}
    with output.open("wb") as file:
        process = subprocess.Popen(
            words, cwd=folder, env=kept, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    threading.Thread(target=process.wait, name=f"run-{process.pid}", daemon=True).start()
    return process


def _output(context: ProjectContext, agent: str, number: int) -> Path:
    """Where it says what it has to say; of those that were started before, some are kept."""
    folder = context.layout.own / "started"
    context.ports.files.make_private_folder(folder)
    with contextlib.suppress(FileNotFoundError):  # another one who starts something throws the same away
        for old in sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)[: -_MOST_KEPT + 1]:
            old.unlink(missing_ok=True)
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", agent)[:60]
    path = folder / f"{safe}-{number}-{os.urandom(3).hex()}.log"
    path.touch(mode=0o600)
    return path


def _begun(context: ProjectContext, agent: str, before: frozenset[str], process: int) -> str:
    """The run of that process, once its journal says that it has begun."""
    pages = context.ports.pages()
    for run in sorted(_runs(context, agent) - before):
        with contextlib.suppress(OSError, NotFoundError, msgspec.DecodeError, msgspec.ValidationError):
            journal = context.find_journal(run)
            if reader(_Began).decode(pages.line_at(journal, 0)).process == process:
                return run
    return ""


def _runs(context: ProjectContext, agent: str) -> frozenset[str]:
    folder = context.layout.own / "runs"
    return frozenset(path.name for path in folder.glob(f"{glob.escape(agent)}-*")) if folder.is_dir() else frozenset()


def _refusal(agent: str, number: int, code: int, output: Path) -> StateConflictError:
    """Why it did not begin, by its own output."""
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - _LONGEST_TAIL))
        text = _COLOURS.sub("", file.read().decode("utf-8", "replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("error:").strip() for line in lines if line.startswith("error:")]
    hints = [line.removeprefix("hint:").strip() for line in lines if line.startswith("hint:")]
    why = errors[0] if errors else (lines[-1] if lines else f"it ended with {code}")
    return StateConflictError(
        f"{agent} did not begin on #{number}: {why}",
        unchanged="nothing was started.",
        hint=hints[0] if hints else f"genba run {agent} --issue {number}",
    )
