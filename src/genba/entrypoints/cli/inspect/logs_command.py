"""`genba logs`: which runs there were, and what one did."""

from datetime import datetime
from pathlib import Path

import click
import msgspec

from genba.domain.errors import NotFoundError, UsageError
from genba.domain.events import AgentOutput, Event, IterationStarted, ReplyReceived, RunEnded, RunResumed, RunStarted
from genba.entrypoints.cli.project_lookup import house_to_look
from genba.entrypoints.cli.rendering.event_lines import duration
from genba.entrypoints.cli.rendering.plain_view import PlainView
from genba.entrypoints.cli.rendering.printable import printable
from genba.entrypoints.cli.rendering.tables import table
from genba.wiring import ProjectContext, read_journal


@click.command("logs")
@click.argument("run", required=False)
@click.argument("goal", required=False, metavar="")
@click.option("--agent", "agent_name", metavar="NAME", help="Only runs of this agent.")
@click.option("--issue", type=int, help="Only runs on this issue.")
@click.option("--prompts", is_flag=True, help="With RUN: also what was asked.")
@click.option("--output", is_flag=True, help="With RUN: also what the agent printed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: one object for each run or event.")
def logs(
    run: str | None,
    goal: str | None,
    agent_name: str | None,
    issue: int | None,
    prompts: bool,
    output: bool,
    as_json: bool,
) -> None:
    """List the runs of this project, or show what RUN did.

    `genba logs goal NAME` prints the whole output of a goal that was checked.
    """
    context = house_to_look()
    if goal is not None:
        if run != "goal":
            raise UsageError(f'"{goal[:80]}" is one word too many', hint="genba logs RUN   or   genba logs goal NAME")
        click.echo(printable(context.results().log(goal)), nl=False)
        return
    if run is not None:
        _show(_journal(context, run), prompts, output, as_json)
        return
    runs = [summary for path in context.journals() if (summary := _summary(context, path)) is not None]
    runs = [r for r in runs if agent_name in (None, r.agent) and issue in (None, r.issue)]
    if as_json:
        for each in runs:
            click.echo(msgspec.json.encode(each).decode())
        return
    if not runs:
        click.echo("no runs yet", err=True)
        return
    rows = [("run", "issue", "outcome", "iterations", "time", "branch")]
    rows += [
        (
            each.run,
            f"#{each.issue}" if each.issue is not None else "-",
            each.outcome,
            str(each.iterations),
            duration(each.seconds),
            each.branch,
        )
        for each in runs
    ]
    for line in table(rows):
        click.echo(line)


def _journal(context: ProjectContext, run: str) -> Path:
    """Where a run wrote. One that was lost before it wrote anything is told of all the same."""
    try:
        return context.find_journal(run)
    except NotFoundError as unknown:
        raise _of_session(context, run) or unknown from None


def _of_session(context: ProjectContext, run: str) -> NotFoundError | None:
    if not context.has_board():
        return None
    from genba.entrypoints.cli.decide.decision_commands import fleet_board  # noqa: PLC0415  (most runs have a journal)

    try:
        session = fleet_board(context).session(run)
    except NotFoundError:
        return None
    why = session.reason or f"it is {session.status}"
    return NotFoundError(f"{run} has written nothing down here: {why}", hint=f"genba sessions {session.task}")


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    agent: str
    issue: int | None
    started: str
    outcome: str
    reason: str
    iterations: int
    seconds: float
    branch: str
    merged: str
    journal: str


def _seconds_between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _summary(context: ProjectContext, path: Path) -> RunSummary | None:
    started: RunStarted | None = None
    ended: RunEnded | None = None
    iterations, last = 0, ""
    for event in read_journal(path, output=False):
        last = event.time
        if isinstance(event, RunStarted):
            started = event
        elif isinstance(event, RunResumed):
            ended = None
        elif isinstance(event, RunEnded):
            ended = event
        elif event.iteration is not None:
            iterations = max(iterations, event.iteration)
    if started is None:
        return None
    return RunSummary(
        run=started.run,
        agent=started.agent,
        issue=started.issue,
        started=started.time,
        outcome=str(ended.outcome)
        if ended
        else ("running" if context.is_running(started.workspace.branch) else "cut off"),
        reason=ended.reason if ended else "",
        iterations=ended.iterations if ended else iterations,
        seconds=ended.seconds if ended else _seconds_between(started.time, last),
        branch=started.workspace.branch,
        merged=ended.merged if ended else "",
        journal=str(path),
    )


def _show(path: Path, prompts: bool, output: bool, as_json: bool) -> None:
    view = PlainView(_print)
    for event in read_journal(path, output=output or as_json):
        if as_json:
            click.echo(msgspec.json.encode(event).decode())
            continue
        _more(event, prompts, output)
        view(event)


def _more(event: Event, prompts: bool, output: bool) -> None:
    if prompts and isinstance(event, IterationStarted):
        _print(f"   prompt   {event.prompt_from}")
        for line in event.prompt.splitlines():
            _print(f"   │ {line}")
    if output and isinstance(event, ReplyReceived):
        result = event.text if event.structured is None else msgspec.json.encode(event.structured).decode()
        for line in result.splitlines():
            _print(f"   reply  │ {line}")
    if output and isinstance(event, AgentOutput):
        for line in event.text.split("\n"):
            _print(f"   {event.stream} │ {line}")


def _print(line: str) -> None:
    click.echo(printable(line))
