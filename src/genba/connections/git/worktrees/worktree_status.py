"""What git shows of a working tree, asked from outside of it."""

import asyncio
from pathlib import Path

import msgspec

from genba.connections.git.agent_trees.staging import Staged, stage
from genba.connections.git.repository.commands import Git
from genba.connections.git.scanning.commit_range import changes_over, commits_over, parse_changes, parse_rows
from genba.connections.git.worktrees.status_cache import Status, take_prints
from genba.domain.errors import GitError
from genba.domain.sessions.evidence import Commit
from genba.domain.sessions.workspaces import Workspace

_NAMES = ("log", "-z", "--name-only", "--no-renames", "--format=")


class Look(msgspec.Struct, frozen=True):
    """What git shows of a working tree and its branch, all asked at once."""

    status: Status
    staged: str = ""
    """The tree of all that is there, where that is not what was committed."""
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
    seen, work = await asyncio.gather(
        staged(git, Path(workspace.path), Path(workspace.git_dir)),
        _work(git, workspace.base, workspace.branch),
        return_exceptions=True,
    )
    if isinstance(seen, BaseException):
        raise seen
    status = (seen.head, seen.on, seen.dirty)
    if isinstance(work, GitError):
        return Look(status, seen.tree, problem=work.message)
    if isinstance(work, BaseException):
        raise work
    return Look(status, seen.tree, *work)


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
    seen = await staged(git, tree, git_dir)
    return seen.head, seen.on, seen.dirty


async def staged(git: Git, tree: Path, git_dir: Path) -> Staged:
    """The same, with the tree of all that is there. What has not changed since the last look is not looked at again."""
    if (git.git_dir / "genba" / "private" / git_dir.name).is_dir():  # an agent may write there right now
        return await stage(git, tree, git_dir)
    prints, taken = take_prints(tree, git_dir, git.git_dir)
    known = git.stillness.recall(tree, prints)
    if known is not None and await git.commit_of(f"refs/heads/{known[1]}") == known[0]:
        return Staged(*known)
    seen = await stage(git, tree, git_dir)
    git.stillness.remember(tree, prints, taken, (seen.head, seen.on, seen.dirty))
    return seen


def parse_names(output: str) -> tuple[str, ...]:
    return tuple(sorted({name for name in output.split("\0") if name.strip("\n")}))
