"""What many rounds came to, kept for the page of numbers."""

from typing import Any

from bench import ledgers, page
from bench.measuring import Row

ABOUT = "Rounds of chaos: a fleet on a field of tasks, while everything around it is killed, cut off or filled up."
_NONE = ("lost commits", "doubled merges", "false done", "leftovers", "other findings")
"""What there must be none of."""


def keep(found: dict[str, Any], command: str) -> None:
    """Write the ledger of the rounds, in the place of the last one, and the page anew."""
    rounds = f"{found['rounds']} rounds, {found['tasks']:,} tasks, {found['merges']:,} merges"
    rows = [Row(f"chaos: {name}", f"{found[name]} in {rounds}", float(found[name]), 0.0) for name in _NONE]
    times = found["recovered"]
    figure = f"{times['median seconds']:.2f} s as a rule, {times['worst seconds']:.2f} s at worst, of {times['times']}"
    rows.append(Row("chaos: from the death of a fleet to the next event", figure, times["median seconds"]))
    ledgers.write("chaos", ABOUT, command, rows, found=found)
    page.write()
