"""`genba facilitate`: the state, the blockers and the next command of each issue, also as comments on it."""

import asyncio
import shutil
from datetime import UTC, datetime

import click
import msgspec

from genba.application.facilitator.event_sources import past_of
from genba.application.facilitator.facilitator import facilitator, fresh_copy, report_of, say, scope_of
from genba.application.verification.decisions import people_only
from genba.coordination.facilitator.facilitator import Scope, TriageResult
from genba.domain.errors import RecoverableError, StateConflictError, UsageError
from genba.domain.facilitation import FieldReport
from genba.entrypoints.cli.failures import show_hint, show_warning
from genba.entrypoints.cli.project_lookup import project_here, run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.progress import Progress
from genba.entrypoints.cli.rendering.triage_views import facilitate_lines, mermaid, screen
from genba.wiring import ProjectContext

_BY_SETTINGS = -1.0


@click.command("facilitate")
@click.option("--project", type=click.IntRange(1), metavar="N", help="Only issues on this GitHub project.")
@click.option("--project-owner", metavar="NAME", help="The owner of the project.  [default: of the repository]")
@click.option("--label", metavar="NAME", help="Only issues with this label.")
@click.option("--apply", "applied", is_flag=True, help="Comment on and label the issues.")
@click.option("--dry-run", is_flag=True, help="Show the comments without sending them.  [default]")
@click.option("--offline", is_flag=True, help="Use the last copy of the issues.")
@click.option(
    "--watch",
    type=float,
    is_flag=False,
    flag_value=_BY_SETTINGS,
    metavar="[MINUTES]",
    help="Repeat.  [default: facilitator.check_interval]",
)
@click.option("--graph", is_flag=True, help="Print the dependencies as a Mermaid graph.")
@click.option("--events", is_flag=True, help="Print all events as JSON lines, oldest first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --watch one line per pass.")
def facilitate(
    project: int | None,
    project_owner: str | None,
    label: str | None,
    applied: bool,
    dry_run: bool,
    offline: bool,
    watch: float | None,
    graph: bool,
    events: bool,
    as_json: bool,
) -> int:
    """Report state, evidence, blockers and next command of issues.

    It never starts an agent, closes an issue, touches a branch, runs a test or merges.
    """
    _check(applied, dry_run, watch, graph or events)
    context = project_here()
    if applied:
        people_only(context, "speak for the facilitator")
    scope = scope_of(context, label, project, project_owner)
    if watch is not None:
        return run_async(_watch(context, scope, applied, offline, watch, as_json))
    with Progress("reading issues and commits", quiet=as_json):
        asked = msgspec.structs.replace(scope, whole=events)
        look = run_async(one_look(context, asked, applied=applied, offline=offline))
    if events:
        for fact in run_async(past_of(context, look.field)):
            click.echo(msgspec.json.encode(fact).decode())
        return _tell_unread(look)
    if graph:
        for line in mermaid(look.report.assessments, look.field):
            click.echo(line)
        return _tell_unread(look)
    if as_json:
        print_json(report_of(look))
    else:
        show_look(look)
    return 1 if look.brief.incomplete else 0


def _tell_unread(look: TriageResult) -> int:
    """Warn of what was never read, and so is missing from what was printed. The exit code."""
    for each in look.brief.unread:
        show_warning(f"not complete: {each}")
    return 1 if look.brief.unread else 0


def _check(applied: bool, dry_run: bool, watch: float | None, shown: bool) -> None:
    if applied and dry_run:
        raise UsageError("--apply and --dry-run exclude each other", hint="genba facilitate --apply")
    if watch is not None and watch != _BY_SETTINGS and not watch > 0:
        raise UsageError("--watch takes a number of minutes above zero", hint="genba facilitate --watch 30")
    if shown and (watch is not None or applied):
        raise UsageError(
            "--graph and --events only show: they go with neither --watch nor --apply", hint="genba facilitate --graph"
        )


async def one_look(context: ProjectContext, scope: Scope, *, applied: bool, offline: bool) -> TriageResult:
    """One pass over all issues; with `applied` it comments and labels them."""
    scope, notes = await fresh_copy(context, scope, offline)
    look = await (await facilitator(context)).look(scope, notes)
    return await say(context, look, offline=offline) if applied else look


async def _watch(
    context: ProjectContext, scope: Scope, applied: bool, offline: bool, minutes: float, as_json: bool
) -> int:
    settings = context.project.fleet.facilitator
    pause = settings.check_interval if minutes == _BY_SETTINGS else minutes
    code = 0
    for round_ in range(settings.iterate_max):
        if round_:
            await asyncio.sleep(pause * 60)
        try:
            look = await one_look(context, scope, applied=applied, offline=offline)
        except (RecoverableError, StateConflictError) as error:  # the next pass may succeed
            show_warning(f"this pass failed: {error.message}")
            code = 1
            continue
        code = 1 if look.brief.incomplete else 0
        if as_json:
            click.echo(msgspec.json.encode(report_of(look)).decode())
        else:
            show_look(look)
    return code


def show_look(look: TriageResult) -> None:
    """The report of a look, what keeps it from being complete, and the next command."""
    report = look.brief
    columns = screen(shutil.get_terminal_size((100, 24)).columns)
    for line in facilitate_lines(report, datetime.now(UTC), columns, look.moves.command_for):
        click.echo(line)
    tell_rest(report)
    for each in report.incomplete:
        show_warning(f"not complete: {each}")
    if report.recommendation.suggestions:
        show_hint(report.recommendation.suggestions[0].command)


def tell_rest(report: FieldReport) -> None:
    """Warn of agents that cannot be read and of an old copy of the issues."""
    for name, problem in report.broken.items():
        show_warning(f"the agent {name} is left out: {problem}   genba agent check {name}")
    for note in report.notes:
        show_warning(note)
