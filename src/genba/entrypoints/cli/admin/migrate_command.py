"""`genba migrate`: create the tables of the blackboard and the engine."""

import click

from genba.application.verification.decisions import people_only
from genba.entrypoints.cli.project_lookup import project_here
from genba.entrypoints.cli.rendering.json_output import print_json


@click.command("migrate")
@click.option("--adopt", is_flag=True, help="Take over an SQLite file that belongs to another repository.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def migrate(adopt: bool, as_json: bool) -> None:
    """Create the tables of the database."""
    from genba.blackboard.database.connect import migrate as create_tables  # noqa: PLC0415  (only here)
    from genba.coordination.engine.durable_engine import make_tables  # noqa: PLC0415  (only here)

    context = project_here()
    people_only(context, "change the tables")
    address = context.database()
    before, after = create_tables(address)
    make_tables(address)
    if adopt:
        context.adopt()
    if as_json:
        print_json({"from": before, "to": after, "changed": before != after})
    elif before == after:
        click.echo(f"the tables are up to date: {after}")
    else:
        click.echo(f"the tables were created: {after}")
