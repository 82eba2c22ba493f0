"""One issue, one branch, one working tree, one instance."""

import asyncio
import time
from pathlib import Path

import msgspec

from genba.connections.git.repository.commands import Git, branch_of
from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.repository.locks import FileLock
from genba.connections.git.repository.stale_locks import clear_locks, clear_locks_of
from genba.connections.git.worktrees.flatten_overlay import settle
from genba.connections.git.worktrees.records import TreeRecord, assign
from genba.connections.git.worktrees.removal import remove
from genba.connections.git.worktrees.worktree_create import CLEARING, NOTHING, Fill, Held, TreeMaker
from genba.connections.git.worktrees.worktree_status import Look, look, tree_status
from genba.connections.private_folders import close_folder
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.hashes import is_hash
from genba.domain.sessions.branch_naming import generated_branch, is_plain
from genba.domain.sessions.evidence import TreeFacts
from genba.domain.sessions.workspaces import Removal, Workspace, WorkspaceRequest

_PATIENCE_SECONDS, _MOMENT_SECONDS, _POLL_SECONDS = 30.0, 0.2, 0.02


_NAMED = 5
_UNFINISHED = ("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD")
"""What git keeps of a commit that is about to be made."""


def merged_in(git_dir: Path) -> list[str]:
    """The commits that a merge which was not finished is about to bring in."""
    try:
        lines = (git_dir / "MERGE_HEAD").read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return []
    return [line for line in lines if is_hash(line)]


class GitWorkingTrees:
    """Plain git worktrees: own branch, own folder, no sandbox.

    Without a `fill` every tree is a plain folder: one that was left as an overlay is made one.
    """

    def __init__(
        self, layout: RepositoryLayout, fill: Fill | None = None, held: Held = lambda _record: NOTHING
    ) -> None:
        self.layout = layout
        self.git: Git = layout.git
        self.maker = TreeMaker(layout, fill, held)
        self.plain = fill is None
        self._locks: dict[str, FileLock] = {}
        self._just_seen: dict[str, Look] = {}
        """What a clean tree looked like when it was to be committed, for the look that follows at once."""

    async def open(self, request: WorkspaceRequest) -> Workspace:
        self.layout.keep_private()
        branch = request.branch or generated_branch(request.agent, request.run, request.issue, request.issue_title)
        base_branch, _ = await asyncio.gather(self._base_branch(request), self._check_name(request.branch))
        base = request.base or await self.git.commit_of(f"refs/heads/{base_branch}")
        if base is None:
            raise NotFoundError(
                f'there is no branch "{base_branch}" with a commit',
                hint="git commit --allow-empty -m start   or   --base-branch NAME",
            )
        if not request.isolated:
            return await self._open_in_place(request, base_branch, base)
        if branch == base_branch:
            raise StateConflictError(
                f"the work would be on {base_branch} itself", hint="--branch NAME names a branch of its own"
            )
        before = await self._lock(branch, request.run)
        try:
            base = request.base or await self._began(branch, base)
            root = self.layout.top / request.root
            self.layout.exclude(f"/{request.root.strip('/')}/")
            close_folder(root)
            wanted = TreeRecord(
                branch=branch, path="", base=base, new_branch=True, ready=False, agent=request.agent, run=request.run
            )
            unheard = request.branch is None and request.issue is None
            keeps = self._locks[branch].descriptors
            path, git_dir = await self.maker.make(wanted, root, request.branch is not None, unheard, keeps)
            if self.plain:
                await asyncio.to_thread(settle, self.layout, path, git_dir)
            if before:
                await self.attach(branch, path, git_dir)
        except BaseException:
            self._unlock(branch)
            raise
        return Workspace(
            run=request.run,
            path=str(path),
            git_dir=str(git_dir),
            branch=branch,
            base_branch=base_branch,
            base=base,
            isolated=True,
            taken_from=before,
        )

    async def _began(self, branch: str, base: str) -> str:
        """Where the work on a branch that is there already left its base: what came later is not its doing."""
        tip = await self.git.commit_of(f"refs/heads/{branch}")
        if tip is None or tip == base:
            return base
        found = await self.git.run("merge-base", base, tip, allow=(0, 1))
        return found.stdout.strip() or base

    async def reopen(self, workspace: Workspace) -> Workspace:
        if not workspace.isolated:
            await self._check_clean()
        await self._lock(workspace.branch, workspace.run)
        if not is_folder(workspace.path):
            if not workspace.isolated or await self.git.commit_of(f"refs/heads/{workspace.branch}") is None:
                self._unlock(workspace.branch)
                raise NotFoundError(
                    f"the working tree {workspace.path} is gone",
                    hint="genba logs   shows what the run did; start a new one",
                )
            wanted = TreeRecord(
                branch=workspace.branch,
                path="",
                base=workspace.base,
                new_branch=False,
                ready=False,
                run=workspace.run,
            )
            root, keeps = Path(workspace.path).parent, self._locks[workspace.branch].descriptors
            path, git_dir = await self.maker.make(wanted, root, shared=True, keeps=keeps)
            return msgspec.structs.replace(workspace, path=str(path), git_dir=str(git_dir))
        assign(self.layout, workspace.branch, workspace.run)
        if self.plain and workspace.isolated:
            await asyncio.to_thread(settle, self.layout, Path(workspace.path), Path(workspace.git_dir))
            return msgspec.structs.replace(workspace, overlay=None)
        return workspace

    async def observe(self, workspace: Workspace) -> TreeFacts:
        seen = self._just_seen.pop(workspace.path, None) or await look(self.git, workspace)
        tip, (head, on, dirty) = f"refs/heads/{workspace.branch}", seen.status
        strayed = "" if on == workspace.branch else (on or "no branch")
        commits, tree, files = seen.of_branch()
        if seen.staged:
            tree = seen.staged
        elif not tree:
            tree = await self.git.text("rev-parse", f"{tip}^{{tree}}")
        newest = commits[0].sha if commits else (await self.git.commit_of(tip) if strayed else head)
        return TreeFacts(
            head=newest or head, tree=tree, dirty=dirty, strayed=strayed, commits=commits, changed_files=files
        )

    async def uncommitted(self, tree: Path) -> tuple[str, ...]:
        """What a working tree has not committed."""
        git_dir = self.layout.find_git_dir_of(tree)
        if git_dir is None:
            return ()
        return (await tree_status(self.git, tree, git_dir))[2]

    async def commit(self, workspace: Workspace, message: str, author: str) -> None:
        clear_locks(self.layout, workspace)
        seen = await look(self.git, workspace)
        if not seen.status[2]:
            self._just_seen[workspace.path] = seen
            return
        head, on, _ = seen.status
        git_dir, keeps = Path(workspace.git_dir), self._kept(workspace.branch)
        name, _, email = author.rpartition(" ")
        if not seen.staged:  # the index alone differs
            await self.git.run("read-tree", "--reset", "--no-recurse-submodules", head, git_dir=git_dir, keeps=keeps)
            return
        parents = tuple(dict.fromkeys((*([head] if head else []), *merged_in(git_dir))))
        made = await self.git.commit_tree(seen.staged, parents, message, (name, email.strip("<>")))
        ref = f"refs/heads/{on}" if on else "HEAD"
        args = ("update-ref", "--no-deref", "-m", f"commit: {message.partition(chr(10))[0]}", ref, made, head)
        await self.git.run(*args, git_dir=git_dir, keeps=keeps)
        await self.git.run("read-tree", "--reset", "--no-recurse-submodules", made, git_dir=git_dir, keeps=keeps)
        for left in _UNFINISHED:
            (git_dir / left).unlink(missing_ok=True)

    async def close(self, workspace: Workspace) -> Removal:
        try:
            if not workspace.isolated:
                return Removal(removed=False, reason="the run worked in the user's own checkout")
            clear_locks(self.layout, workspace)
            return await remove(self.layout, workspace)
        finally:
            self._unlock(workspace.branch)

    def let_go(self, branch: str) -> None:
        """Let go of one branch, and leave its working tree as it is."""
        self._unlock(branch)

    def release(self) -> None:
        """Let go of the branches, and leave the working trees as they are."""
        for branch in list(self._locks):
            self._unlock(branch)

    async def _open_in_place(self, request: WorkspaceRequest, branch: str, base: str) -> Workspace:
        if request.branch is not None:
            raise StateConflictError(
                "--branch needs a working tree of its own, and this agent works in your checkout",
                hint="--set runner.execution.worktree.enabled=true",
            )
        if not request.only_reads:
            await self._check_clean()
        before = await self._lock(branch, request.run)
        return Workspace(
            run=request.run,
            path=str(self.layout.top),
            git_dir=str(self.layout.git_dir),
            branch=branch,
            base_branch=branch,
            base=base,
            isolated=False,
            taken_from=before,
        )

    async def _check_clean(self) -> None:
        """Refuse a checkout with changes of the user's: they would be taken for those of the agent."""
        dirty = (await tree_status(self.git, self.layout.top, self.layout.git_dir))[2]
        if dirty:
            named = ", ".join(dirty[:_NAMED]) + (f" and {len(dirty) - _NAMED} more" if len(dirty) > _NAMED else "")
            raise StateConflictError(
                f"this agent works in your checkout, which has uncommitted changes: {named}",
                unchanged="nothing was started, nothing was changed.",
                hint="git stash -u   or commit them   or   --set runner.execution.worktree.enabled=true",
            )

    async def attach(self, branch: str, path: Path, git_dir: Path) -> None:
        """Put a tree that was left on no branch back on its own; the files in it stay as they are."""
        ref = f"refs/heads/{branch}"
        head = await self.git.run("symbolic-ref", "--quiet", "HEAD", git_dir=git_dir, allow=(0, 1))
        if head.stdout.strip() == ref:
            return
        clear_locks_of(self.layout, branch, git_dir)
        keeps = self._kept(branch)
        at, tip = await self.git.commit_of_head(git_dir), await self.git.commit_of(ref)
        if at is not None and tip is not None and await self.git.is_ancestor(tip, at):
            await self.git.run("update-ref", ref, at, keeps=keeps)
        elif at is not None:
            await self.git.run("update-ref", f"refs/genba/rescue/{path.name}-{at[:12]}", at, keeps=keeps)
        await self.git.run("symbolic-ref", "HEAD", ref, git_dir=git_dir, keeps=keeps)

    def _kept(self, branch: str) -> tuple[int, ...]:
        """The lock of a branch that is held here, for a git that goes on after our death: no other process has it."""
        return self._locks[branch].descriptors if branch in self._locks else ()

    async def _current_branch(self) -> str:
        if on := branch_of(self.layout.git_dir):
            return on.removeprefix("refs/heads/")
        done = await self.git.run("symbolic-ref", "--quiet", "HEAD", git_dir=self.layout.git_dir, allow=(0, 1))
        name = done.stdout.strip().removeprefix("refs/heads/")
        if not name:
            raise StateConflictError("your checkout is on no branch", hint="--base-branch NAME")
        return name

    async def _base_branch(self, request: WorkspaceRequest) -> str:
        return request.base_branch or await self._current_branch()

    async def _check_name(self, branch: str | None) -> None:
        """A name that the user gave must be one for git; one that is made here always is."""
        if branch is None or is_plain(branch):
            return
        valid = await self.git.run("check-ref-format", "--branch", branch, allow=(0, 1, 128))
        if valid.returncode != 0:
            raise StateConflictError(f'"{branch}" is not a name for a branch', hint="--branch NAME")

    async def _lock(self, branch: str, run: str) -> str:
        """Take the branch for a run; tells which run had it before.

        A holder that only clears it away is waited for, and so is a git whose run has died. A holder that has just
        taken it has not yet written its name.
        """
        lock = FileLock(self.layout.branch_lock(branch))
        began = time.monotonic()
        while not lock.try_acquire(run):
            passing = lock.holder().startswith(CLEARING) or lock.holder_is_gone()
            if time.monotonic() - began > (_PATIENCE_SECONDS if passing else _MOMENT_SECONDS):
                raise StateConflictError(
                    f'the branch "{branch}" is in use by {lock.holder()}',
                    hint="wait for that run, or end it; one branch has one agent",
                )
            await asyncio.sleep(_POLL_SECONDS)
        self._locks[branch] = lock
        return lock.before if lock.before not in (run, CLEARING) else ""

    def _unlock(self, branch: str) -> None:
        lock = self._locks.pop(branch, None)
        if lock is not None:
            lock.release()
