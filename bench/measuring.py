"""Measuring side by side: the contestants take turns in one run, so that a noisy machine disturbs all alike."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Contestant = Callable[[], None]


@dataclass(frozen=True)
class Row:
    """One line of the report. Without a limit it only tells. `one / another` is a ratio; else it is a count."""

    what: str
    figure: str
    ratio: float | None = None
    limit: float | None = None

    @property
    def holds(self) -> bool:
        return self.limit is None or (self.ratio is not None and self.ratio <= self.limit)

    @property
    def found(self) -> str:
        """The ratio or the count, as it is read."""
        if self.ratio is None:
            return ""
        return f"{self.ratio:.2f}×" if " / " in self.what else f"{round(self.ratio, 2):g}"

    @property
    def most(self) -> str:
        """The limit, as it is read."""
        if self.limit is None:
            return ""
        return f"{self.limit:.3g}×" if " / " in self.what else f"{self.limit:g}"


@dataclass(frozen=True)
class Measured:
    """What a part found that is more than rows. Each field of `more` becomes one of its ledger.

    The page shows one of them: `notes`, a text above the table.
    """

    rows: list[Row]
    more: dict[str, Any] = field(default_factory=dict)


def clean_environment() -> dict[str, str]:
    """As an ordinary shell has it: Python may keep its compiled files."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def command(*words: str, cwd: str | None = None) -> Contestant:
    environment = clean_environment()

    def call() -> None:
        subprocess.run(words, cwd=cwd, env=environment, check=True, capture_output=True)

    return call


def side_by_side(rounds: int, **contestants: Contestant) -> dict[str, float]:
    """The median seconds of each, after a round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, call in contestants.items():
            began = time.perf_counter()
            call()
            if number:
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def report(rows: list[Row]) -> int:
    width = max((len(row.what) for row in rows), default=0)
    for row in rows:
        limit = f"at most {row.most}" if row.most else ""
        verdict = "" if row.limit is None else ("ok" if row.holds else "TOO MUCH")
        print(f"{row.what:<{width}}  {row.found:>7}  {limit:<13} {verdict:<9} {row.figure}".rstrip())
    return 0 if all(row.holds for row in rows) else 1
