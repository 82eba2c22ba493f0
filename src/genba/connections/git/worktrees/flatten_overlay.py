"""Turning an overlay into a plain folder, for a tree that is kept: the user, too, must find the work in it."""

import subprocess
from pathlib import Path

from genba.connections.git.repository.environment import host_environment
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.overlay_mount import forget_overlay, mounted, read_overlay
from genba.connections.git.worktrees.trash import delete_later, throw_away
from genba.connections.own_processes import own_environment
from genba.connections.removal import remove_tree
from genba.domain.errors import DiskFullError, GitError


def settle(layout: RepositoryLayout, tree: Path, git_dir: Path) -> None:
    """Copy what is seen through an overlay into the folder itself. A plain folder stays as it is.

    The layer that holds the work goes last: a process that dies before that leaves an overlay, and it is settled again.
    """
    private_dir = layout.private_dir(git_dir)
    overlay = read_overlay(private_dir)
    if overlay is None:
        return
    copy = tree.with_name(f".{tree.name}.settled")
    remove_tree(copy)
    tree.mkdir(parents=True, exist_ok=True)
    args = mounted(overlay, tree, ["cp", "-a", "--reflink=auto", f"{tree}/.", str(copy)])
    done = subprocess.run(
        args,
        cwd="/",
        env=own_environment(host_environment()),
        capture_output=True,
        text=True,
        errors="replace",
        start_new_session=True,
        check=False,
    )
    if done.returncode != 0:
        output = (done.stderr.strip() or "cp failed").splitlines()[-1]
        remove_tree(copy)
        if "No space left" in output:
            raise DiskFullError(f"the disk is full: {output}")
        raise GitError(f"{tree} cannot be made a plain folder: {output}")
    old = throw_away(layout, tree, f"{private_dir.name}.mount")
    copy.rename(tree)
    forget_overlay(private_dir)
    layer = [throw_away(layout, Path(path), f"{private_dir.name}.layer") for path in (overlay.upper, overlay.work)]
    delete_later(old, *layer)
