"""`genba queue`: what is on its way to land, and what is in its way."""

from datetime import UTC, datetime

import click

from genba.domain.fleet.records import EntryStatus
from genba.entrypoints.cli.decide.decision_commands import columns, fleet_board
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.project_lookup import project_for_reading
from genba.entrypoints.cli.rendering.fleet_views import queue_lines
from genba.entrypoints.cli.rendering.json_output import print_json


@click.command("queue")
@click.option("--target", metavar="BRANCH", help="Only what wants to land on this branch.")
@click.option("--all", "ended_too", is_flag=True, help="What has landed or came back too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def queue(target: str | None, ended_too: bool, as_json: bool) -> None:
    """Show the merge queue: order, conflicts and what is stuck."""
    context = project_for_reading()
    found = fleet_board(context).entries(target, open_only=not ended_too) if context.has_board() else []
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("the merge queue is empty", err=True)
        return
    for line in queue_lines(found, datetime.now(UTC), columns()):
        click.echo(line)
    stuck = next((each for each in found if each.status is EntryStatus.STUCK), None)
    if stuck is not None:
        show_hint(f"clear what is in its way; it is tried again by itself   genba task show {stuck.task}")
