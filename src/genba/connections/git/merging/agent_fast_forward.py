"""Moving a branch that is checked out in a worktree of Genba's, together with the files of that worktree.

Subtasks land on the branch of their parent, which may be checked out where an agent works. Git is not started there:
the state of the worktree comes from `staging`, and `checkout_files` changes its files. The files come first and the
branch last: the next one that lands after a death finds the files of the commit, and moves the branch.
"""

from pathlib import Path

from genba.connections.git.agent_trees.checkout_files import lay_out
from genba.connections.git.agent_trees.staging import Staged
from genba.connections.git.repository.git_errors import error_line
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock
from genba.connections.git.scanning.commit_range import Change
from genba.connections.git.worktrees.records import read_record
from genba.connections.git.worktrees.worktree_status import staged
from genba.domain.sessions.workspaces import MergeResult, MergeStatus, Proposal

_SHOWN = 5


def is_of_agent(layout: RepositoryLayout, branch: str, checkout: Path) -> bool:
    """Whether the checkout of a branch is a worktree that Genba made for an agent."""
    git_dir = layout.find_git_dir_of(checkout)
    if git_dir is None or not git_dir.is_relative_to(layout.common / "worktrees"):
        return False
    record = read_record(layout.tree_record(branch))
    return layout.private_dir(git_dir).is_dir() or (record is not None and record.path == str(checkout))


class AgentLanding:
    """Moves a branch together with its worktree. The caller holds the lock of the repository."""

    def __init__(self, layout: RepositoryLayout, lock: FileLock) -> None:
        self.layout = layout
        self.git = layout.git
        self.keeps = lock.descriptors

    async def fast_forward(
        self, checkout: Path, base_ref: str, proposal: Proposal, changes: list[Change]
    ) -> MergeResult | None:
        """Move both, or leave both as they are; None when the branch moved meanwhile."""
        if await self.git.commit_of(base_ref) != proposal.base:
            return None
        git_dir = self.layout.git_dir_of(checkout)
        seen = await staged(self.git, checkout, git_dir)
        if busy := await self._in_the_way(checkout, seen, proposal, changes):
            return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=busy)
        await lay_out(self.git, checkout, git_dir, proposal.commit, clean=False)
        args = ("update-ref", "-m", "genba: merge", base_ref, proposal.commit, proposal.base)
        moved = await self.git.run(*args, allow=(0, 1, 128), keeps=self.keeps)
        if moved.returncode != 0:
            await lay_out(self.git, checkout, git_dir, proposal.base, clean=False)
            if await self.git.commit_of(base_ref) != proposal.base:
                return None
            message = f"{checkout}: {error_line(moved.stderr)}"
            return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=message)
        follow = ("read-tree", "--reset", "--no-recurse-submodules", proposal.commit)
        await self.git.run(*follow, git_dir=git_dir, keeps=self.keeps)
        return MergeResult(status=MergeStatus.MERGED, commit=proposal.commit)

    async def _in_the_way(self, checkout: Path, seen: Staged, proposal: Proposal, changes: list[Change]) -> str:
        """Why the files of the worktree forbid to move the branch now."""
        if not seen.tree or seen.tree == await self.git.text("rev-parse", f"{proposal.commit}^{{tree}}"):
            return ""
        args = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=a", proposal.base, seen.tree)
        result = await self.git.run(*args)
        changed = [name for name in result.stdout.split("\0") if name]
        if changed:
            return f"{checkout} has uncommitted changes ({_listed(changed)})"
        added = {change.path for change in changes if change.status == "A"}
        there = [name for name in seen.dirty if name in added]
        return f"{checkout} has files that the merge would overwrite ({_listed(there)})" if there else ""


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
