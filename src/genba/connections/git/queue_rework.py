"""Work that comes back to its author: the target is merged into the branch, with markers where they are in conflict."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from genba.connections.git.commands import branch_of
from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.merging import GitRepository
from genba.connections.git.queue_remote import SharedRemote
from genba.domain.errors import StateConflictError
from genba.domain.merge_queue import Adopted
from genba.domain.workspaces import Workspace

_LARGEST = 16 * 1024 * 1024
_MARKER = re.compile(rb"^(<{7,}|>{7,}) [0-9a-f]{40,64}(:[^\r\n]*)?\r?$", re.MULTILINE)
"""A marker as it is written here: with the whole hash of a side behind it, which no text about git has."""


class GitRework:
    """Brings targets into branches. Whoever calls has reopened the workspace, and so holds its branch."""

    def __init__(self, layout: RepositoryLayout, remote: str = "") -> None:
        self.layout = layout
        self.git = layout.git
        self.repository = GitRepository(layout)
        self.remote = SharedRemote(layout, remote) if remote else None

    async def adopt(self, workspace: Workspace, over: str, message: str) -> Adopted:
        """One merge commit on the branch, and the working tree on it. What else was in the tree is kept under a ref.

        A branch that has the commit already goes on as it is; a tree that a dead process left half-way is brought on.
        """
        tip = await self.git.commit_of(f"refs/heads/{workspace.branch}")
        if tip is None:
            raise StateConflictError(f'the branch "{workspace.branch}" is gone', hint="git branch --all   git reflog")
        await self._fetch_missing(workspace, over)
        if await self.git.is_ancestor(over, tip):
            return await self._again(workspace, tip, over)
        tree, paths = await self._merged(tip, over)
        commit = await self.git.commit_tree(tree, (tip, over), message)
        rescued = await self.repository.try_out(workspace, commit, adopt=True)
        return Adopted(commit=commit, paths=await self.markers_left(commit, paths), rescued=rescued)

    async def _again(self, workspace: Workspace, tip: str, over: str) -> Adopted:
        """The same call, after one that came to its end, or was cut off before the tree was back on its branch."""
        parents = (await self.git.text("rev-list", "--parents", "--max-count=1", tip)).split()[1:]
        just_made = parents[1:] == [over]
        rescued = ""
        if just_made and branch_of(Path(workspace.git_dir)) != f"refs/heads/{workspace.branch}":
            rescued = await self.repository.try_out(workspace, tip, adopt=True)
        paths = (await self._merged(parents[0], over))[1] if just_made else ()
        return Adopted(commit=tip, paths=await self.markers_left(tip, paths), rescued=rescued)

    async def _merged(self, tip: str, over: str) -> tuple[str, tuple[str, ...]]:
        """The tree of a merge, and the paths in which it has conflicts."""
        words = ("merge-tree", "--write-tree", "--name-only", "-z", tip, over)
        done = await self.git.run(*words, allow=(0, 1))
        tree, *rest = done.stdout.split("\0")
        named = rest[: rest.index("")] if "" in rest else rest
        return tree, tuple(dict.fromkeys(named)) if done.returncode == 1 else ()

    async def _fetch_missing(self, workspace: Workspace, over: str) -> None:
        """Have a commit of the target here that landed from another host."""
        if await self.git.commit_of(over) is not None:
            return
        if self.remote is not None:
            await self.remote.tip(workspace.base_branch)
        if await self.git.commit_of(over) is None:
            raise StateConflictError(
                f"{workspace.base_branch} has no commit {over[:7]} any more",
                unchanged=f"{workspace.branch} was not changed.",
                hint=f"git log {workspace.base_branch}",
            )

    async def markers_left(self, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        names = {f"{commit}:{path}": path for path in paths if "\n" not in path}
        found = await asyncio.to_thread(self.git.batch, list(names), _LARGEST) if names else {}
        return tuple(path for name, path in names.items() if _MARKER.search(found.get(name, b"")))
