"""`genba agent import`: agents that were written for another tool."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from genba.definitions.climpt.conversion import ConvertedAgent
from genba.definitions.climpt.importing import agents_at, converted, write_imported
from genba.definitions.climpt.report import KeyOutcome
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.project_lookup import project_here
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.printable import printable
from genba.entrypoints.cli.rendering.tables import table

_TITLES = {
    KeyOutcome.MAPPED: "mapped",
    KeyOutcome.NO_EFFECT: "no effect",
    KeyOutcome.NEEDS_ATTENTION: "needs attention",
}


@click.command("import")
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--from", "source", type=click.Choice(["climpt"]), required=True, help="The tool they were written for.")
@click.option("--name", default="", metavar="NAME", help="The name of the new agent; by default its folder's.")
@click.option("--replace", is_flag=True, help="Keep an agent of that name as .NAME.before-import.")
@click.option("--dry-run", is_flag=True, help="Show what would become of each key; write nothing.")
@click.option("--all", "show_all", is_flag=True, help="List every key, not only those that need attention.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_agents(
    path: Path, source: str, name: str, replace: bool, dry_run: bool, show_all: bool, as_json: bool
) -> None:
    """Convert agents of another tool, at PATH.

    PATH is the folder of one agent, or a folder with several. Every key is reported: mapped, without effect, or in need
    of your attention. The original is only read.
    """
    made = converted(agents_at(path), name)
    context = project_here()
    agents = context.project.agents_folder
    if not dry_run:
        context.refuse_links(agents)
    kept = {} if dry_run else write_imported(agents, made, replace)
    if as_json:
        print_json([{"agent": each.name, "files": sorted(each.files), "keys": each.report} for each in made])
        return
    for each in made:
        for line in _lines(each, source, show_all):
            click.echo(printable(line))
        if not dry_run:
            click.echo(f"wrote {len(each.files)} files to .agent/{each.name}")
        if each.name in kept:
            click.echo(f"kept the old one as .agent/{kept[each.name].name}")
    show_hint("genba agent check" if not dry_run else "without --dry-run the agents are written to .agent/")


def _lines(made: ConvertedAgent, source: str, show_all: bool) -> Iterator[str]:
    yield f"{made.name}: from {source}"
    counts = Counter(row.outcome for row in made.report)
    yield from table([(f"  {title}", str(counts[outcome])) for outcome, title in _TITLES.items()])
    shown = [row for row in made.report if show_all or row.outcome is KeyOutcome.NEEDS_ATTENTION]
    rows = [(f"  {_TITLES[row.outcome]}", f"{row.file} {row.key}".strip(), row.detail) for row in shown]
    yield from table(rows)
