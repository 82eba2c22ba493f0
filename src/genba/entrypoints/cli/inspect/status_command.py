"""`genba status`: the state of every issue and the next command."""

import shutil
from datetime import UTC, datetime

import click

from genba.application.facilitator.facilitator import report_of, report_values
from genba.coordination.facilitator.facilitator import Scope
from genba.domain.facilitation import FieldReport, RecommendAction
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.inspect.facilitate_command import one_look, tell_rest
from genba.entrypoints.cli.project_lookup import project_for_reading, run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.progress import Progress
from genba.entrypoints.cli.rendering.triage_views import screen, status_lines
from genba.judgement.triage.health import health_of
from genba.wiring import ProjectContext


@click.command("status")
@click.option("--label", default="", metavar="NAME", help="Only the issues with this label.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(label: str, as_json: bool) -> None:
    """Show the state of every issue and the next command.

    It asks no tracker: `genba sync` reads the issues again.
    """
    context = project_for_reading()
    if not context.has_board() and context.office() is None:
        _show_empty(context, as_json)
        return
    with Progress("reading issues and commits", quiet=as_json):
        look = run_async(one_look(context, Scope(label=label), applied=False, offline=True))
    if as_json:
        print_json(report_of(look))
        return
    columns = screen(shutil.get_terminal_size((100, 24)).columns)
    for line in status_lines(look.brief, datetime.now(UTC), columns):
        click.echo(line)
    tell_rest(look.brief)


def _show_empty(context: ProjectContext, as_json: bool) -> None:
    """The status of a project without a task. Nothing is written for it."""
    now = datetime.now(UTC)
    none = RecommendAction(
        next_agent="none", target_issues=(), reason="there are no issues", available_agents=(), suggestions=()
    )
    report = FieldReport(
        project=context.project.name or context.layout.main.name,
        looked_at=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        agents=(),
        assessments=(),
        actions=(),
        recommendation=none,
        health=health_of({}, none),
    )
    if as_json:
        print_json(report_values(report, lambda _issue: ""))
        return
    for line in status_lines(report, now, screen(shutil.get_terminal_size((100, 24)).columns)):
        click.echo(line)
    show_hint('genba task add "what is to be done"')
