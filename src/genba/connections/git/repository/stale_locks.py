"""Locks that a killed git leaves: no process holds them, and they stop every later git."""

import contextlib
import os
import re
import time
from pathlib import Path

from genba.connections.atomic_write import writer_of
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import is_gone
from genba.connections.removal import remove_tree
from genba.domain.sessions.branch_naming import OWN_BRANCHES
from genba.domain.sessions.workspaces import Workspace

_LOCK = ".lock"
_MAKINGS = (
    ("*", re.compile(r"index-.+-(\d+)")),
    ("*", re.compile(r"registering-(\d+)-[0-9a-f]+")),
    ("staging/*", re.compile(r"(\d+)-[0-9a-f]+")),
    ("fresh/*", re.compile(r"(\d+)-[0-9a-f]{8}")),
    ("secrets/*", re.compile(r"scan-(\d+)-.+")),
)
"""What Genba makes for a while beside everything else: where, and under which names, with the process in them."""
_PLACES = (".", "goals", "trees", "private/*", "runs/*", "runs/*/asks", "runs/*/supervised/*", "runs/*/supervised/*/*")
"""Where drafts of files are written."""
_WRITING_SECONDS = 1.0
"""A draft is left alone for so long: the process that writes it may not be visible from here."""


def clear_locks(layout: RepositoryLayout, workspace: Workspace) -> tuple[str, ...]:
    """Remove the locks that a killed git has left in a worktree; returns which.

    Only for the holder of the worktree, while no instance lives in it. The user's own checkout is left alone.
    """
    return clear_locks_of(layout, workspace.branch, Path(workspace.git_dir)) if workspace.isolated else ()


def clear_locks_of(layout: RepositoryLayout, branch: str, git_dir: Path | None = None) -> tuple[str, ...]:
    """The same for a branch, and for its working tree where it has one. The same law holds.

    The user's own gits may be at a branch that the user has named: its lock is left to them.
    """
    head = Path("refs/heads", f"{branch}{_LOCK}")
    is_own = branch.startswith(OWN_BRANCHES)
    places: list[tuple[Path, str | None]] = [(layout.common / head.parent, head.name)] if is_own else []
    if git_dir is not None:
        own = layout.private_dir(git_dir) / "repository"
        places += [(git_dir, None), (own, None), (own / head.parent, head.name)]
    return tuple(path for folder, name in places for path in _cleared(folder, name))


def _cleared(folder: Path, name: str | None) -> list[str]:
    """An instance may write in such a folder, so that nothing in it is followed."""
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    cleared = []
    try:
        for found in [name] if name is not None else os.listdir(place):  # noqa: PTH208  (a folder that is open)
            if found.endswith(_LOCK):
                with contextlib.suppress(OSError):
                    os.unlink(found, dir_fd=place)
                    cleared.append(str(folder / found))
    finally:
        os.close(place)
    return cleared


def sweep_drafts(layout: RepositoryLayout) -> None:
    """Remove what processes were writing that died before it was whole. What they wrote whole is never touched.

    Instances write to some of these folders as well: there only plain names go, and nothing is followed.
    """
    makings = [(path, name) for place, name in _MAKINGS for path in layout.own.glob(place)]
    for path, name in makings:
        found = name.fullmatch(path.name)
        if found is None or not _is_left(path, int(found[1])):
            continue
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            _unlink(path)
    for place in _PLACES:
        for path in layout.own.glob(f"{place}/.*.new"):
            process = writer_of(path.name)
            if process is not None and _is_left(path, process):
                _unlink(path)


def _is_left(path: Path, process: int) -> bool:
    """Whether its writer is gone, and it is not so young that another host may be writing it."""
    with contextlib.suppress(OSError):
        return is_gone(process) and not 0 <= time.time() - path.lstat().st_mtime < _WRITING_SECONDS
    return False


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
