"""Measuring side by side: the contestants take turns in one run, so that a noisy machine disturbs all alike."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Contestant = Callable[[], None]


@dataclass(frozen=True)
class Row:
    """One line of the report. Without a limit it only tells."""

    what: str
    figure: str
    ratio: float | None = None
    limit: float | None = None

    @property
    def holds(self) -> bool:
        return self.limit is None or (self.ratio is not None and self.ratio <= self.limit)


class Found(list[Row]):
    """The rows of a part, and what only its ledger keeps beside them: what a picture is drawn from."""

    def __init__(self, rows: Iterable[Row], **more: object) -> None:
        super().__init__(rows)
        self.more = more


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
    width = max(len(row.what) for row in rows)
    for row in rows:
        ratio = f"{row.ratio:5.2f}×" if row.ratio is not None else " " * 6
        limit = f"at most {row.limit:g}×" if row.limit is not None else ""
        verdict = "" if row.limit is None else ("ok" if row.holds else "TOO SLOW")
        print(f"{row.what:<{width}}  {ratio}  {limit:<13} {verdict:<9} {row.figure}".rstrip())
    return 0 if all(row.holds for row in rows) else 1
