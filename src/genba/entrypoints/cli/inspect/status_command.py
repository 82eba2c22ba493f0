"""`genba status`: the short view of the field."""

import shutil
from datetime import UTC, datetime

import click

from genba.application.facilitator.facilitator import as_told
from genba.coordination.facilitator.facilitator import Scope
from genba.entrypoints.cli.inspect.facilitate_command import one_look, tell_rest
from genba.entrypoints.cli.project_lookup import house_to_look, run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.progress import Progress
from genba.entrypoints.cli.rendering.triage_views import screen, status_lines


@click.command("status")
@click.option("--label", default="", metavar="NAME", help="Only the issues with this label.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(label: str, as_json: bool) -> None:
    """Show how the field stands, and what to type next. Nothing is asked of a tracker: `genba sync` does that."""
    context = house_to_look()
    with Progress("looking at every issue and every commit", quiet=as_json):
        look = run_async(one_look(context, Scope(label=label), applied=False, offline=True))
    if as_json:
        print_json(as_told(look))
        return
    columns = screen(shutil.get_terminal_size((100, 24)).columns)
    for line in status_lines(look.brief, datetime.now(UTC), columns):
        click.echo(line)
    tell_rest(look.brief)
