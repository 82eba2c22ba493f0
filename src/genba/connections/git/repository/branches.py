"""The branches of a repository, read from its files."""

import os
from pathlib import Path

from genba.domain.hashes import is_hash

_MOST = 50
_DEEPEST = 5
_LONGEST = 4096
_LONGEST_LIST = 1024 * 1024
_HEADS = "refs/heads/"


class _LeftToGit(Exception):
    """Not for here."""


def branches_beside(git_dir: Path, folder: str) -> dict[str, str] | None:
    """The branches that are not in a folder such as `genba/`, each with its commit; None where git must tell.

    It must where there are many, where refs are no files, and where one stands for another.
    """
    try:
        # Files first: git lists a ref before it removes its file.
        loose = dict(_loose(f"{git_dir}/refs/heads", "", folder, 0))
        found = _packed(git_dir, folder) | loose
    except (OSError, UnicodeDecodeError, _LeftToGit):
        return None
    return found if len(found) <= _MOST else None


def _loose(place: str, path: str, aside: str, depth: int) -> list[tuple[str, str]]:
    if depth > _DEEPEST:
        raise _LeftToGit
    found = []
    with os.scandir(place) as entries:
        for entry in entries:
            name = path + entry.name
            if name + "/" == aside:
                continue
            if entry.is_dir(follow_symlinks=False):
                found += _loose(entry.path, f"{name}/", aside, depth + 1)
            elif not name.endswith(".lock"):
                found.append((name, _commit(entry.path)))
            if len(found) > _MOST:
                raise _LeftToGit
    return found


def _commit(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123  (asked for each branch)
        output = file.read(_LONGEST).decode("ascii").strip()
    if not is_hash(output):
        raise _LeftToGit
    return output


def _packed(git_dir: Path, aside: str) -> dict[str, str]:
    try:
        with (git_dir / "packed-refs").open("rb") as file:
            listed = file.read(_LONGEST_LIST + 1)
    except FileNotFoundError:
        return {}
    if len(listed) > _LONGEST_LIST:
        raise _LeftToGit
    found = {}
    for line in listed.decode("utf-8").splitlines():
        commit, _, ref = line.partition(" ")
        if ref.startswith(_HEADS) and not ref.startswith(_HEADS + aside) and is_hash(commit):
            found[ref.removeprefix(_HEADS)] = commit
    return found
