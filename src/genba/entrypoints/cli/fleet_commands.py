"""What people tell a fleet: pause, resume, stop; answer, approve, reject; and what waits for them.

Law: a command only writes down what was decided. The fleet draws the consequences, now or when it works again.
"""

import sys
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from genba.blackboard.fleet import FleetBoard
from genba.coordination.attendance import absent
from genba.domain.errors import NotFoundError, UsageError
from genba.domain.fleet import Escalation, EscalationKind, FleetSession
from genba.entrypoints.cli.deciding import approve_task, onward, open_one, people_only, the_one, waiting
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.fleet_views import PARKED, escalation_lines, escalation_page, session_lines
from genba.entrypoints.cli.houses import house_to_look
from genba.entrypoints.cli.json_output import print_json
from genba.entrypoints.cli.task_commands import NUMBER
from genba.wiring import House

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_TASK = click.argument("number", type=NUMBER, required=False, metavar="[TASK]")


# ── pause, resume, stop ──────────────────────────────────────────────────────────────────────────────────────────────


@click.command("pause")
@_TASK
@_JSON
def pause(number: int | None, as_json: bool) -> None:
    """Begin nothing new in the project, while what runs goes on; or let one task wait, with its session parked."""
    house = house_to_look()
    actor = people_only(house, "pause the fleet")
    board = fleet_board(house)
    if number is None:
        board.pause_project(True, actor)
        _told(board, as_json, "paused: nothing new begins; what runs now goes on", "genba resume")
        return
    board.hold(number, True, actor)
    _told(
        board,
        as_json,
        f"#{number} is paused: what runs of it is parked, and nobody begins or goes on with it",
        f"genba resume {number}",
        number,
    )


@click.command("resume")
@_TASK
@_JSON
def resume(number: int | None, as_json: bool) -> None:
    """Let the project, or one task, go on after `genba pause` or `genba stop`."""
    house = house_to_look()
    actor = people_only(house, "resume the fleet")
    board = fleet_board(house)
    if number is None:
        board.pause_project(False, actor)
        board.stop_all(False, actor)
        _told(board, as_json, "the project goes on", onward(board))
        return
    board.hold(number, False, actor)
    asked = open_one(board, number)
    if asked is not None and asked.kind is EscalationKind.STOPPED:
        board.decide(number, True, "resumed", actor)
        asked = open_one(board, number)
    hint = f"genba escalations show {number}   waits for you" if asked is not None else onward(board)
    _told(board, as_json, f"#{number} goes on", hint, number)


@click.command("stop")
@_TASK
@click.option("--reason", default="", help="Why; shown to whoever looks at it.")
@_JSON
def stop(number: int | None, reason: str, as_json: bool) -> None:
    """Park what runs now: all of it, and every `genba work` ends; or one task, until you decide. Nothing is lost."""
    house = house_to_look()
    actor = people_only(house, "stop the fleet")
    board = fleet_board(house)
    if number is None:
        board.stop_all(True, actor)
        told = "told to stop: every genba work parks its sessions and ends; branches and commits stay"
        _told(board, as_json, told, "genba resume   then  genba work")
        return
    task = board.board.get(number)
    board.hold(number, True, actor)
    asked = reason or f"stopped by {actor.name}"
    board.escalate(Escalation(task=number, kind=EscalationKind.STOPPED, question=asked), None)
    told = f"#{number} is told to stop: what runs of it is parked; its branch and its commits stay"
    _told(board, as_json, told, f"genba resume {task.number}", number)


# ── what waits for people ────────────────────────────────────────────────────────────────────────────────────────────


@click.group("escalations", invoke_without_command=True)
@click.option("--all", "decided_too", is_flag=True, help="The decided ones too.")
@_JSON
@click.pass_context
def escalations(ctx: click.Context, decided_too: bool, as_json: bool) -> None:
    """List what only a person can decide, with the command to type."""
    if ctx.invoked_subcommand is not None:
        return
    house = house_to_look()
    found = fleet_board(house).escalations(open_only=not decided_too) if house.has_board() else []
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("nothing waits for you", err=True)
        return
    for line in escalation_lines(found, _titles(house, {each.task for each in found}), datetime.now(UTC), columns()):
        click.echo(line)


@escalations.command("show")
@click.argument("number", type=NUMBER)
@_JSON
def show(number: int, as_json: bool) -> None:
    """Show everything that is needed to decide: what was tried, the goals, the branch, the plan."""
    board = fleet_board(house_to_look())
    task = board.board.get(number)
    found = waiting(board, number) or [each for each in board.escalations(open_only=False) if each.task == number][-1:]
    if not found:
        raise NotFoundError(f"nothing about task #{number} was ever escalated", hint="genba escalations")
    sessions, last = board.sessions(number), board.board.last_verification(number)
    plan = next((each for each in reversed(board.field().plans) if each.task == number), None)
    if as_json:
        facts: dict[str, Any] = {"escalations": found, "task": task, "sessions": sessions, "verification": last}
        print_json(facts | {"plan": plan})
        return
    for at, each in enumerate(found):
        if at:
            click.echo("")
        for line in escalation_page(each, task, sessions, last, plan, datetime.now(UTC), columns()):
            click.echo(line)


@click.command("answer")
@click.argument("number", type=NUMBER)
@click.argument("text")
@_JSON
def answer(number: int, text: str, as_json: bool) -> None:
    """Answer what a task waits for; - reads standard input. Its session goes on with the answer."""
    house = house_to_look()
    actor = people_only(house, "answer for a person")
    board = fleet_board(house)
    said = _said(text, f'genba answer {number} "…"')
    the_one(board, number, "an answer")
    board.answer(number, said, actor)
    _told(board, as_json, f"#{number} is answered", onward(board), number)


@click.command("approve")
@click.argument("number", type=NUMBER)
@click.argument("commit", required=False)
@click.option("--reason", default="", help="Why; kept with the decision.")
@_JSON
def approve(number: int, commit: str | None, reason: str, as_json: bool) -> None:
    """Say yes to what a task waits for: a commit, a plan, another attempt. With a commit: only to that one."""
    house = house_to_look()
    decided = approve_task(house, number, commit, reason)
    _told(fleet_board(house), as_json, f"#{number} is approved: {decided.what}", decided.hint, number)


@click.command("reject")
@click.argument("number", type=NUMBER)
@click.option("--reason", required=True, help="What must be different; its author reads it.")
@_JSON
def reject(number: int, reason: str, as_json: bool) -> None:
    """Say no to what a task waits for, and why. The reason goes back to the author or the planner."""
    house = house_to_look()
    actor = people_only(house, "reject anything")
    board = fleet_board(house)
    said = _said(reason, f'genba reject {number} --reason "…"')
    kind = the_one(board, number, "a decision").kind
    board.decide(number, False, said, actor)
    goes_on = kind in (EscalationKind.REVIEW, EscalationKind.PLAN)
    hint = onward(board) if goes_on else f"genba task cancel {number}   or let it go on: genba task unblock {number}"
    stays = "" if goes_on else ", and stays as it is"
    _told(board, as_json, f"#{number} is rejected: {kind}{stays}", hint, number)


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@click.command("sessions")
@_TASK
@click.option("--all", "ended_too", is_flag=True, help="Every attempt at every task, the ended ones too.")
@_JSON
def sessions(number: int | None, ended_too: bool, as_json: bool) -> None:
    """List the sessions: of one task all of them, else the newest of every task that has not ended."""
    house = house_to_look()
    found = _sessions(house, number, ended_too)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no sessions", err=True)
        show_hint("genba work" if number is None else f"genba task show {number}")
        return
    for line in session_lines(found, _titles(house, {each.task for each in found}), datetime.now(UTC), columns()):
        click.echo(line)
    if any(each.status == PARKED for each in found):
        show_hint("genba work   goes on with what is parked")


def _sessions(house: House, number: int | None, ended_too: bool) -> list[FleetSession]:
    """What was asked for. A session whose executor has gone, or was killed, does not run: it is parked."""
    if number is None and not house.has_board():
        return []
    board = fleet_board(house)
    if number is not None:
        board.board.get(number)
        found = board.sessions(number)
    elif ended_too:
        found = [each for task in board.board.find() for each in board.sessions(task.number)]
    else:
        found = list(board.field().sessions)
    gone = absent(board) if any(each.status == "running" for each in found) else ()
    return [
        msgspec.structs.replace(each, status=PARKED) if each.status == "running" and each.executor in gone else each
        for each in found
    ]


# ── what they share ──────────────────────────────────────────────────────────────────────────────────────────────────


def fleet_board(house: House) -> FleetBoard:
    """The blackboard as a fleet uses it. It is not made by a mere look."""
    return FleetBoard(house.board(make=False))


def columns() -> int:
    """As wide as the terminal, and never narrower than a screen of 80 columns; in a pipe wide enough for a line."""
    if not sys.stdout.isatty():
        return 160
    import shutil  # noqa: PLC0415  (only a terminal has a width)

    return max(80, shutil.get_terminal_size((100, 24)).columns)


def _titles(house: House, numbers: set[int]) -> dict[int, str]:
    board = house.board(make=False)
    return {number: board.get(number).title for number in numbers}


def _said(text: str, hint: str) -> str:
    if text == "-":
        if sys.stdin is None:
            raise UsageError("there is no standard input to read from", hint=hint)
        text = sys.stdin.read()
    said = text.replace("\0", "").encode("utf-8", "replace").decode().strip()
    if not said:
        raise UsageError("there is nothing said", hint=hint)
    return said


def _told(board: FleetBoard, as_json: bool, sentence: str, hint: str, number: int | None = None) -> None:
    """What was written down, and the next command."""
    if as_json:
        field = board.field()
        state: dict[str, Any] = {"paused": field.paused, "stopping": field.stopping, "held": sorted(field.held)}
        task = board.board.get(number) if number is not None else None
        print_json({"told": sentence, "task": task, **state})
        return
    click.echo(sentence)
    if hint:
        show_hint(hint)
