"""Sessions that any host can go on with: their work is kept under a ref of the remote that all hosts share.

`refs/genba/sessions/<run>` is everything: the branch, and what was not committed yet as one commit on top of it.
`refs/genba/branches/<branch>` is the branch alone. Both move together or not at all.

Law: no host overwrites what another host has shared. A host that finds newer work of another leaves it alone; what
was here besides is kept under a rescue ref.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from genba.connections.git.agent_trees.checkout_files import lay_out
from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.merging.target_remote import SECONDS, error_line, fetch
from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.worktrees.worktree_status import staged, tree_status
from genba.domain.errors import GitError, StateConflictError
from genba.domain.ports import WorkingTrees
from genba.domain.sessions.branch_naming import folder_name
from genba.domain.sessions.evidence import TreeFacts
from genba.domain.sessions.workspaces import Removal, Workspace, WorkspaceRequest

SESSIONS = "refs/genba/sessions/"
BRANCHES = "refs/genba/branches/"
SHARED = "refs/genba/shared/"
"""What this host last saw on the remote as its own: locally only."""
FETCHED = "refs/genba/fetched/"
_REFUSED = ("[rejected]", "[remote rejected]", "stale info")

Tell = Callable[[str], None]


class SharedWork(msgspec.Struct, frozen=True, kw_only=True):
    """What the remote has of a session."""

    whole: str
    tip: str
    """The commit of the branch; the whole has more where something was not committed yet."""


class Sharing:
    """What a repository shares with the other hosts, through one remote."""

    def __init__(self, layout: RepositoryLayout, remote: str) -> None:
        self.layout = layout
        self.git = layout.git
        self.remote = remote

    async def share(self, workspace: Workspace) -> None:
        """Let the other hosts have what a session has come to. It touches neither its branch nor its tree.

        Raises where the remote could not be reached or another host has gone on: the work here goes on all the same.
        """
        tip = await self.git.commit_of(f"refs/heads/{workspace.branch}")
        if tip is None or not workspace.isolated:
            return
        problem = ""
        try:
            whole = await self._whole(workspace, tip)
        except GitError as error:
            whole, problem = tip, error.message
        mine = await self._mine(workspace.run)
        if whole != mine[0]:
            await self.git.run("update-ref", f"{SESSIONS}{workspace.run}", whole)
            await self._push(workspace, tip, whole, mine)
            await self.git.run("update-ref", f"{SHARED}{workspace.run}", whole)
        if problem:
            raise GitError(f"only what is committed: {problem}")

    async def _whole(self, workspace: Workspace, tip: str) -> str:
        """The branch, with everything on top of it that is in the tree besides."""
        if not is_folder(workspace.path):
            return tip
        seen = await staged(self.git, Path(workspace.path), Path(workspace.git_dir))
        strayed = seen.on != workspace.branch and not await self.git.is_ancestor(seen.head, tip)
        if not seen.tree and not strayed:
            return tip
        tree = seen.tree or await self.git.text("rev-parse", f"{seen.head}^{{tree}}")
        parents = (tip, seen.head) if strayed else (tip,)
        known = await self.git.commit_of(f"{SESSIONS}{workspace.run}")
        shown = await self.git.text("show", "-s", "--format=%T %P", known) if known is not None else ""
        if known is not None and shown == " ".join((tree, *parents)):
            return known
        message = f"Uncommitted work of {workspace.run} on {workspace.branch}\n"
        return await self.git.commit_tree(tree, parents, message)

    async def _mine(self, run: str) -> tuple[str, str]:
        """What this host has shared last, and what it was about to share when it was cut off."""
        shared = await self.git.commit_of(f"{SHARED}{run}")
        return shared or "", await self.git.commit_of(f"{SESSIONS}{run}") or ""

    async def _push(self, workspace: Workspace, tip: str, whole: str, mine: tuple[str, str]) -> None:
        ref, expected = f"{SESSIONS}{workspace.run}", mine[0]
        while True:
            args = ("push", "--quiet", "--atomic", f"--force-with-lease={ref}:{expected}", self.remote,
                     f"{whole}:{ref}", f"+{tip}:{BRANCHES}{workspace.branch}")  # fmt: skip
            done = await self.git.reach(self.remote, *args, tree=self.layout.top, push=True, seconds=SECONDS)
            if done.returncode == 0:
                return
            why = error_line(done.stderr)
            if not any(mark in done.stderr for mark in _REFUSED):
                raise GitError(f"{self.remote} cannot be reached: {why}", hint=f"git fetch {self.remote}")
            there = (await self.listed(ref)).get(ref, "")
            if there == whole:
                return
            if there == expected:
                raise GitError(
                    f"{self.remote} did not take it: {why}", hint=f"git push {self.remote} {whole[:12]}:{ref}"
                )
            if there not in mine:
                raise StateConflictError(f"another host has gone on with {workspace.run}")
            expected = there

    async def listed(self, *refs: str) -> dict[str, str]:
        """What the remote has under these names; under all where none is given."""
        args = ("ls-remote", "--quiet", "--refs", self.remote, *refs)
        done = await self.git.reach(self.remote, *args, tree=self.layout.top, seconds=SECONDS)
        if done.returncode != 0:
            raise GitError(
                f"{self.remote} cannot be reached: {error_line(done.stderr)}", hint=f"git fetch {self.remote}"
            )
        found = (line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)
        return {name: commit for commit, name in found if not refs or name in refs}

    async def bring(self, refs: dict[str, str]) -> None:
        """Have refs of the remote here, each under a name of Genba's own."""
        if not refs:
            return
        done = await fetch(self.layout, self.remote, refs, "fetch of shared work")
        if done.returncode != 0:
            raise GitError(
                f"shared work could not be fetched from {self.remote}: {error_line(done.stderr)}",
                hint=f"git fetch {self.remote}",
            )

    async def bring_commit(self, commit: str) -> None:
        """Fetch a commit that some host has shared; does nothing where it is here, or was not shared."""
        if await self.git.commit_of(commit) is not None:
            return
        shared = {ref for ref in await self.listed() if ref.startswith((SESSIONS, BRANCHES, "refs/heads/"))}
        for ref in sorted(shared):
            await self.bring({ref: f"{FETCHED}{ref.removeprefix('refs/')}"})
            if await self.git.commit_of(commit) is not None:
                return

    async def found(self, run: str, branch: str) -> SharedWork | None:
        """What the remote has of a session, which is here afterwards."""
        wanted = {f"{SESSIONS}{run}": f"{FETCHED}{run}", f"{BRANCHES}{branch}": f"{FETCHED}branches/{branch}"}
        there = await self.listed(*wanted)
        if f"{SESSIONS}{run}" not in there:
            return None
        await self.bring({ref: wanted[ref] for ref in there})
        whole = await self.git.commit_of(f"{FETCHED}{run}")
        tip = await self.git.commit_of(f"{FETCHED}branches/{branch}")
        if whole is None:
            return None
        parents = (await self.git.text("show", "-s", "--format=%P", whole)).split()
        return SharedWork(whole=whole, tip=tip if tip is not None and tip in parents[:1] else whole)

    async def is_news(self, run: str, found: SharedWork) -> bool:
        """Whether another host has shared it."""
        return found.whole not in await self._mine(run)

    async def take(self, workspace: Workspace, found: SharedWork) -> str:
        """Go on from what another host has shared; returns the ref of what was here instead.

        The caller has the workspace open. Cut off anywhere, it is done again from its beginning.
        """
        run = workspace.run
        tip = await self.git.commit_of(f"refs/heads/{workspace.branch}")
        if tip not in (None, found.tip) and await self.git.is_ancestor(found.tip, str(tip)):
            return await self._stay_ahead(run, found)
        rescued = ""
        if tip is not None and not await self.git.is_ancestor(tip, found.tip):
            rescued = f"refs/genba/rescue/{run}-{tip[:12]}"
            await self.git.run("update-ref", rescued, tip)
        head, on, dirty = await tree_status(self.git, Path(workspace.path), Path(workspace.git_dir))
        if dirty or (head, on) != (found.tip, workspace.branch):
            rescued = await GitRepository(self.layout).try_out(workspace, found.tip, adopt=True) or rescued
        if found.whole != found.tip:
            await self._lay_out(workspace, found.whole)
        lines = "".join(f"update {name}{run} {found.whole}\n" for name in (SESSIONS, SHARED))
        await self.git.run("update-ref", "--stdin", stdin=lines)
        return rescued

    async def _stay_ahead(self, run: str, found: SharedWork) -> str:
        """What is here has gone further than what was shared: it stays, and so does what only the others have."""
        rescued = f"refs/genba/rescue/{run}-{found.whole[:12]}" if found.whole != found.tip else ""
        lines = [f"update {SHARED}{run} {found.whole}\n"]
        lines += [f"update {rescued} {found.whole}\n"] if rescued else []
        await self.git.run("update-ref", "--stdin", stdin="".join(lines))
        return rescued

    async def _lay_out(self, workspace: Workspace, commit: str) -> None:
        """Bring the files of a commit into the tree, as uncommitted changes."""
        tree, git_dir = Path(workspace.path), Path(workspace.git_dir)
        await lay_out(self.git, tree, git_dir, commit)

    async def forget(self, run: str, branch: str) -> bool:
        """Delete what the remote has of a session that is over, if all of it is reachable from other refs there."""
        ref, beside = f"{SESSIONS}{run}", f"{BRANCHES}{branch}"
        there = await self.listed()
        if ref not in there:
            return await self._forget_here(run)
        kept = {commit for name, commit in there.items() if not name.startswith((SESSIONS, BRANCHES))}
        gone = [name for name in (ref, beside) if name in there and await self.is_kept(there[name], kept)]
        if ref not in gone:
            return False
        leases = [f"--force-with-lease={name}:{there[name]}" for name in gone]
        args = ("push", "--quiet", *leases, self.remote, *(f":{name}" for name in gone))
        done = await self.git.reach(self.remote, *args, tree=self.layout.top, push=True, seconds=SECONDS)
        return done.returncode == 0 and await self._forget_here(run)

    async def _forget_here(self, run: str) -> bool:
        """Drop the local names of what was shared, as far as that leaves nothing unreachable."""
        names = [f"{place}{run}" for place in (SESSIONS, SHARED, FETCHED)]
        listed = (await self.git.text("for-each-ref", "--format=%(objectname) %(refname)")).splitlines()
        refs = {name: commit for commit, name in (line.split(" ", 1) for line in listed)}
        kept = {commit for name, commit in refs.items() if name not in names}
        gone = {name: refs[name] for name in names if name in refs and await self.is_kept(refs[name], kept)}
        await self.git.delete_refs(gone)
        return True

    async def is_kept(self, commit: str, by: set[str]) -> bool:
        """Whether a commit is reachable from some of these, as far as this repository knows them."""
        asked = "".join(f"{one}\n" for one in (commit, *by))
        known = await self.git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
        types = dict(line.split(" ", 1) for line in known.stdout.splitlines() if " " in line)
        if types.get(commit) != "commit":
            return False
        there = [one for one in by if types.get(one) in ("commit", "tag")]
        stdin = "".join(f"{line}\n" for line in (commit, *(f"^{one}" for one in there)))
        done = await self.git.run("rev-list", "--max-count=1", "--stdin", stdin=stdin, allow=(0, 128))
        return done.returncode == 0 and not done.stdout.strip()


class SharedTrees:
    """Working trees of sessions that may have begun on another host."""

    def __init__(self, trees: WorkingTrees, sharing: Sharing, root: str, tell: Tell) -> None:
        self.trees = trees
        self.sharing = sharing
        self.layout = sharing.layout
        self.root = self.layout.top / root
        self.tell = tell

    async def open(self, request: WorkspaceRequest) -> Workspace:
        """A new session begins at what all hosts have: the base as it is on the remote, and the branch so far."""
        git, remote = self.layout.git, self.sharing.remote
        places = {f"refs/heads/{request.base_branch}": f"refs/remotes/{remote}/{request.base_branch}"}
        if request.branch:
            places |= {
                f"refs/heads/{request.branch}": f"refs/remotes/{remote}/{request.branch}",
                f"{BRANCHES}{request.branch}": f"{FETCHED}branches/{request.branch}",
            }
        there = await self.sharing.listed(*places)
        await self.sharing.bring({ref: places[ref] for ref in there})
        base = there.get(f"refs/heads/{request.base_branch}", "")
        ahead = [there[ref] for ref in places if ref in there and ref != f"refs/heads/{request.base_branch}"]
        if ahead and await git.commit_of(f"refs/heads/{request.branch}") is None:
            await git.run("update-ref", f"refs/heads/{request.branch}", ahead[-1], "0" * len(ahead[-1]), allow=(0, 128))
        workspace = await self.trees.open(msgspec.structs.replace(request, base=base))
        for commit in ahead:
            await self._forward(workspace, commit)
        return workspace

    async def _forward(self, workspace: Workspace, commit: str) -> None:
        """Bring a branch forward that another host has brought forward."""
        tip = await self.layout.git.commit_of(f"refs/heads/{workspace.branch}")
        if tip in (None, commit) or not await self.layout.git.is_ancestor(str(tip), commit):
            return
        rescued = await GitRepository(self.layout).try_out(workspace, commit, adopt=True)
        self._say(rescued)

    async def reopen(self, workspace: Workspace) -> Workspace:
        """Go on with a session, wherever it was before."""
        here = self._is_here(workspace)
        try:
            found = await self.sharing.found(workspace.run, workspace.branch)
        except GitError as error:
            if not here:
                raise
            self.tell(f"whether another host has gone on is not known: {error.message}")
            found = None
        if not here:
            workspace = await self._moved(workspace, found)
        workspace = await self.trees.reopen(workspace)
        if found is not None and (not here or await self.sharing.is_news(workspace.run, found)):
            self._say(await self.sharing.take(workspace, found))
        return workspace

    def _is_here(self, workspace: Workspace) -> bool:
        git_dir = Path(workspace.git_dir)
        ours = git_dir.is_relative_to(self.layout.common / "worktrees") or not workspace.isolated
        return ours and is_folder(git_dir) and is_folder(workspace.path)

    async def _moved(self, workspace: Workspace, found: SharedWork | None) -> Workspace:
        """The same workspace in this repository, with the branch that it needs."""
        git, ref = self.layout.git, f"refs/heads/{workspace.branch}"
        if found is not None and await git.commit_of(ref) is None:
            await git.run("update-ref", ref, found.tip, "0" * len(found.tip), allow=(0, 128))
        name = folder_name(workspace.branch)
        self.layout.exclude(f"/{self.root.relative_to(self.layout.top).as_posix()}/")
        return msgspec.structs.replace(
            workspace,
            path=str(self.root / f".{name}.elsewhere"),
            git_dir=str(self.layout.common / "worktrees" / name),
            overlay=None,
        )

    def _say(self, rescued: str) -> None:
        if rescued:
            self.tell(f"what was here besides is kept: git show {rescued}")

    async def observe(self, workspace: Workspace) -> TreeFacts:
        return await self.trees.observe(workspace)

    async def commit(self, workspace: Workspace, message: str, author: str) -> None:
        await self.trees.commit(workspace, message, author)

    async def close(self, workspace: Workspace) -> Removal:
        return await self.trees.close(workspace)
