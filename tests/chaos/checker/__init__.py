"""The independent checker of a round: it reads git, SQL and /proc, and imports nothing of the product.

Law: it only looks. What the product promises is written down here anew, so that a fault of the product cannot hide
itself by being asked about itself.
"""

from pathlib import Path

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


def check(repository: Path, database: str, plan: Plan, home: Path, *, patience: float = 10.0) -> list[Finding]:
    """Everything that is wrong with a field on which all work is over; nothing when all is well.

    `database` is a file or an address, `home` holds what the agents have said, `patience` is how long somebody who is
    about to end may take for it.
    """
    board = Board(database, repository.name)
    with Repository(repository, plan.target) as git:
        found = [
            *whole(board, git),
            *right_ends(board, git, plan),
            *merged_once(board, git, plan),
            *nothing_lost(board, git, home),
            *no_false_done(board, git, plan),
            *green(git, plan),
            *dependencies_first(board, plan),
            *fits(board),
            *one_at_a_time(board, home, plan),
            *settled_once(board),
        ]
        git.close()
        return found + list(nothing_left(board, git, home, patience))
