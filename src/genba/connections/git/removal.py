"""Removing a working tree: only when all of its work is reachable from a kept ref, and never half."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.locks import held
from genba.connections.git.observing import snapshot, tree_status
from genba.domain.workspaces import Removal, Workspace

_GITLINK = "160000"
_RAW_FIELDS = 2


async def remove(layout: RepositoryLayout, workspace: Workspace) -> Removal:
    path, git_dir = Path(workspace.path), Path(workspace.git_dir)
    if not git_dir.is_relative_to(layout.common / "worktrees") or not _is_folder(path):
        return Removal(removed=False, reason=f"{path} is not a working tree of this repository")
    rescued, stuck = await _rescue(layout, workspace)
    if stuck:
        return Removal(removed=False, rescued=rescued, reason=stuck)
    trash = layout.own / "trash" / workspace.run
    async with held(layout.repository_lock, f"removal of {path.name}"):
        _move_away(path, trash)
        remove_tree(git_dir)
        deleted = await _delete_merged_branch(layout, workspace)
    await asyncio.to_thread(remove_tree, trash)
    return Removal(removed=True, rescued=rescued, branch_deleted=deleted)


async def _rescue(layout: RepositoryLayout, workspace: Workspace) -> tuple[str, str]:
    """Keep what is not on the branch under a ref; say what no ref could keep."""
    head, on, dirty = await tree_status(layout.git, workspace)
    tree = await snapshot(layout, workspace) if dirty else head
    nested = await _repositories_inside(layout, workspace, tree)
    if nested:
        return "", f"it contains a repository of its own ({', '.join(nested)}), which no ref of yours can keep"
    if not dirty and on == workspace.branch:
        return "", ""
    ref = f"refs/genba/rescue/{workspace.run}"
    message = f"Uncommitted work of {workspace.run} on {workspace.branch}\n"
    keep = await layout.git.commit_tree(tree, (head,), message) if dirty else head
    await layout.git.run("update-ref", ref, keep)
    return ref, ""


async def _repositories_inside(layout: RepositoryLayout, workspace: Workspace, tree: str) -> tuple[str, ...]:
    """Repositories and submodules that came or changed with the work: their commits live in the tree alone."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", workspace.base, tree)
    fields = (await layout.git.run(*words)).stdout.split("\0")
    changed = zip(fields[::_RAW_FIELDS], fields[1::_RAW_FIELDS], strict=False)
    found = [name for raw, name in changed if raw.split(" ")[1:2] == [_GITLINK]]
    modules = sorted(_folders(Path(workspace.git_dir) / "modules"))
    return (*found, *(name for name in modules if name not in found))


async def _delete_merged_branch(layout: RepositoryLayout, workspace: Workspace) -> bool:
    tip, base = await asyncio.gather(
        layout.git.commit_of(f"refs/heads/{workspace.branch}"),
        layout.git.commit_of(f"refs/heads/{workspace.base_branch}"),
    )
    if tip is None or base is None or not await layout.git.is_ancestor(tip, base):
        return False
    await layout.git.run("update-ref", "-d", f"refs/heads/{workspace.branch}", tip)
    return True


def _folders(path: Path) -> list[str]:
    return [inner.name for inner in path.iterdir()] if path.is_dir() else []


def _is_folder(path: Path) -> bool:
    return path.is_dir()


def _move_away(path: Path, trash: Path) -> None:
    """First out of the way in one step, then deleted: a half-removed tree is never seen."""
    trash.parent.mkdir(parents=True, exist_ok=True)
    remove_tree(trash)
    try:
        path.rename(trash)
    except OSError:
        beside = path.with_name(f".{path.name}.removed")
        path.rename(beside)
        remove_tree(beside)


def remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it; links are removed, never followed."""
    import shutil  # noqa: PLC0415  (it brings four compressors along, and only the end of a run needs it)

    if path.exists():
        shutil.rmtree(path, onerror=_make_writable)


def _make_writable(remove_it: Callable[[str], object], path: str, _error: object) -> None:
    """An agent may leave folders that nobody may write; they are ours to remove all the same."""
    try:
        Path(path).parent.chmod(0o700)
        if not Path(path).is_symlink():
            Path(path).chmod(0o700)
        remove_it(path)
    except OSError:
        return
