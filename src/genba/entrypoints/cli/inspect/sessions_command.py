"""`genba sessions`: every session of the project, whether `genba work` or `genba run` started it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from genba.application.sessions.liveness import current_sessions
from genba.coordination.engine.worker_liveness import SUSPENDED
from genba.domain.events import LoopEnded, RunEnded, RunResumed, RunStarted
from genba.domain.fleet.records import FleetSession
from genba.entrypoints.cli.decide.decision_commands import columns, fleet_board, titles
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.inspect.task_commands import NUMBER
from genba.entrypoints.cli.project_lookup import project_for_reading
from genba.entrypoints.cli.rendering.fleet_views import session_lines
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.wiring import ProjectContext


@click.command("sessions")
@click.argument("number", type=NUMBER, required=False, metavar="[TASK]")
@click.option("--all", "ended_too", is_flag=True, help="Include the ended ones.")
@click.option("--agent", "agent_name", metavar="NAME", help="Only sessions of this agent.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sessions(number: int | None, ended_too: bool, agent_name: str | None, as_json: bool) -> None:
    """List sessions, started by `genba run` or `genba work`.

    With TASK: all sessions of the task. Without: the newest session of every open task, and what runs without a task.
    """
    context = project_for_reading()
    matches = [each for each in _sessions(context, number, ended_too) if agent_name in (None, each.agent)]
    if as_json:
        print_json([_facts(each) for each in matches])
        return
    if not matches:
        _show_none(context, number, ended_too or agent_name is not None)
        return
    named = titles(context, {each.task for each in matches if each.task})
    for line in session_lines(matches, named, datetime.now(UTC), columns()):
        click.echo(line)
    if any(each.status == SUSPENDED for each in matches):
        show_hint("genba work   continues stopped sessions")


def _facts(session: FleetSession) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(session)
    return {**facts, "task": session.task or None}


def _show_none(context: ProjectContext, number: int | None, ended_too: bool) -> None:
    """Say whether there was never a session, or all of them have ended."""
    ended = number is None and not ended_too and any(True for _ in _all_sessions(context))
    click.echo("no session is open; all have ended" if ended else "no sessions", err=True)
    show_hint("genba sessions --all" if ended else "genba work" if number is None else f"genba task show {number}")


def _sessions(context: ProjectContext, number: int | None, ended_too: bool) -> list[FleetSession]:
    if number is not None:
        board = fleet_board(context)
        board.board.get(number)
        return current_sessions(context, board, board.sessions(number))
    if ended_too:
        return sorted(_all_sessions(context), key=lambda each: each.started_at, reverse=True)
    running = [each for each in _without_task(context) if each.status != "ended"]
    if not context.has_board():
        return running
    board = fleet_board(context)
    return current_sessions(context, board, list(board.field().sessions)) + running


def _all_sessions(context: ProjectContext) -> Iterator[FleetSession]:
    known = set()
    if context.has_board():
        board = fleet_board(context)
        recorded = [each for task in board.board.find() for each in board.sessions(task.number)]
        known = {each.run for each in recorded}
        yield from current_sessions(context, board, recorded)
    yield from (each for each in _without_task(context) if each.run not in known)


def _without_task(context: ProjectContext) -> Iterator[FleetSession]:
    """The sessions that only their journals record."""
    for path in context.journals():
        session = session_of_journal(context, path)
        if session is not None and session.task == 0:
            yield session


def session_of_journal(context: ProjectContext, path: Path) -> FleetSession | None:
    """A session as its journal records it; its task is 0 where it names none. None for a file without a start."""
    started: RunStarted | None = None
    ended: RunEnded | None = None
    spent: LoopEnded | None = None
    iterations, last = 0, ""
    for event in context.ports.journals.read(path, output=False):
        last = event.time
        match event:
            case RunStarted():
                started = event
            case RunResumed():
                ended = None
            case RunEnded():
                ended = event
            case LoopEnded():
                spent = event
        iterations = max(iterations, event.iteration or 0)
    if started is None:
        return None
    running = ended is None and context.is_running(started.workspace.branch)
    usage = ended.usage if ended is not None else spent.usage if spent is not None else None
    return FleetSession(
        run=started.run,
        task=started.issue or 0,
        agent=started.agent,
        attempt=1,
        status="running" if running else "ended" if ended is not None else SUSPENDED,
        branch=started.workspace.branch,
        base=started.workspace.base,
        base_branch=started.workspace.base_branch,
        outcome=str(ended.outcome) if ended is not None else "",
        reason=ended.reason if ended is not None else "",
        iterations=ended.iterations if ended is not None else iterations,
        tokens=usage.tokens if usage is not None else 0,
        cost_usd=usage.cost_usd if usage is not None else 0.0,
        started_at=started.time,
        heartbeat_at=last,
        ended_at=last if ended is not None else "",
    )
