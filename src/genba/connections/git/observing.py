"""What git shows of a working tree, asked from outside of it."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from genba.connections.git.commands import Git
from genba.connections.git.layers import template_of, written
from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.mounting import read_overlay
from genba.connections.git.spans import changes_over, commits_over, parse_changes, parse_rows
from genba.connections.git.stillness import Status, take_prints
from genba.domain.errors import GitError
from genba.domain.evidence import Commit
from genba.domain.workspaces import Workspace

_MOST_NAMED = 2000
"""Paths that are named to git one by one."""
_NAMES = ("log", "-z", "--name-only", "--no-renames", "--format=")


class Look(msgspec.Struct, frozen=True):
    """What git shows of a working tree and its branch, all asked at once."""

    status: Status
    commits: tuple[Commit, ...] = ()
    """Those over the base, newest first."""
    tree: str = ""
    """That of the newest commit."""
    files: tuple[str, ...] = ()
    """What the commits changed."""
    problem: str = ""
    """Why the branch could not be shown."""

    def of_branch(self) -> tuple[tuple[Commit, ...], str, tuple[str, ...]]:
        """The commits over the base, the tree of the newest, and the files that they changed."""
        if self.problem:
            raise GitError(self.problem)
        return self.commits, self.tree, self.files


async def look(git: Git, workspace: Workspace) -> Look:
    status, work = await asyncio.gather(
        tree_status(git, Path(workspace.path), Path(workspace.git_dir)),
        _work(git, workspace.base, workspace.branch),
        return_exceptions=True,
    )
    if isinstance(status, BaseException):
        raise status
    if isinstance(work, GitError):
        return Look(status, problem=work.message)
    if isinstance(work, BaseException):
        raise work
    return Look(status, *work)


async def _work(git: Git, base: str, branch: str) -> tuple[tuple[Commit, ...], str, tuple[str, ...]]:
    """The commits of a branch over its base, newest first, the tree of the newest, and the files that they changed."""
    tip = await git.commit_of(f"refs/heads/{branch}")
    if tip is None:
        raise GitError(f"there is no branch {branch}")
    if tip == base:
        return (), "", ()
    rows = [row for row in parse_rows(await commits_over(git, base, tip)) if row.is_own]
    commits = tuple(Commit(row.sha, row.subject) for row in rows)
    tree = rows[0].tree if rows else ""
    return commits, tree, await changed_files(git, base, tip)


async def changed_files(git: Git, base: str, tip: str) -> tuple[str, ...]:
    """The files that the commits from a base to a tip changed, merges aside."""
    rows = [row for row in parse_rows(await commits_over(git, base, tip)) if row.is_own]
    if [row.parents for row in rows] == [base]:  # what a single commit changed is what is different
        return tuple(sorted(change.path for change in parse_changes(await changes_over(git, base, tip))))
    return parse_names(await git.fixed(*_NAMES, f"{base}..{tip}"))


async def tree_status(git: Git, tree: Path, git_dir: Path) -> Status:
    """The commit, the branch and the uncommitted paths of a working tree."""
    if (git.git_dir / "genba" / "cells" / git_dir.name).is_dir():  # seen through walls
        return await _asked(git, tree, git_dir)
    prints, taken = take_prints(tree, git_dir, git.git_dir)
    known = git.stillness.recall(tree, prints)
    if known is not None and await git.commit_of(f"refs/heads/{known[1]}") == known[0]:
        return known
    status = await _asked(git, tree, git_dir)
    git.stillness.remember(tree, prints, taken, status)
    return status


async def _asked(git: Git, tree: Path, git_dir: Path) -> Status:
    words = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=all",
             "--no-renames")  # fmt: skip
    only = await _may_differ(git, git_dir)
    named = ("--literal-pathspecs", *words, "--", *only) if only is not None else words
    done = await git.run(*named, tree=tree, git_dir=git_dir)
    head, on, dirty = "", "", []
    for entry in done.stdout.split("\0"):
        if entry.startswith("# branch.oid "):
            head = entry[13:]
        elif entry.startswith("# branch.head "):
            on = "" if entry[14:] == "(detached)" else entry[14:]
        elif entry.startswith("? "):
            dirty.append(entry[2:])
        elif entry[:2] in ("1 ", "u "):
            dirty.append(entry.split(" ", 8 if entry[0] == "1" else 10)[-1])
    return head, on, tuple(sorted(dirty))


async def _may_differ(git: Git, git_dir: Path) -> tuple[str, ...] | None:
    """The only paths of an overlay that can have changed; None where that cannot be told, or the tree is no overlay.

    That is what was written to its layer, and what the commit or the index have otherwise than the template.
    """
    overlay = read_overlay(git.git_dir / "genba" / "cells" / git_dir.name)
    paths = await asyncio.to_thread(written, overlay) if overlay is not None else None
    if overlay is None or paths is None:
        return None
    template = template_of(overlay)
    words = ("-z", "--name-only", "--no-renames", "--ignore-submodules=none")
    committed, staged = await asyncio.gather(
        git.run("diff-tree", "-r", *words, template, "HEAD", "--", git_dir=git_dir),
        git.run("diff-index", "--cached", *words, template, "--", git_dir=git_dir),
    )
    told = {name for done in (committed, staged) for name in done.stdout.split("\0") if name}
    if len(told) > _MOST_NAMED or any("\\" in name for name in told):
        return None
    return (".git", *paths, *sorted(told))


async def snapshot(layout: RepositoryLayout, workspace: Workspace) -> str:
    """The tree as it stands, uncommitted and untracked files included, without touching its index."""
    tree, git_dir = Path(workspace.path), Path(workspace.git_dir)
    with _copied_index(git_dir, layout.own / f"index-{workspace.run}-{os.getpid()}") as index:
        environment = {"GIT_INDEX_FILE": str(index)}
        await layout.git.run("add", "-A", tree=tree, git_dir=git_dir, environment=environment)
        done = await layout.git.run("write-tree", git_dir=git_dir, environment=environment)
    return done.stdout.strip()


def parse_names(output: str) -> tuple[str, ...]:
    return tuple(sorted({name for name in output.split("\0") if name.strip("\n")}))


@contextmanager
def _copied_index(git_dir: Path, copy: Path) -> Iterator[Path]:
    """A copy of an index to work on, gone afterwards."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    try:
        if (git_dir / "index").is_file():
            copy.write_bytes((git_dir / "index").read_bytes())
        yield copy
    finally:
        copy.unlink(missing_ok=True)
