"""Merging without a checkout, and pushing."""

import asyncio
from pathlib import Path

from genba.connections.git.commands import Git
from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.locks import held
from genba.domain.errors import GitError, StateConflictError
from genba.domain.workspaces import MergeResult, MergeStatus, Workspace

_ROUNDS = 10
_OURS = (":(top,exclude).genba/issues",)
"""What Genba itself writes in the user's checkout: not a change of the user's."""


class GitRepository:
    """The repository as a whole. The user's checkout is only ever fast-forwarded, and only when it is clean."""

    def __init__(self, layout: RepositoryLayout) -> None:
        self.layout = layout
        self.git: Git = layout.git

    async def merge(self, workspace: Workspace, message: str) -> MergeResult:
        async with held(self.layout.repository_lock, f"merge of {workspace.branch}"):
            for _ in range(_ROUNDS):
                result = await self._merge_once(workspace, message)
                if result is not None:
                    return result
        raise StateConflictError(
            f"{workspace.base_branch} moved {_ROUNDS} times while {workspace.branch} was being merged",
            hint=f"git merge {workspace.branch}",
        )

    async def push(self, remote: str, branch: str) -> None:
        try:
            await self.git.run("push", "--quiet", remote, f"refs/heads/{branch}:refs/heads/{branch}")
        except GitError as error:
            raise GitError(
                f"{branch} could not be pushed to {remote}: {error.message.rpartition(': ')[2]}",
                hint=f"git push {remote} {branch}",
            ) from error

    async def _merge_once(self, workspace: Workspace, message: str) -> MergeResult | None:
        """One try; None when the base moved meanwhile."""
        base_ref = f"refs/heads/{workspace.base_branch}"
        base, tip = await asyncio.gather(
            self.git.commit_of(base_ref), self.git.commit_of(f"refs/heads/{workspace.branch}")
        )
        if base is None or tip is None:
            gone = workspace.base_branch if base is None else workspace.branch
            raise StateConflictError(f'the branch "{gone}" is gone', hint="git branch --all   git reflog")
        done, arrived, checkouts = await asyncio.gather(
            self.git.run("merge-tree", "--write-tree", "--name-only", "-z", base, tip, allow=(0, 1)),
            self.git.is_ancestor(tip, base),
            self.layout.checkouts(),
        )
        if arrived:
            return MergeResult(status=MergeStatus.NOTHING_TO_MERGE, commit=base)
        tree, *rest = done.stdout.split("\0")
        if done.returncode == 1:
            paths = tuple(dict.fromkeys(rest[: rest.index("")] if "" in rest else rest))
            return MergeResult(status=MergeStatus.CONFLICT, paths=paths)
        checkout = checkouts.get(workspace.base_branch)
        busy = await self._in_the_way(workspace.base_branch, checkout)
        if busy:
            return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=busy)
        commit = await self.git.commit_tree(tree, (base, tip), message)
        if checkout is not None:
            return await self._fast_forward(checkout, base_ref, base, commit)
        moved = await self.git.run("update-ref", base_ref, commit, base, allow=(0, 128))
        return MergeResult(status=MergeStatus.MERGED, commit=commit) if moved.returncode == 0 else None

    async def _in_the_way(self, branch: str, checkout: Path | None) -> str:
        """Why the user's own work forbids to move the branch now."""
        for name in self.layout.common.glob("rebase-*/head-name"):
            if name.read_text(encoding="utf-8").strip() == f"refs/heads/{branch}":
                return f"{branch} is in the middle of a rebase"
        if checkout is None:
            return ""
        status = (
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--ignore-submodules=all",
            "--",
            ":/",
            *_OURS,
        )
        done = await self.git.run(*status, tree=checkout, git_dir=self._git_dir_of(checkout))
        changed = [line[3:] for line in done.stdout.splitlines()]
        if changed:
            shown = ", ".join(changed[:5]) + (" …" if len(changed) > 5 else "")  # noqa: PLR2004
            return f"{checkout} has uncommitted changes ({shown})"
        return ""

    def _git_dir_of(self, checkout: Path) -> Path:
        if (checkout / ".git").is_dir():
            return checkout / ".git"
        for pointer in (self.layout.common / "worktrees").glob("*/gitdir"):
            if Path(pointer.read_text(encoding="utf-8").strip()) == checkout / ".git":
                return pointer.parent
        return self.layout.common

    async def _fast_forward(self, checkout: Path, base_ref: str, base: str, commit: str) -> MergeResult | None:
        """Bring the user's clean checkout forward together with its branch."""
        git_dir = self._git_dir_of(checkout)
        words = ("merge", "--quiet", "--ff-only", "--no-verify", commit)
        done = await self.git.run(*words, tree=checkout, git_dir=git_dir, allow=(0, 1, 128))
        if done.returncode == 0:
            return MergeResult(status=MergeStatus.MERGED, commit=commit)
        if await self.git.commit_of(base_ref) != base:
            return None
        said = (done.stderr.strip() or done.stdout.strip()).replace("\n", " ")
        return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=f"{checkout}: {said}")
