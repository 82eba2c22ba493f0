"""Rescue refs: what is not on a branch is kept under a ref before anything is removed or put aside."""

import asyncio
import os
from pathlib import Path

from genba.connections.git.repository.commands import is_link
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.worktree_status import staged
from genba.domain.errors import GitError
from genba.domain.sessions.workspaces import Workspace


async def rescue(layout: RepositoryLayout, workspace: Workspace) -> tuple[str, str]:
    """Keep what is not on the branch; returns the ref, and what no ref could keep.

    Of a tree in whose place there is a link, what was committed: what lies where that leads belongs to another.
    """
    if is_link(workspace.path):
        return await _rescued_commit(layout, workspace), ""
    written = workspace.path if workspace.overlay is None else workspace.overlay.upper
    own = (Path(workspace.git_dir), layout.private_dir(workspace.git_dir) / "repository")
    inside = await asyncio.to_thread(repositories_inside, Path(written), *own)
    if inside:
        return "", f"it contains a repository of its own ({', '.join(inside)}), which no ref of yours can keep"
    seen = await staged(layout.git, Path(workspace.path), Path(workspace.git_dir))
    if not seen.tree and (seen.on == workspace.branch or await _is_kept(layout, workspace, seen.head)):
        return "", ""
    message = f"Uncommitted work of {workspace.run} on {workspace.branch}\n"
    keep = await layout.git.commit_tree(seen.tree, (seen.head,), message) if seen.tree else seen.head
    return await _kept_under(layout, f"refs/genba/rescue/{workspace.run}", keep), ""


async def _rescued_commit(layout: RepositoryLayout, workspace: Workspace) -> str:
    """The ref of what a tree is at, where no branch has it."""
    head = await layout.git.commit_of_head(Path(workspace.git_dir))
    if head is None or await _is_kept(layout, workspace, head):
        return ""
    return await _kept_under(layout, f"refs/genba/rescue/{workspace.run}", head)


async def _kept_under(layout: RepositoryLayout, wanted: str, commit: str) -> str:
    """The new ref that keeps a commit. Another one who rescues at the same time may have taken the name."""
    while True:
        ref = await free_ref(layout, wanted)
        try:
            await layout.git.run("update-ref", ref, commit, "")
        except GitError:
            if await layout.git.commit_of(ref) is None:
                raise
        else:
            return ref


def repositories_inside(tree: Path, *own: Path) -> list[str]:
    """Every repository below a working tree, in ignored folders too, and every submodule that was set up in it.

    `own` are the folders of the tree's own repository, where git keeps those of its submodules.
    """
    found = [Path(folder).relative_to(tree).as_posix() for folder, names, files in os.walk(tree)
             if folder != str(tree) and ".git" in (*names, *files)]  # fmt: skip
    folders = [git_dir / "modules" for git_dir in own]
    modules = [inner.name for folder in folders if folder.is_dir() and not folder.is_symlink()
               for inner in folder.iterdir()]  # fmt: skip
    return sorted({*found, *modules})


async def _is_kept(layout: RepositoryLayout, workspace: Workspace, commit: str) -> bool:
    """Whether a commit is on the branch of the run or on its base."""
    for branch in (workspace.branch, workspace.base_branch):
        tip = await layout.git.commit_of(f"refs/heads/{branch}")
        if tip is not None and await layout.git.is_ancestor(commit, tip):
            return True
    return False


async def free_ref(layout: RepositoryLayout, wanted: str) -> str:
    """A ref that holds nothing yet: what was rescued before stays."""
    number, ref = 1, wanted
    while await layout.git.commit_of(ref) is not None:
        number += 1
        ref = f"{wanted}-{number}"
    return ref
