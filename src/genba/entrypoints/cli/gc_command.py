"""`genba gc`: clear away what ended tasks left, and lose nothing."""

from typing import TYPE_CHECKING

import click

from genba.entrypoints.cli.columns import rows_of
from genba.entrypoints.cli.deciding import people_only
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.houses import house_here, run_async
from genba.entrypoints.cli.json_output import print_json

if TYPE_CHECKING:
    from genba.wiring.housekeeping import Collected

_KILO = 1024


@click.command("gc")
@click.option("--dry-run", is_flag=True, help="Only show what would go, and what stays and why.")
@click.option("--keep-days", type=click.IntRange(0, 36500), help="Keep what is younger; by default gc.keep_days.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def gc(dry_run: bool, keep_days: int | None, as_json: bool) -> None:
    """Clear away what ended tasks left: working trees, merged branches, logs. No commit becomes unreachable."""
    from genba.wiring.housekeeping import collect  # noqa: PLC0415  (nobody else needs it)

    house = house_here()
    people_only(house, "clear anything away")
    days = house.project.fleet.gc.keep_days if keep_days is None else keep_days
    found = run_async(collect(house, dry_run=dry_run, keep_days=days))
    if as_json:
        print_json({"dry_run": dry_run, "keep_days": days, "collected": found})
        return
    for line in collected_lines(found):
        click.echo(line)
    total = sum(each.size for each in found)
    verb = "would go" if dry_run else "went"
    click.echo(f"{len(found)} {verb}, {size_text(total)}" if found else "nothing to clear away", err=True)
    if dry_run and found:
        show_hint("genba gc")


def collected_lines(found: "list[Collected]") -> list[str]:
    return [f" {line}" for line in rows_of([(e.kind, e.name, size_text(e.size), e.why) for e in found], (16, 48, 9))]


def size_text(size: int) -> str:
    """A size for people."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < _KILO:
            return f"{amount:.0f} {unit}"
        amount /= _KILO
    return f"{amount:.1f} GB"
