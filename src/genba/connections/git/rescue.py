"""Rescue refs: what is not on a branch is kept under a ref before anything is removed or put aside."""

from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.observing import snapshot, tree_status
from genba.domain.workspaces import Workspace

_GITLINK = "160000"
_RAW_FIELDS = 2


async def rescue(layout: RepositoryLayout, workspace: Workspace) -> tuple[str, str]:
    """Keep what is not on the branch; returns the ref, and what no ref could keep."""
    head, on, dirty = await tree_status(layout.git, workspace)
    tree = await snapshot(layout, workspace) if dirty else head
    nested = await _gitlinks(layout, workspace, tree)
    if nested:
        return "", f"it contains a repository of its own ({', '.join(nested)}), which no ref of yours can keep"
    if not dirty and on == workspace.branch:
        return "", ""
    message = f"Uncommitted work of {workspace.run} on {workspace.branch}\n"
    keep = await layout.git.commit_tree(tree, (head,), message) if dirty else head
    ref = await _free_ref(layout, f"refs/genba/rescue/{workspace.run}")
    await layout.git.run("update-ref", ref, keep, "")
    return ref, ""


async def _gitlinks(layout: RepositoryLayout, workspace: Workspace, tree: str) -> tuple[str, ...]:
    """Repositories that came or changed with the work: their commits live in the tree alone."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", workspace.base, tree)
    fields = (await layout.git.run(*words)).stdout.split("\0")
    changed = zip(fields[::_RAW_FIELDS], fields[1::_RAW_FIELDS], strict=False)
    return tuple(name for raw, name in changed if raw.split(" ")[1:2] == [_GITLINK])


async def _free_ref(layout: RepositoryLayout, wanted: str) -> str:
    """A ref that holds nothing yet: what was rescued before stays."""
    number, ref = 1, wanted
    while await layout.git.commit_of(ref) is not None:
        number += 1
        ref = f"{wanted}-{number}"
    return ref
