"""Removing a working tree: only when all of its work is reachable from a kept ref, and never half."""

import asyncio
from pathlib import Path

from genba.connections.git.private.private_repositories import is_behind, no_longer_needed
from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.repository.locks import held
from genba.connections.git.worktrees.records import read_record
from genba.connections.git.worktrees.rescue import rescue
from genba.connections.git.worktrees.trash import delete_later, throw_away
from genba.connections.removal import remove_tree
from genba.domain.errors import GitError
from genba.domain.sessions.workspaces import Removal, Workspace


async def remove(layout: RepositoryLayout, workspace: Workspace) -> Removal:
    """Remove the working tree of a run; one whose removal was cut off is removed to the end.

    It is out of the way when this returns, and deleted in the background.
    """
    path, git_dir = Path(workspace.path), Path(workspace.git_dir)
    private_dir = layout.private_dir(git_dir)
    if not git_dir.is_relative_to(layout.common / "worktrees"):
        return Removal(removed=False, reason=f"{path} is not a working tree of this repository")
    if taken := _taken(layout, workspace):
        return Removal(removed=False, reason=taken)
    if is_behind(private_dir):
        return Removal(removed=False, reason=f"{private_dir} has work that was not brought back from the sandbox")
    was_there = is_folder(path)
    rescued, stuck = await _rescued(layout, workspace)
    if stuck:
        return Removal(removed=False, rescued=rescued, reason=stuck)
    async with held(layout.repository_lock, f"removal of {path.name}"):
        taken = _taken(layout, workspace)  # another process may have closed it while this one waited
        if taken or (is_folder(path) and not was_there):
            return Removal(removed=False, rescued=rescued, reason=taken or f"{path} was made again meanwhile")
        merged = await _merged_tip(layout, workspace)  # not before: two may close what one of them was held for dead
        tree = throw_away(layout, path, workspace.run)
        sandboxed = private_dir.is_dir()
        remove_tree(git_dir)
        gone = throw_away(layout, private_dir, f"{workspace.run}.cell")
        refs = {f"refs/heads/{workspace.branch}": merged} if merged else {}
        refs |= dict.fromkeys(await no_longer_needed(layout, workspace), "") if sandboxed else {}
        await layout.git.delete_refs(refs)
        layout.tree_record(workspace.branch).unlink(missing_ok=True)
    await asyncio.to_thread(delete_later, tree, gone)
    return Removal(removed=True, rescued=rescued)


def _taken(layout: RepositoryLayout, workspace: Workspace) -> str:
    """Says so when the working tree is another run's by now."""
    record = read_record(layout.tree_record(workspace.branch))
    if record is None or record.run in ("", workspace.run):
        return ""
    return f"{workspace.path} belongs to {record.run} now"


async def _rescued(layout: RepositoryLayout, workspace: Workspace) -> tuple[str, str]:
    """As `rescue`. What another process removes meanwhile is kept by that one."""
    if not is_folder(workspace.path):
        return "", ""
    try:
        return await rescue(layout, workspace)
    except (GitError, FileNotFoundError):
        if is_folder(workspace.path):
            raise
        return "", ""


async def _merged_tip(layout: RepositoryLayout, workspace: Workspace) -> str:
    """What the branch is on, where the base has it. It is removed only while it is still there."""
    tip, base = await asyncio.gather(
        layout.git.commit_of(f"refs/heads/{workspace.branch}"),
        layout.git.commit_of(f"refs/heads/{workspace.base_branch}"),
    )
    arrived = tip is not None and base is not None and await layout.git.is_ancestor(tip, base)
    return tip if arrived and tip is not None else ""
