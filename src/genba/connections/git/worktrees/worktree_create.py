"""Making working trees: recorded before they are made, so that one that was cut off is never taken for finished."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from genba.connections.git.private.private_repositories import loosely_held, set_aside
from genba.connections.git.repository.committed_links import refuse_committed_links
from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.repository.locks import FileLock, held
from genba.connections.git.repository.stale_locks import clear_locks_of
from genba.connections.git.worktrees.records import TreeRecord, read_record, unfinished, write_record
from genba.connections.git.worktrees.registration import can_register, point, register, register_by_git
from genba.connections.git.worktrees.trash import delete_later, sweep, throw_away
from genba.connections.private_folders import make_private_folder
from genba.connections.removal import remove_tree
from genba.domain.errors import DiskFullError, GitError, StateConflictError
from genba.domain.sessions.branch_naming import folder_name

CLEARING = "clearing"
"""Who holds a branch for the moment in which the rest of a dead run is taken away."""
Fill = Callable[[TreeRecord, Path, tuple[int, ...]], Awaitable[None]]
"""Brings the files into a new working tree, whose folder of git's is given, by a git that keeps some descriptors."""
Held = Callable[[TreeRecord], Mapping[str, str]]
"""Refs, with their commits, that are made together with a new branch."""


NOTHING: Mapping[str, str] = MappingProxyType({})


class TreeMaker:
    """Makes the working tree of a branch, or takes over the one that an earlier run left."""

    def __init__(
        self, layout: RepositoryLayout, fill: Fill | None = None, held: Held = lambda _record: NOTHING
    ) -> None:
        self.layout = layout
        self.fill = fill or self._check_out
        self.held = held

    async def make(
        self, wanted: TreeRecord, root: Path, shared: bool, unheard: bool = False, keeps: tuple[int, ...] = ()
    ) -> tuple[Path, Path]:
        """The folder and the git folder of the working tree, complete.

        `keeps` is the lock of the branch: a git that fills the tree after our death holds it until it is done.
        `shared` allows to go on with the tree of another agent. A branch that is `unheard` of has a name that was made
        for this run alone: it is not looked for, and git refuses it should it be there all the same.
        """
        refuse_committed_links(self.layout, root)
        async with held(self.layout.repository_lock, f"worktree of {wanted.branch}") as lock:
            await self._clear_unfinished(wanted.branch)
            record, git_dir = await self._registered(wanted, root, shared, unheard, lock.descriptors)
        path = Path(record.path)
        if not record.ready:
            point(path, git_dir)
            clear_locks_of(self.layout, record.branch, git_dir)
            await self.fill(record, git_dir, keeps)
        if not record.ready or record.run != wanted.run:
            write_record(self.layout, msgspec.structs.replace(record, ready=True, agent=wanted.agent, run=wanted.run))
        await asyncio.to_thread(sweep, self.layout, root)
        return path, git_dir

    async def _check_out(self, record: TreeRecord, git_dir: Path, keeps: tuple[int, ...]) -> None:
        set_aside(self.layout, git_dir)
        await check_out(self.layout, Path(record.path), git_dir, keeps=keeps)

    async def _registered(
        self, wanted: TreeRecord, root: Path, shared: bool, unheard: bool, keeps: tuple[int, ...]
    ) -> tuple[TreeRecord, Path]:
        """The record of the working tree that is there already, or of a new one."""
        known = read_record(self.layout.tree_record(wanted.branch))
        git_dir = self.layout.find_git_dir_of(Path(known.path)) if known is not None else None
        if known is not None and git_dir is not None and is_folder(Path(known.path)):
            if known.ready and known.agent not in ("", wanted.agent) and not shared:
                raise _of_another(known)
            return known, git_dir
        if git_dir is not None:
            remove_tree(git_dir)
        is_new = (unheard and known is None) or await self._is_new(wanted.branch)
        path = str(_free_path(root, folder_name(wanted.branch)))
        fresh = msgspec.structs.replace(wanted, path=path, new_branch=is_new, ready=False)
        write_record(self.layout, fresh)
        clear_locks_of(self.layout, wanted.branch)
        await self._add(fresh, keeps)
        return fresh, self.layout.git_dir_of(Path(fresh.path))

    async def _is_new(self, branch: str) -> bool:
        """Whether there is no such branch yet. One that is checked out somewhere can have no other working tree."""
        if self.layout.may_be_checked_out(branch) and branch in (checkouts := await self.layout.checkouts()):
            raise _checked_out(branch, checkouts[branch])
        return await self.layout.git.commit_of(f"refs/heads/{branch}") is None

    async def _add(self, record: TreeRecord, keeps: tuple[int, ...]) -> None:
        """A git that goes on after us `keeps` the lock: no other process clears away what it is about to make."""
        try:
            if record.new_branch:
                await self._begin_branch(record, keeps)
            if can_register(self.layout):
                register(self.layout, Path(record.path), record.branch)
            else:
                await register_by_git(self.layout, Path(record.path), record.branch, keeps)
        except DiskFullError:
            raise
        except GitError as error:
            self.layout.tree_record(record.branch).unlink(missing_ok=True)
            output = error.message.splitlines()[-1].removeprefix("fatal: ")
            raise StateConflictError(
                f'no working tree can be made for the branch "{record.branch}": {output}', hint="--branch NAME"
            ) from error

    async def _begin_branch(self, record: TreeRecord, keeps: tuple[int, ...]) -> None:
        """Refused where the branch is there already, or cannot be beside those that are."""
        held = "".join(f"update {name} {commit}\n" for name, commit in self.held(record).items())
        lines = f"create refs/heads/{record.branch} {record.base}\n{held}"
        args = ("update-ref", "-m", f"branch: Created from {record.base}", "--stdin")
        await self.layout.git.run(*args, stdin=lines, keeps=keeps)

    async def _clear_unfinished(self, wanted: str) -> None:
        """Remove what a dead run had begun to make: no agent has worked in it."""
        for record in unfinished(self.layout):
            if record.branch == wanted:
                continue
            lock = FileLock(self.layout.branch_lock(record.branch))
            if lock.try_acquire(CLEARING):
                try:
                    await self._clear(record)
                except GitError:
                    continue  # the next caller tries again: what is left of one is no fault of another
                finally:
                    lock.release()

    async def _clear(self, record: TreeRecord) -> None:
        tree, ref = Path(record.path), f"refs/heads/{record.branch}"
        git_dir = self.layout.find_git_dir_of(tree)
        clear_locks_of(self.layout, record.branch, git_dir)
        remove_tree(tree)
        if git_dir is not None:
            remove_tree(fresh_folder(self.layout, tree, git_dir))
            remove_tree(git_dir)
            set_aside(self.layout, git_dir)
        gone = dict.fromkeys(loosely_held(self.layout, record.run), "") if record.run else {}
        if record.new_branch and await self.layout.git.commit_of(ref) == record.base:
            gone[ref] = record.base
        await self.layout.git.delete_refs(gone)
        self.layout.tree_record(record.branch).unlink(missing_ok=True)


async def check_out(
    layout: RepositoryLayout, tree: Path, git_dir: Path, filters: bool = True, keeps: tuple[int, ...] = ()
) -> None:
    """Bring a new working tree to its branch, through the filters of the user's or as git stores it.

    Git works in a folder that no agent has seen, which then takes the place of the tree. Whatever was there before is
    what a killed process left: until a tree is ready, no agent has seen it.
    """
    (git_dir / "index.lock").unlink(missing_ok=True)
    fresh = fresh_folder(layout, tree, git_dir)
    remove_tree(fresh)
    fresh.mkdir(parents=True)
    point(fresh, git_dir)
    await layout.git.run("reset", "--hard", "--quiet", tree=fresh, git_dir=git_dir, filters=filters, keeps=keeps)
    old = throw_away(layout, tree, f"{git_dir.name}.unfinished")
    fresh.rename(tree)
    delete_later(old)


def fresh_folder(layout: RepositoryLayout, tree: Path, git_dir: Path) -> Path:
    """Where a working tree is made: on the same disk as its place, and out of every agent's reach."""
    make_private_folder(layout.own)
    tree.parent.mkdir(parents=True, exist_ok=True)
    if layout.own.stat().st_dev == tree.parent.stat().st_dev:
        return layout.own / "fresh" / git_dir.name
    return tree.with_name(f".{tree.name}.fresh")


def _checked_out(branch: str, where: Path) -> StateConflictError:
    hint = f"git -C {where} switch OTHER   or   --branch NAME" if is_folder(where) else "git worktree prune"
    return StateConflictError(f'the branch "{branch}" is checked out at {where}', hint=hint)


def _of_another(record: TreeRecord) -> StateConflictError:
    return StateConflictError(
        f"{record.agent} has unfinished work on {record.branch}",
        hint=f"genba run --resume {record.run}   or go on with it: --branch {record.branch}",
    )


def _free_path(root: Path, name: str) -> Path:
    """A folder that does not exist yet: what is already there is never taken for ours."""
    candidates = (root / (name if number == 1 else f"{name}-{number}") for number in range(1, 10_000))
    return next(path for path in candidates if not path.exists() and not path.is_symlink())
