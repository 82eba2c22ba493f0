"""Merging without a checkout, and pushing."""

import asyncio
from pathlib import Path

from genba.connections.git.agent_trees.checkout_files import lay_out
from genba.connections.git.merging.agent_fast_forward import AgentLanding, is_of_agent
from genba.connections.git.merging.fast_forward import Landing
from genba.connections.git.merging.merge_tree import merge_tree
from genba.connections.git.private.private_repositories import kept_refs, send
from genba.connections.git.repository.branches import branches_beside
from genba.connections.git.repository.commands import Git, branch_of
from genba.connections.git.repository.git_errors import error_line
from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.repository.locks import held
from genba.connections.git.repository.loose_objects import read_commit
from genba.connections.git.repository.stale_locks import clear_locks
from genba.connections.git.scanning.commit_range import changes_over, parse_changes
from genba.connections.git.worktrees.records import read_record
from genba.connections.git.worktrees.rescue import rescue
from genba.domain.errors import GitError, StateConflictError
from genba.domain.sessions.branch_naming import OWN_BRANCHES
from genba.domain.sessions.workspaces import MergeResult, MergeStatus, Proposal, Workspace

_SHOWN = 5
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")
"""What git keeps while the user is in the middle of something."""
_MOVED = ("non-fast-forward", "fetch first")
_REBASES = ("rebase-merge/head-name", "rebase-apply/head-name")


class GitRepository:
    """The repository as a whole. The user's checkout is only ever fast-forwarded, and only when it is clean."""

    def __init__(self, layout: RepositoryLayout) -> None:
        self.layout = layout
        self.git: Git = layout.git

    async def has_remote(self, remote: str) -> bool:
        return remote in (await self.git.text("remote")).splitlines()

    async def propose(self, workspace: Workspace, message: str) -> Proposal:
        """The merge as a commit that nothing points to yet."""
        base, tip = await asyncio.gather(
            self.git.commit_of(f"refs/heads/{workspace.base_branch}"),
            self.git.commit_of(f"refs/heads/{workspace.branch}"),
        )
        if base is None or tip is None:
            gone = workspace.base_branch if base is None else workspace.branch
            raise StateConflictError(f'the branch "{gone}" is gone', hint="git branch --all   git reflog")
        merged, arrived = await asyncio.gather(merge_tree(self.git, base, tip), self.git.is_ancestor(tip, base))
        if arrived:
            return Proposal(refused=MergeResult(status=MergeStatus.NOTHING_TO_MERGE, commit=base))
        if merged.in_conflict:
            return Proposal(refused=MergeResult(status=MergeStatus.CONFLICT, paths=merged.paths))
        commit = await self.git.commit_tree(merged.tree, (base, tip), message)
        return Proposal(base=base, tip=tip, commit=commit, tree=merged.tree)

    async def try_out(self, workspace: Workspace, commit: str, adopt: bool = False) -> str:
        """Bring the working tree to a commit, and nothing but that; returns the rescue ref of what else was there.

        The caller has the branch, and no instance lives in the tree.

        The branch stays where it is, unless it is to adopt the commit and go on from there.
        """
        tree, git_dir, ref = Path(workspace.path), Path(workspace.git_dir), f"refs/heads/{workspace.branch}"
        clear_locks(self.layout, workspace)
        rescued, stuck = await rescue(self.layout, workspace)
        if stuck:
            raise StateConflictError(f"{workspace.path} cannot be brought to {commit[:7]}: {stuck}")
        await lay_out(self.git, tree, git_dir, commit)
        await self.git.run("update-ref", "--no-deref", "HEAD", commit, git_dir=git_dir)
        await self.git.run("read-tree", "--reset", "--no-recurse-submodules", commit, git_dir=git_dir)
        if adopt:
            await self.git.run("update-ref", ref, commit)
            await self.git.run("symbolic-ref", "HEAD", ref, git_dir=git_dir)
        if is_folder(self.layout.private_dir(git_dir) / "repository"):
            await send(self.layout, workspace)
        return rescued

    async def land(self, workspace: Workspace, proposal: Proposal) -> MergeResult | None:
        """Move the base to a proposed merge; None when the base moved meanwhile."""
        base_ref = f"refs/heads/{workspace.base_branch}"
        async with held(self.layout.repository_lock, f"merge of {workspace.branch}") as lock:
            checkout = await self._checkout_of(base_ref)
            if checkout is not None and is_of_agent(self.layout, workspace.base_branch, checkout):
                return await self._land_in_worktree(AgentLanding(self.layout, lock), checkout, base_ref, proposal)
            landing = Landing(self.layout, lock)
            await landing.put_back_what_was_cut_off(checkout)
            busy, changes = await asyncio.gather(
                self._in_the_way(workspace.base_branch, checkout), landing.changes(proposal.base, proposal.commit)
            )
            if busy:
                return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=busy)
            if checkout is not None:
                return await landing.fast_forward(checkout, base_ref, proposal, changes)
            moved = await self.git.run("update-ref", base_ref, proposal.commit, proposal.base, allow=(0, 128))
            if moved.returncode == 0:
                return MergeResult(status=MergeStatus.MERGED, commit=proposal.commit)
            if await self.git.commit_of(base_ref) != proposal.base:
                return None
            raise GitError(f"{workspace.base_branch} could not be moved: {error_line(moved.stderr)}")

    async def _land_in_worktree(
        self, landing: AgentLanding, checkout: Path, base_ref: str, proposal: Proposal
    ) -> MergeResult | None:
        """The same where the base is checked out in a worktree that an agent can write."""
        busy = await self._in_the_way(base_ref.removeprefix("refs/heads/"), None)
        if busy:
            return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=busy)
        changes = parse_changes(await changes_over(self.git, proposal.base, proposal.commit))
        return await landing.fast_forward(checkout, base_ref, proposal, changes)

    async def _checkout_of(self, ref: str) -> Path | None:
        """Where a branch is checked out: nearly always where the user stands, which needs no asking."""
        if branch_of(self.layout.git_dir) == ref and is_folder(self.layout.top):
            return self.layout.top
        branch = ref.removeprefix("refs/heads/")
        found = (await self.layout.checkouts()).get(branch) if self.layout.may_be_checked_out(branch) else None
        return found if found is not None and is_folder(found) else None

    async def push(self, remote: str, branch: str) -> None:
        args = ("push", "--quiet", remote, f"refs/heads/{branch}:refs/heads/{branch}")
        done = await self.git.reach(remote, *args, tree=self.layout.top, push=True)
        if done.returncode != 0:
            if any(mark in done.stderr for mark in _MOVED):
                raise StateConflictError(f"{branch} on {remote} has newer commits, which are not overwritten")
            raise GitError(f"{branch} could not be pushed to {remote}: {_telling_line(done.stderr)}")

    async def left_elsewhere(self, email: str, workspace: Workspace) -> tuple[str, ...]:
        """Other branches whose newest commit is by this author and has not arrived on the base.

        Those that Genba gave out itself are work on other issues, and not left anywhere.
        """
        return (
            *await self._left_on_branches(email, workspace),
            *await self._left_in_private_repositories(email, workspace),
        )

    async def _left_on_branches(self, email: str, workspace: Workspace) -> list[str]:
        others = branches_beside(self.git.git_dir, OWN_BRANCHES)
        if others is not None and not any(self._may_be_by(email, tip, workspace.base) for tip in others.values()):
            return []
        args = ("for-each-ref", "--format=%(refname:short)%00%(authoremail:trim)",
                 f"--no-merged={workspace.base}", "refs/heads")  # fmt: skip
        listed = (line.split("\0") for line in (await self.git.run(*args)).stdout.splitlines())
        names = [name for name, author in listed if author == email and not name.startswith(OWN_BRANCHES)]
        return [name for name in names if not self._is_given(name)]

    def _may_be_by(self, email: str, tip: str, base: str) -> bool:
        """Whether a branch may have work of an author that has not arrived, as far as files tell."""
        if tip == base:
            return False
        found = read_commit(self.git.git_dir, tip)
        return found is None or found.author == email

    def _is_given(self, branch: str) -> bool:
        """Whether Genba has made a working tree for a branch."""
        record = read_record(self.layout.tree_record(branch))
        return record is not None and record.branch == branch

    async def _left_in_private_repositories(self, email: str, workspace: Workspace) -> list[str]:
        """The same of branches that the instance made in its private repository."""
        folder = f"{kept_refs(workspace.run)}/heads"
        if not is_folder(self.layout.private_dir(workspace.git_dir)) or not self.git.may_have_refs(folder):
            return []
        from urllib.parse import unquote  # noqa: PLC0415  (only what strayed has such branches)

        args = ("for-each-ref", "--format=%(refname)%00%(authoremail:trim)", f"--no-merged={workspace.base}", folder)
        listed = (line.split("\0") for line in (await self.git.run(*args)).stdout.splitlines())
        return [unquote(name.removeprefix(f"{folder}/")) for name, author in listed if author == email]

    async def _in_the_way(self, branch: str, checkout: Path | None) -> str:
        """Why the user's own work forbids to move the branch now."""
        for folder in (str(self.layout.common), *self.layout.folders_of_trees()):
            for name in _REBASES:
                if _content(f"{folder}/{name}") == f"refs/heads/{branch}":
                    return f"{branch} is in the middle of a rebase"
        if checkout is None:
            return ""
        git_dir = self.layout.git_dir_of(checkout)
        busy = [name for name in _UNFINISHED if (git_dir / name).exists()]
        if busy:
            return f"{checkout} is in the middle of something ({busy[0]})"
        args = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all")
        done = await self.git.run(*args, tree=checkout, git_dir=git_dir)
        changed = [entry[3:] for entry in done.stdout.split("\0") if entry]
        if changed:
            shown = ", ".join(changed[:_SHOWN]) + (" …" if len(changed) > _SHOWN else "")
            return f"{checkout} has uncommitted changes ({shown})"
        return ""


def _content(path: str) -> str:
    """What a file of git's says; nothing where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  (asked for each working tree)
            return file.read().strip()
    except OSError:
        return ""


def _telling_line(text: str) -> str:
    """The line that says why a push failed, among those that give advice."""
    lines = [line.strip() for line in text.splitlines()]
    wanted = [line for mark in ("rejected", "fatal:", "error:") for line in lines if mark in line]
    return wanted[0] if wanted else error_line(text)
