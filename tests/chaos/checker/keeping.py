"""What was ever committed is there, and a ref leads to it."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.checker.findings import Finding, Law
from tests.chaos.checker.repository import Repository
from tests.chaos.checker.rows import Board

COMMITS, STARTS, DOUBLED = "commits.txt", "starts.txt", "doubled.txt"
_NAME = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_MOST_TROUBLE = 5


def whole(board: Board, repository: Repository) -> Iterator[Finding]:
    """Neither git nor the database is damaged."""
    for trouble in board.trouble:
        yield Finding(Law.WHOLE, f"the database: {trouble}")
    if not repository.commits or repository.trouble:
        yield Finding(Law.WHOLE, f"git cannot follow its refs: {repository.trouble or 'there are none'}")
    done = repository.git("fsck", "--connectivity-only", "--no-dangling", "--no-progress")
    if done.returncode:
        lines = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
        yield Finding(Law.WHOLE, f"git fsck: {'; '.join(lines[:_MOST_TROUBLE])}")


def nothing_lost(board: Board, repository: Repository, home: Path) -> Iterator[Finding]:
    """Every commit that an agent made, and every one that the database names."""
    output = set(_words(home / COMMITS))
    if not output:
        yield Finding(Law.NOTHING_LOST, f"no agent has said in {COMMITS} which commits it made")
    for name in sorted(output - set(repository.commits)):
        there = "no ref leads to it" if repository.object(name)[0] == "commit" else "it is not there"
        yield Finding(Law.NOTHING_LOST, f"an agent made {name}, and {there}")
    for name, where in sorted(_named(board).items()):
        if name not in repository.commits and (why := _why_lost(repository, name)):
            yield Finding(Law.NOTHING_LOST, f"{where} names {name}, and {why}")


def _why_lost(repository: Repository, name: str) -> str:
    """Empty when nothing was lost: a tree, or a merge that the queue tried and that did not land.

    Such a merge has nothing of its own: what it was made of can be reached.
    """
    kind, _ = repository.object(name)
    if kind == "missing":
        return "it is not there"
    parents = repository.parents_of(name)
    if parents is None:
        return ""
    tried = len(parents) > 1 and all(_is_made_of_kept(repository, parent) for parent in parents)
    return "" if tried else "no ref leads to it"


def _is_made_of_kept(repository: Repository, name: str) -> bool:
    """Whether a commit can be reached, or is such a merge itself: one is tried on top of another."""
    if name in repository.commits:
        return True
    parents = repository.parents_of(name)
    return parents is not None and len(parents) > 1 and all(_is_made_of_kept(repository, each) for each in parents)


def _named(board: Board) -> dict[str, str]:
    """By the name of an object: which table names it first."""
    found: dict[str, str] = {}
    for table, rows in board.tables.items():
        for row in rows:
            for column, value in row.items():
                if isinstance(value, str) and value:
                    for name in _NAME.findall(value):
                        found.setdefault(name, f"{table}.{column}")
    return found


def _words(path: Path) -> list[str]:
    return path.read_text("utf-8", "replace").split() if path.is_file() else []
