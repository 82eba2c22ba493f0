"""What people tell a fleet: pause, resume, stop; answer, approve, reject; and what waits for them.

Law: a command only writes down what was decided. The fleet draws the consequences, now or when it works again.
"""

import sys
from datetime import UTC, datetime
from typing import Any

import click

from genba.application.dashboard.stop_session import stop_all, stop_task
from genba.application.verification.decisions import Decisions, people_only, waiting
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.errors import NotFoundError, UsageError
from genba.domain.views.summary import ActionResult
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.inspect.task_commands import NUMBER
from genba.entrypoints.cli.project_lookup import project_for_reading, run_async
from genba.entrypoints.cli.rendering.fleet_views import escalation_lines, escalation_page
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.wiring import ProjectContext

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_TASK = click.argument("number", type=NUMBER, required=False, metavar="[TASK]")


# ── pause, resume, stop ──────────────────────────────────────────────────────────────────────────────────────────────


@click.command("pause")
@_TASK
@_JSON
def pause(number: int | None, as_json: bool) -> None:
    """Start no new sessions; with TASK, suspend its session.

    Sessions that run continue.
    """
    decisions = _decisions("pause the fleet")
    _print(decisions.board, as_json, decisions.pause(number), number)


@click.command("resume")
@_TASK
@_JSON
def resume(number: int | None, as_json: bool) -> None:
    """Continue the project or a task after a pause or a stop."""
    decisions = _decisions("resume the fleet")
    _print(decisions.board, as_json, decisions.resume(number), number)


@click.command("stop")
@_TASK
@click.option("--reason", default="", help="The reason, shown in status and logs.")
@_JSON
def stop(number: int | None, reason: str, as_json: bool) -> None:
    """Stop all running agents, or the one of a task.

    Without TASK every `genba work` ends. A `genba run` without a task goes on: end it with ctrl-c. No work is lost.
    """
    decisions = _decisions("stop the fleet")
    stopping = stop_all(decisions, reason) if number is None else stop_task(decisions, number, reason)
    _print(decisions.board, as_json, run_async(stopping), number)


# ── what waits for people ────────────────────────────────────────────────────────────────────────────────────────────


@click.group("decisions", invoke_without_command=True)
@click.option("--all", "decided_too", is_flag=True, help="The decided ones too.")
@_JSON
@click.pass_context
def decisions(ctx: click.Context, decided_too: bool, as_json: bool) -> None:
    """List what only a person can decide."""
    if ctx.invoked_subcommand is not None:
        return
    context = project_for_reading()
    found = fleet_board(context).escalations(open_only=not decided_too) if context.has_board() else []
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("nothing waits for you", err=True)
        return
    for line in escalation_lines(found, titles(context, {each.task for each in found}), datetime.now(UTC), columns()):
        click.echo(line)


@decisions.command("show")
@click.argument("number", type=NUMBER)
@_JSON
def show(number: int, as_json: bool) -> None:
    """Show a decision: attempts, goals, branch and plan."""
    board = fleet_board(project_for_reading())
    task = board.board.get(number)
    found = waiting(board, number) or [each for each in board.escalations(open_only=False) if each.task == number][-1:]
    if not found:
        raise NotFoundError(f"nothing about task #{number} was ever escalated", hint="genba decisions")
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
    """Answer the question of a task; - reads standard input.

    Its session continues with the answer.
    """
    decisions = _decisions("answer for a person")
    result = decisions.answer(number, _typed(text, f'genba answer {number} "…"'))
    _print(decisions.board, as_json, result, number)


@click.command("approve")
@click.argument("number", type=NUMBER)
@click.argument("commit", required=False)
@click.option("--reason", default="", help="Why; kept with the decision.")
@_JSON
def approve(number: int, commit: str | None, reason: str, as_json: bool) -> None:
    """Approve what a task waits for.

    That is a commit, a plan, another attempt or a budget. With COMMIT, only that commit.
    """
    decisions = _decisions("approve anything")
    _print(decisions.board, as_json, decisions.approve(number, commit, reason), number)


@click.command("reject")
@click.argument("number", type=NUMBER)
@click.option("--reason", required=True, help="What must be different; its author reads it.")
@_JSON
def reject(number: int, reason: str, as_json: bool) -> None:
    """Reject what a task waits for, with a reason.

    The reason goes back to the author or the planner.
    """
    decisions = _decisions("reject anything")
    result = decisions.reject(number, _typed(reason, f'genba reject {number} --reason "…"'))
    _print(decisions.board, as_json, result, number)


# ── what they share ──────────────────────────────────────────────────────────────────────────────────────────────────


def fleet_board(context: ProjectContext) -> FleetBoard:
    """The blackboard as a fleet uses it. It is not made by a mere look."""
    return FleetBoard(context.board(make=False))


def columns() -> int:
    """As wide as the terminal, and never narrower than a screen of 80 columns; in a pipe wide enough for a line."""
    if not sys.stdout.isatty():
        return 160
    import shutil  # noqa: PLC0415  (only a terminal has a width)

    return max(80, shutil.get_terminal_size((100, 24)).columns)


def titles(context: ProjectContext, numbers: set[int]) -> dict[int, str]:
    """The titles of tasks, by number."""
    if not numbers:
        return {}
    board = context.board(make=False)
    return {number: board.get(number).title for number in numbers}


def _decisions(deed: str) -> Decisions:
    """What the person who types may decide."""
    context = project_for_reading()
    return Decisions(context, people_only(context, deed))


def _typed(text: str, hint: str) -> str:
    """What was typed; - reads standard input. What a suggestion leaves open is no answer."""
    if text.strip() == "…":
        raise UsageError("… stands for your own words", unchanged="nothing was changed.", hint=hint)
    if text != "-":
        return text
    if sys.stdin is None:
        raise UsageError("there is no standard input to read from", hint=hint)
    return sys.stdin.read()


def _print(board: FleetBoard, as_json: bool, result: ActionResult, number: int | None = None) -> None:
    """What was written down, and the next command."""
    if as_json:
        field = board.field()
        state: dict[str, Any] = {"paused": field.paused, "stopping": field.stopping, "held": sorted(field.held)}
        task = board.board.get(number) if number is not None else None
        print_json({"message": result.sentence, "task": task, **state})
        return
    click.echo(result.sentence)
    if result.hint:
        show_hint(result.hint)
