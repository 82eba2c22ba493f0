"""Registering a new working tree with git by hand: the few files that `git worktree add --no-checkout` would write.

Git takes three processes for it, while everybody else waits for the repository. The files lie aside until they are
whole, so that no process ever sees a half of them. Where a repository is kept otherwise, git does it itself.
"""

import errno
import os
from pathlib import Path

from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.removal import remove_tree
from genba.domain.errors import DiskFullError, GitError, is_disk_full

_KEPT_OTHERWISE = ("reftable", "config.worktree")
"""Refs that are no files, and settings that each working tree has for itself."""
_MOST_OF_ONE_NAME = 1000


def can_register(layout: RepositoryLayout) -> bool:
    return not any((layout.common / name).exists() for name in _KEPT_OTHERWISE)


def register(layout: RepositoryLayout, tree: Path, branch: str) -> None:
    """Make the folder of a working tree on a branch that is there, and tell git of it. It has no files yet."""
    fresh = layout.own / f"registering-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        fresh.mkdir(parents=True)
        (fresh / "HEAD").write_text(f"ref: refs/heads/{branch}\n", encoding="utf-8")
        (fresh / "commondir").write_text("../..\n", encoding="utf-8")
        (fresh / "gitdir").write_text(f"{tree}/.git\n", encoding="utf-8")
        tree.mkdir(parents=True)
        _put(fresh, layout.common / "worktrees", tree.name)
    except OSError as error:
        remove_tree(fresh)
        raise _not_made(tree, error) from error


async def register_by_git(layout: RepositoryLayout, tree: Path, branch: str, keeps: tuple[int, ...]) -> None:
    """The same by git, where the repository is kept otherwise: in a folder of Genba's own, which is then moved."""
    made = layout.own / "fresh" / f"{os.getpid()}-{os.urandom(4).hex()}" / tree.name
    try:
        made.parent.mkdir(parents=True)
        await layout.git.run("worktree", "add", "--quiet", "--no-checkout", str(made), branch, keeps=keeps)
        _move(layout.git_dir_of(made), tree)
    except OSError as error:
        raise _not_made(tree, error) from error
    finally:
        remove_tree(made.parent)


def _move(git_dir: Path, tree: Path) -> None:
    """Make the folder of a working tree that git has registered elsewhere."""
    tree.mkdir(parents=True)
    (git_dir / "gitdir").write_text(f"{tree}/.git\n", encoding="utf-8")


def point(tree: Path, git_dir: Path) -> None:
    """Write into a worktree where git keeps its data. Safe to repeat: a process that died left half a line."""
    try:
        (tree / ".git").write_text(f"gitdir: {git_dir}\n", encoding="utf-8")
    except OSError as error:
        raise _not_made(tree, error) from error


def _not_made(tree: Path, error: OSError) -> DiskFullError | GitError:
    if is_disk_full(error):
        return DiskFullError(f"the disk is full: {tree} could not be made")
    return GitError(f"{tree} could not be made: {error.strerror}")


def _put(fresh: Path, folder: Path, name: str) -> Path:
    """Under a name that is free: what is there is never replaced, not even by what runs at the same time."""
    folder.mkdir(exist_ok=True)
    for number in range(_MOST_OF_ONE_NAME):
        place = folder / f"{name}{number or ''}"
        if not place.exists():
            try:
                return fresh.rename(place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
    raise GitError(f"{folder} has no room for another {name}", hint="git worktree prune")
