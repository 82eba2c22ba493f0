"""`genba gc`: clear away what ended tasks left, and lose nothing."""

from collections.abc import Sequence

import click

from genba.application.verification.decisions import people_only
from genba.domain.tasks.housekeeping import Collected
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.project_lookup import project_here, run_async
from genba.entrypoints.cli.rendering.columns import rows_of
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.progress import Progress

_KILO = 1024


@click.command("gc")
@click.option("--dry-run", is_flag=True, help="Only show what would go, and what stays and why.")
@click.option("--keep-days", type=click.IntRange(0, 36500), help="Keep what is younger; by default gc.keep_days.")
@click.option("--rescued", is_flag=True, help="Old rescued work too, although nothing else has its commits.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def gc(dry_run: bool, keep_days: int | None, rescued: bool, as_json: bool) -> None:
    """Remove worktrees, merged branches and logs of ended tasks.

    Every commit stays reachable.
    """
    from genba.application.project.garbage_collection import collect  # noqa: PLC0415  (only this command needs it)

    context = project_here()
    people_only(context, "clear anything away")
    days = context.project.fleet.gc.keep_days if keep_days is None else keep_days
    with Progress("looking for what ended tasks left", quiet=as_json):
        found = run_async(collect(context, dry_run=dry_run, keep_days=days, rescued=rescued))
    if as_json:
        print_json({"dry_run": dry_run, "keep_days": days, "collected": found})
        return
    for line in collected_lines(found, dry_run):
        click.echo(line)
    gone = [each for each in found if not each.kept]
    verb = "would go" if dry_run else "went"
    freed = f"{len(gone)} {verb}, {size_text(sum(each.size for each in gone))}"
    kept = f"; {len(found) - len(gone)} stay" if len(gone) < len(found) else ""
    click.echo(f"{freed}{kept}" if found else "nothing to clear away", err=True)
    if dry_run and gone:
        days_word = "" if keep_days is None else f" --keep-days {keep_days}"
        show_hint(f"genba gc{days_word}{' --rescued' if rescued else ''}")


def collected_lines(found: Sequence[Collected], dry_run: bool) -> list[str]:
    """What goes first, then what stays; each with its reason."""
    word = "would go" if dry_run else "gone"
    ordered = sorted(found, key=lambda each: each.kept)
    rows = [
        ("· stays" if each.kept else f"● {word}", each.kind, each.name, size_text(each.size), each.why)
        for each in ordered
    ]
    return [f" {line}" for line in rows_of(rows, (10, 16, 48, 9))]


def size_text(size: int) -> str:
    """A size for people."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < _KILO:
            return f"{amount:.0f} {unit}"
        amount /= _KILO
    return f"{amount:.1f} GB"
