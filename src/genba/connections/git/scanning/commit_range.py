"""What lies between two commits: the commits of the span, and what is different at its end."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.loose_objects import read_changes, read_span
from genba.connections.git.repository.object_cache import Memory
from genba.domain.errors import GitError
from genba.domain.hashes import is_hash

_COMMITS = ("log", "-z", "--boundary", "--format=%m%x00%H%x00%T%x00%P%x00%s")
"""The commits of a span, and behind a `-` those that it begins at: their trees tell which commits change nothing."""
_BOUNDARY = "-"
_CHANGES = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--abbrev=64")


class Row(NamedTuple):
    """A commit of a span."""

    mark: str
    sha: str
    tree: str
    parents: str
    subject: str

    @property
    def is_own(self) -> bool:
        """Whether it belongs to the span; otherwise the span begins at it."""
        return self.mark != _BOUNDARY


class Change(NamedTuple):
    """A file that is not the same at both ends."""

    status: str
    path: str
    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str


async def commits_over(git: Git, base: str, commit: str) -> str:
    """The commits from a base to a commit, as `parse_rows` reads them."""
    args = (*_COMMITS, f"{base}..{commit}")
    result = _read(git, (base, commit), args, read_span) or await asked(git, (base, commit), *args)
    for row in parse_rows(result):
        git.memory.know(row.sha, row.tree, tuple(row.parents.split()))
    return result


async def changes_over(git: Git, base: str, commit: str) -> str:
    """What differs between two commits, as `diff-tree --raw -z` tells it."""
    args = (*_CHANGES, base, commit)
    return _read(git, (base, commit), args, read_changes) or await asked(git, (base, commit), *args)


def changes_between(git: Git, base: str, commit: str) -> list[Change] | None:
    """The same without asking git; None where only git can tell."""
    args = (*_CHANGES, base, commit)
    result = git.memory.answers.get(args)
    if result is None:
        result = read_changes(git.git_dir, git.memory, base, commit)
    if result:
        git.memory.answers.put(args, result)
    return None if result is None else parse_changes(result)


def _read(
    git: Git, about: tuple[str, str], args: tuple[str, ...], read: Callable[[Path, Memory, str, str], str | None]
) -> str:
    """The answer without a process, remembered like one of git's; empty where git must be asked."""
    if not all(map(is_hash, about)):
        return ""
    result = git.memory.answers.get(args)
    if result is None and (result := read(git.git_dir, git.memory, *about)):
        git.memory.answers.put(args, result)
    return result or ""


async def asked(git: Git, about: tuple[str, ...], *args: str) -> str:
    """The answer of git, remembered where all that it is about is named by whole hashes."""
    return await git.fixed(*args) if all(map(is_hash, about)) else (await git.run(*args)).stdout


def parse_rows(output: str) -> list[Row]:
    """The commits of a span, newest first. No text of a commit can pose as another one."""
    fields = output.split("\0")
    return [Row(*row) for row in zip(fields[::5], fields[1::5], fields[2::5], fields[3::5], fields[4::5], strict=False)]


def parse_changes(output: str) -> list[Change]:
    """The lines of `diff-tree --raw -z`: a header and a path for each file."""
    fields = output.split("\0")
    found = []
    for header, path in zip(fields[::2], fields[1::2], strict=False):
        columns = header.lstrip(":").split(" ")
        if len(columns) != 5:  # noqa: PLR2004  (two modes, two blobs, a status)
            raise GitError(f"git printed a change that cannot be read: {header[:80]}")
        old_mode, new_mode, old_blob, new_blob, status = columns
        found.append(Change(status[0], path, old_mode, new_mode, old_blob, new_blob))
    return found
