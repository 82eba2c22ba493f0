"""What many rounds came to, kept for the page of numbers."""

import statistics
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from bench import ledgers, machine
from bench.measuring import Row
from tests.chaos.trouble import boundaries

ABOUT = (
    "Rounds of chaos: a fleet works on a project while processes, connections and disks fail. Recovery is "
    "measured on SQLite with a single executor, without the start of a Python interpreter."
)
_NONE = ("lost commits", "doubled merges", "false done", "leftovers", "other findings")
"""What there must be none of."""
_DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


MANY_ROUNDS = 2 * len(boundaries())
"""After so many everybody has died at every boundary, on both databases."""
_SUMS = (
    "rounds",
    "rounds with findings",
    "tasks",
    "merges",
    "approved by a person",
    "ended by itself",
    *_NONE,
    "seconds",
)


def recovery(seconds: Iterable[float]) -> dict[str, Any]:
    each = sorted(round(one, 3) for one in seconds)
    return {
        "times": len(each),
        "median seconds": round(statistics.median(each), 3) if each else 0.0,
        "worst seconds": each[-1] if each else 0.0,
        "each": each,
    }


def seeds(played: Iterable[int]) -> str:
    """As `1-20, 31`."""
    runs: list[list[int]] = []
    for seed in sorted(played):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def added(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What two sittings found together."""
    sums = {name: before[name] + found[name] for name in _SUMS}
    return {
        **found,
        **sums,
        "seeds": f"{before['seeds']}, {found['seeds']}",
        **{name: dict((Counter(before[name]) + Counter(found[name])).most_common()) for name in ("troubles", "missed")},
        "boundaries": {name: sorted({*at, *found["boundaries"][name]}) for name, at in before["boundaries"].items()},
        "recovered": recovery([*before["recovered"]["each"], *found["recovered"]["each"]]),
        "not run": sorted({*before["not run"], *found["not run"]}),
    }


def _source() -> str:
    """The product, and who plays and judges: a round of another player is another measure."""
    return ledgers.source("src", "tests/chaos")


def played_before(asked: range, folder: Path = ledgers.FOLDER) -> str:
    """Those of some seeds that the ledger of the same product has already."""
    last = ledgers.read(folder).get("chaos")
    if last is None or not _source() or last.more["source"] != _source():
        return ""
    known: set[int] = set()
    for run in last.more["found"]["seeds"].split(", "):
        first, _, end = run.partition("-")
        known |= set(range(int(first), int(end or first) + 1)) if first else set()
    return seeds(known & set(asked))


class Measured(msgspec.Struct, frozen=True):
    """What is about to be played with: as it is before the first round, and must be after the last one."""

    source: str
    commit: str
    machine: dict[str, str]


def measured() -> Measured:
    return Measured(_source(), ledgers.commit(), machine.facts())


class OtherCodeError(Exception):
    """The product or the player was changed while it was played: the measured code is unknown."""


def keep(found: dict[str, Any], command: str, of: Measured, add: bool = False, folder: Path = ledgers.FOLDER) -> None:
    source = of.source
    if _source() != source:
        raise OtherCodeError
    last = ledgers.read(folder).get("chaos") if add else None
    if last is not None and source and last.more["source"] == source:
        found, command = added(last.more["found"], found), f"{last.command}, {command}"
    rounds = f"{found['rounds']} rounds, {found['tasks']:,} tasks, {found['merges']:,} merges"
    every = len(boundaries())
    at = ", ".join(f"{len(found['boundaries'][name])} of {every} on {message}" for name, message in _DATABASES.items())
    rows = [Row(f"chaos: {name}", f"{found[name]} in {rounds}", float(found[name]), 0.0) for name in _NONE]
    times = found["recovered"]
    figure = f"{times['median seconds']:.2f} s as a rule, {times['worst seconds']:.2f} s at worst, of {times['times']}"
    rows.append(Row("chaos: from the death of a fleet to the next event", figure, times["median seconds"]))
    rows.append(Row("chaos: boundaries between two steps at which somebody died", at))
    if found["rounds"] >= MANY_ROUNDS:
        missing = sum(every - len(found["boundaries"][name]) for name in _DATABASES)
        rows.append(Row("chaos: boundaries at which nobody died", f"{missing} of {2 * every}", float(missing), 0.0))
        left_out = ", ".join(found["not run"]) or "none"
        rows.append(Row("chaos: kinds of trouble that were left out", left_out, float(len(found["not run"])), 0.0))
    asked = f"{found['approved by a person']} times, about locks of git in the checkout of the user or on the target"
    rows.append(Row("chaos: a person was asked, and let it go on", asked))
    ledgers.write(
        "chaos", ABOUT, command, rows, machine=of.machine, commit_=of.commit, folder=folder, source=source, found=found
    )
