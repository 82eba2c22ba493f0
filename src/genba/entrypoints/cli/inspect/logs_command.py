"""`genba logs`: what a session did."""

import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from genba.domain.errors import NotFoundError, UsageError
from genba.domain.events import AgentOutput, Event, IterationStarted, ReplyReceived, RunEnded, RunResumed, RunStarted
from genba.entrypoints.cli.project_lookup import project_for_reading
from genba.entrypoints.cli.rendering.plain_view import PlainView
from genba.entrypoints.cli.rendering.printable import printable
from genba.wiring import ProjectContext

_POLL_SECONDS = 0.2


@click.command("logs")
@click.argument("session", required=False)
@click.argument("goal", required=False, metavar="")
@click.option("-f", "--follow", is_flag=True, help="Print events as they come, until the session ends.")
@click.option("--prompts", is_flag=True, help="Include the prompts.")
@click.option("--output", is_flag=True, help="Include what the agent printed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: one object for each event.")
def logs(session: str | None, goal: str | None, follow: bool, prompts: bool, output: bool, as_json: bool) -> None:
    """Show what a session did; without a name, the newest.

    `genba sessions` lists them. `genba logs goal NAME` prints the whole output of a goal.
    """
    context = project_for_reading()
    if goal is not None:
        if session != "goal":
            raise UsageError(
                f'unexpected argument "{goal[:80]}"', hint="genba logs SESSION   or   genba logs goal NAME"
            )
        click.echo(printable(context.results().log(goal)), nl=False)
        return
    path = _journal(context, session) if session is not None else next(iter(context.journals()), None)
    if path is None:
        click.echo("no sessions yet", err=True)
        return
    events = _followed(context, path) if follow else context.ports.journals.read(path, output=output or as_json)
    view = PlainView(_print)
    for event in events:
        if as_json:
            click.echo(msgspec.json.encode(event).decode())
            continue
        _show_texts(event, prompts, output)
        view(event)


def _followed(context: ProjectContext, path: Path) -> Iterator[Event]:
    """The events of a session as they are written; ends when the session has ended and nothing holds its branch."""
    branch, ended = "", False
    for events in context.ports.journals.follow(path):
        for event in events:
            match event:
                case RunStarted():
                    branch = event.workspace.branch
                case RunResumed():
                    ended = False
                case RunEnded():
                    ended = True
            yield event
        if not events:
            if ended or not context.is_running(branch):
                return
            time.sleep(_POLL_SECONDS)


def _journal(context: ProjectContext, session: str) -> Path:
    """The journal of a session. Raises NotFoundError with its reason where the session wrote none."""
    try:
        return context.find_journal(session)
    except NotFoundError as unknown:
        raise _without_journal(context, session) or unknown from None


def _without_journal(context: ProjectContext, session: str) -> NotFoundError | None:
    if not context.has_board():
        return None
    from genba.entrypoints.cli.decide.decision_commands import fleet_board  # noqa: PLC0415  (most have a journal)

    try:
        known = fleet_board(context).session(session)
    except NotFoundError:
        return None
    why = known.reason or f"it is {known.status}"
    return NotFoundError(f"{session} has written no journal: {why}", hint=f"genba sessions {known.task}")


def _show_texts(event: Event, prompts: bool, output: bool) -> None:
    if prompts and isinstance(event, IterationStarted):
        _print(f"   prompt   {event.prompt_from}")
        for line in event.prompt.splitlines():
            _print(f"   │ {line}")
    if output and isinstance(event, ReplyReceived):
        reply = event.text if event.structured is None else msgspec.json.encode(event.structured).decode()
        for line in reply.splitlines():
            _print(f"   reply  │ {line}")
    if output and isinstance(event, AgentOutput):
        for line in event.text.split("\n"):
            _print(f"   {event.stream} │ {line}")


def _print(line: str) -> None:
    click.echo(printable(line))
