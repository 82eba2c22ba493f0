"""The independent checker of a round: it reads git, SQL and /proc, and imports nothing of the product.

Law: it only looks. What the product promises is written down here again, so that a fault of the product cannot hide
itself by being asked about itself.
"""

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg

from tests.chaos.checker.findings import Finding, Law
from tests.chaos.checker.history import dependencies_first, fits
from tests.chaos.checker.keeping import nothing_lost, whole
from tests.chaos.checker.landing import green, merged_once, no_false_done, right_ends
from tests.chaos.checker.leftovers import nothing_left
from tests.chaos.checker.repository import Repository
from tests.chaos.checker.rows import Board
from tests.chaos.checker.sessions import one_at_a_time, settled_once
from tests.chaos.plan import Plan

__all__ = ["Finding", "Law", "check"]


def check(repository: Path, database: str, plan: Plan, home: Path, *, patience: float = 30.0) -> list[Finding]:
    try:
        board = Board(database, repository.name)
    except (sqlite3.Error, psycopg.Error) as error:
        return [Finding(Law.WHOLE, f"the database cannot be read: {error}")]
    with Repository(repository, plan.target) as git:
        looks: list[Callable[[], Iterator[Finding]]] = [
            partial(whole, board, git),
            partial(right_ends, board, git, plan),
            partial(merged_once, board, git, plan),
            partial(nothing_lost, board, git, home),
            partial(no_false_done, board, git, plan),
            partial(green, git, plan),
            partial(dependencies_first, board, plan),
            partial(fits, board),
            partial(one_at_a_time, board, home, plan),
            partial(settled_once, board),
        ]
        found = [finding for look in looks for finding in _seen(look)]
        git.close()
        return found + list(_seen(partial(nothing_left, board, git, home, patience)))


def _seen(look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a law finds. What cannot be read at all is a finding too, and stops no other law."""
    try:
        yield from look()
    except Exception as error:  # noqa: BLE001  (the outermost edge: whatever it stumbles over is not as it should be)
        yield Finding(Law.WHOLE, f"something cannot be read: {type(error).__name__}: {error}")
