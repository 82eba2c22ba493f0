"""Worktrees in a sandbox: a git worktree outside, a private repository inside, and bundles between the two."""

import asyncio
import contextlib
from pathlib import Path

import msgspec

from genba.connections.git.private.bundles import BundleLimits, bring
from genba.connections.git.private.identity import Identity, corrected
from genba.connections.git.private.packs import Packs
from genba.connections.git.private.private_repositories import (
    borrowed_commit,
    held_refs,
    hold,
    kept_refs,
    private_binds,
    private_head,
    refs_seen,
    send,
    set_aside,
)
from genba.connections.git.private.repository_state import PrivateState, read_state, write_state
from genba.connections.git.repository.commands import branch_of
from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.repository.stale_locks import clear_locks_of
from genba.connections.git.worktrees.flatten_overlay import settle
from genba.connections.git.worktrees.overlay_mount import read_overlay
from genba.connections.git.worktrees.records import TreeRecord
from genba.connections.git.worktrees.rescue import rescue
from genba.connections.git.worktrees.templates import LARGE, Templates
from genba.connections.git.worktrees.worktree_create import check_out
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.errors import BoundaryViolationError, GenbaError, GitError, StateConflictError
from genba.domain.ports import Sandbox
from genba.domain.sessions.branch_naming import plain_name
from genba.domain.sessions.evidence import TreeFacts
from genba.domain.sessions.sandbox import PrivateBinds
from genba.domain.sessions.workspaces import Removal, Workspace, WorkspaceRequest

_LONGEST_SHOWN = 200
_NO_BRANCH = "no branch"


class SandboxedWorktrees:
    """The trees of instances that never see the user's repository.

    `overlays` allows working trees of large repositories to be layers over a template: only where the sandbox mounts
    them.
    """

    def __init__(
        self,
        layout: RepositoryLayout,
        sandbox: Sandbox,
        *,
        overlays: bool = False,
        limits: BundleLimits | None = None,
        large: int = LARGE,
        identity: Identity | None = None,
    ) -> None:
        self.layout = layout
        self.sandbox = sandbox
        self.overlays = overlays
        self.limits = limits or BundleLimits()
        self.git = layout.git
        self.templates = Templates(layout, large)
        self.packs = Packs(layout)
        self.identity = identity
        """Whose commits come out of the sandbox; None leaves them as they are."""
        self.plain = GitWorkingTrees(layout, self._fill, lambda record: held_refs(record.run, record.base, record.base))
        self._one_at_a_time = asyncio.Lock()
        self._layers: dict[str, Workspace] = {}
        """The open working trees that are layers over a template, by their branch."""

    async def open(self, request: WorkspaceRequest) -> Workspace:
        if not request.isolated:
            raise StateConflictError(
                "a sandbox needs a worktree of its own, and this agent works in your checkout",
                hint="--set runner.execution.worktree.enabled=true   or   --sandbox worktree",
            )
        ahead = asyncio.create_task(self.git.settings_of_files())  # needed soon, and remembered
        try:
            workspace = await self._with_overlay(await self.plain.open(request))
        finally:
            await asyncio.gather(ahead, return_exceptions=True)
        try:
            if read_state(self.layout.private_dir(workspace.git_dir)) is not None:
                await self._bring_in(workspace)
                await self.plain.attach(workspace.branch, Path(workspace.path), Path(workspace.git_dir))
            await send(self.layout, workspace)
        except BaseException:
            self.plain.let_go(workspace.branch)
            raise
        return workspace

    async def reopen(self, workspace: Workspace) -> Workspace:
        again = await self._with_overlay(await self.plain.reopen(workspace))
        await self._bring_in(again)
        return again

    async def observe(self, workspace: Workspace) -> TreeFacts:
        strayed = await self._bring_in(workspace, quick=True)
        facts = await self.plain.observe(workspace)
        return msgspec.structs.replace(facts, strayed=strayed or facts.strayed)

    async def uncommitted(self, tree: Path) -> tuple[str, ...]:
        """What a working tree has not committed."""
        return await self.plain.uncommitted(tree)

    async def commit(self, workspace: Workspace, message: str, author: str) -> None:
        await self._bring_in(workspace, quick=True)
        before = await self.git.commit_of_head(Path(workspace.git_dir))
        await self.plain.commit(workspace, message, author)
        if await self.git.commit_of_head(Path(workspace.git_dir)) != before:
            await send(self.layout, workspace)

    async def close(self, workspace: Workspace) -> Removal:
        """Bring back what the instance committed, and remove the tree. Safe to repeat."""
        closed = not is_folder(workspace.git_dir) and read_state(self.layout.private_dir(workspace.git_dir)) is None
        try:
            if not closed:
                await self._bring_in(workspace)
        except GenbaError as error:
            rescued, _ = await rescue(self.layout, workspace)
            removal = Removal(removed=False, rescued=rescued, reason=error.message)
            self.plain.let_go(workspace.branch)
        else:
            removal = await self.plain.close(workspace)
        self._layers.pop(workspace.branch, None)
        if not removal.removed:
            await self.settle(workspace)
        return removal

    async def settle(self, workspace: Workspace) -> Workspace:
        """Make the tree of a run that ends here, and is kept, a plain folder that the user can look into."""
        if workspace.overlay is not None:
            await asyncio.to_thread(settle, self.layout, Path(workspace.path), Path(workspace.git_dir))
            self._layers.pop(workspace.branch, None)
        return msgspec.structs.replace(workspace, overlay=None)

    def release(self) -> None:
        """Let go of the branches, and leave the working trees where the user can look into them."""
        for workspace in self._layers.values():
            with contextlib.suppress(GenbaError, OSError):  # then it stays a layer, with all that is in it
                settle(self.layout, Path(workspace.path), Path(workspace.git_dir))
        self._layers.clear()
        self.plain.release()

    def private_binds(self, workspace: Workspace) -> PrivateBinds:
        """What the private repository of an instance must have for its tree to be one of git's."""
        return private_binds(self.layout, workspace)

    async def _with_overlay(self, workspace: Workspace) -> Workspace:
        """What the tree really is; where no overlay can be mounted, it becomes a plain folder."""
        found = msgspec.structs.replace(workspace, overlay=read_overlay(self.layout.private_dir(workspace.git_dir)))
        if found.overlay is not None and not self.overlays:
            return await self.settle(found)
        if found.overlay is not None:
            self._layers[found.branch] = found
        return found

    async def _fill(self, record: TreeRecord, git_dir: Path, keeps: tuple[int, ...]) -> None:
        """The files of a new tree. The sandboxed work of an older tree of the same place is brought back before."""
        state = read_state(self.layout.private_dir(git_dir))
        if state is not None:
            with contextlib.suppress(GenbaError):  # then it is set aside as it is: nothing of it is lost
                await self._bring_in(state.workspace, tree_is_there=False)
        set_aside(self.layout, git_dir)
        tree = Path(record.path)
        if self.overlays and await self.templates.lay(record.base, tree, git_dir, keeps):
            return
        moves = [check_out(self.layout, tree, git_dir, filters=False, keeps=keeps)]
        if record.new_branch:  # `send` would hold the same, and only then
            moves.append(hold(self.layout, record.run, record.base, record.base))
        await asyncio.gather(*moves, self.packs.ensure(record.base))  # `send` needs the pack soon

    async def _bring_in(self, workspace: Workspace, *, quick: bool = False, tree_is_there: bool = True) -> str:
        """Bring back what the instance committed; returns where it is, if that is not its branch.

        When `quick`, only the private repository is looked at: no other process moves the branch while a run goes on.
        """
        async with self._one_at_a_time:
            private_dir = self.layout.private_dir(workspace.git_dir)
            state = read_state(private_dir)
            if state is None or not state.ready:
                if tree_is_there:
                    await send(self.layout, workspace, keep=state is None)
                return ""
            await self.packs.ensure(borrowed_commit(workspace, state))
            seen = refs_seen(private_dir / "repository")
            host = "" if quick else await self.git.commit_of(f"refs/heads/{workspace.branch}")
            if seen == state.refs and (quick or host == state.tip):
                return state.strayed
            try:
                return await self._meet(workspace, state, seen, tree_is_there)
            except (GitError, BoundaryViolationError) as error:
                error.hint = (
                    error.hint or f"rm {private_dir / 'state.json'}   goes on without those commits; the files stay"
                )
                raise

    async def _meet(self, workspace: Workspace, state: PrivateState, seen: str, tree_is_there: bool) -> str:
        """Bring the private repository and the user's together again, of which one or both have moved."""
        private_dir, ref = self.layout.private_dir(workspace.git_dir), f"refs/heads/{workspace.branch}"
        on, at = private_head(private_dir)
        known = (workspace.base, state.tip)
        refs = await bring(self.layout, self.sandbox, workspace, known, (at,) if at else (), self.limits)
        brought = refs.get(ref, state.tip)
        own = await self._by_its_agent(workspace, brought, known)
        refs = {**refs, ref: own} if ref in refs else refs
        host = await self.git.commit_of(ref)
        await self._keep(workspace, {**refs, "HEAD": at} if at else refs, {workspace.base, state.tip, own})
        if host not in (None, own, state.tip) and not await self.git.is_ancestor(str(host), own):
            return await self._yield_to(workspace, state, own, tree_is_there)
        there = refs.get(f"refs/heads/{on}", "") if on else at
        strayed = "" if there and on == workspace.branch else (on if there and on else _NO_BRANCH)
        head = there if strayed else ""
        moves = [self._move(workspace, own, host)] if own != host else []
        if tree_is_there:
            moves.append(self._follow(workspace, head or own, attached=not head))
        for problem in await asyncio.gather(*moves, return_exceptions=True):
            if problem is not None:
                raise problem
        shown = "".join(letter if letter.isprintable() else "?" for letter in strayed)[:_LONGEST_SHOWN]
        fresh = PrivateState(
            workspace=workspace,
            tip=own,
            head=head,
            strayed=shown,
            refs=seen,
            borrowed=borrowed_commit(workspace, state),
        )
        write_state(private_dir, fresh)
        if own != brought and tree_is_there:
            await send(self.layout, workspace)
        return shown

    async def _by_its_agent(self, workspace: Workspace, tip: str, known: tuple[str, ...]) -> str:
        """The work of an agent, in which each new commit is by the identity that the agent was given."""
        if self.identity is None or tip in known:
            return tip
        return await corrected(self.git, self.identity, workspace.run, tip, known)

    async def _move(self, workspace: Workspace, own: str, host: str | None) -> None:
        """Let the branch be where the instance has it, unless another process moved it meanwhile."""
        clear_locks_of(self.layout, workspace.branch)  # one that a git of ours has left is no fault of the instance
        args = ("update-ref", "-m", f"genba: {workspace.run}", f"refs/heads/{workspace.branch}", own, host or "")
        moved = await self.git.run(*args, allow=(0, 1, 128))
        if moved.returncode != 0:  # git takes nothing but a commit for a branch
            why = moved.stderr.strip().removeprefix("fatal: ")
            raise BoundaryViolationError(f"what {workspace.run} put on {workspace.branch} cannot be taken: {why}")

    async def _yield_to(self, workspace: Workspace, state: PrivateState, own: str, tree_is_there: bool) -> str:
        """The user moved the branch elsewhere: that is where it goes on, and what the instance had is kept."""
        host = f"refs/heads/{workspace.branch}"
        if own != state.tip and not await self.git.is_ancestor(own, host):
            await self.git.run("update-ref", f"{kept_refs(workspace.run)}/parted/{own}", own)
        if tree_is_there:
            await send(self.layout, workspace)
        return ""

    async def _follow(self, workspace: Workspace, commit: str, attached: bool) -> None:
        """Let the user's side of the tree be where the instance is. Another branch of its own is no branch here."""
        git_dir = Path(workspace.git_dir)
        if not is_folder(git_dir):
            return
        (git_dir / "index.lock").unlink(missing_ok=True)
        if attached and branch_of(git_dir) != f"refs/heads/{workspace.branch}":
            await self.git.run("symbolic-ref", "HEAD", f"refs/heads/{workspace.branch}", git_dir=git_dir)
        elif not attached:
            await self.git.run("update-ref", "--no-deref", "HEAD", commit, git_dir=git_dir)
        await self.git.run("read-tree", "--reset", "--no-recurse-submodules", commit, git_dir=git_dir)

    async def _keep(self, workspace: Workspace, refs: dict[str, str], nothing_new: set[str]) -> None:
        """Keep what the instance committed beside its branch, under refs outside refs/heads."""
        folder = kept_refs(workspace.run)
        heads = {name: commit for name, commit in refs.items() if commit not in nothing_new}
        wanted = {
            f"{folder}/heads/{plain_name(name.removeprefix('refs/heads/'))}"
            if name.startswith("refs/heads/")
            else f"{folder}/other/{plain_name(name)}": commit
            for name, commit in heads.items()
        }
        if not wanted and not (self.layout.common / folder).is_dir():
            return  # nothing was ever kept of this run
        args = ("for-each-ref", "--format=%(refname) %(objectname)", f"{folder}/heads", f"{folder}/other")
        known = dict(line.split(" ", 1) for line in (await self.git.text(*args)).splitlines())
        lines = [f"update {name} {commit}\n" for name, commit in wanted.items() if known.get(name) != commit]
        lines += [f"delete {name}\n" for name in known if name not in wanted]
        if lines:
            await self.git.run("update-ref", "--stdin", stdin="".join(lines))
