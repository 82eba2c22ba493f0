"""Dropping a branch that is not handed over: what is on it alone is kept under a rescue ref."""

from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.rescue import free_ref


async def drop_branch(layout: RepositoryLayout, branch: str, run: str, began: str) -> str:
    """Remove a branch that began at a commit, or at the tip of a branch; returns the ref of what else was on it.

    It is removed only while it is where it was looked at. Safe to repeat.
    """
    git, name = layout.git, f"refs/heads/{branch}"
    tip = await git.commit_of(name)
    if tip is None:
        return ""
    known = await git.commit_of(f"refs/heads/{began}") or await git.commit_of(began)
    kept = ""
    if known is None or not await git.is_ancestor(tip, known):
        kept = await free_ref(layout, f"refs/genba/rescue/{run}")
        await git.run("update-ref", kept, tip, "")
    await git.run("update-ref", "-d", name, tip)
    return kept
