"""The branches that work lands on: merges that are stacked without a checkout, and a target that moves only forward.

Work that does not fit comes back to its author with the target merged into its branch, and markers where they conflict.

Law: a target is moved with its old value, so no commit is ever dropped; the first to move it has won.
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.merging.merge_tree import merge_tree
from genba.connections.git.merging.target_remote import SharedRemote
from genba.connections.git.repository.commands import branch_of
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock, is_held
from genba.domain.errors import GitError, StateConflictError
from genba.domain.fleet.merge_queue import MergeHistory, Stacked, UpdatedBranch, Work
from genba.domain.fleet.records import MergeEntry
from genba.domain.sessions.branch_naming import OWN_BRANCHES
from genba.domain.sessions.workspaces import MergeResult, MergeStatus, Proposal, Workspace

LANDED = "refs/genba/landed/"
"""Where the commits of a branch are kept that landed as one."""
_TRAILER = "Genba-Commit"
"""Names the commit of the branch in the one commit that it landed as."""
_MOST_SUBJECTS = 50
_AUTHOR = {"GIT_AUTHOR_NAME": "Genba", "GIT_AUTHOR_EMAIL": "genba@localhost"}
_COMMITTER = {"GIT_COMMITTER_NAME": "Genba", "GIT_COMMITTER_EMAIL": "genba@localhost"}
_LARGEST = 16 * 1024 * 1024
_MARKER = re.compile(rb"^(<{7,}|>{7,}) [0-9a-f]{40,64}(:[^\r\n]*)?\r?$", re.MULTILINE)
"""A marker as it is written here: with the whole hash of a side behind it, which no text about git has."""


class GitTarget:
    """Targets in one repository, and on the remote that the hosts share where there is one."""

    def __init__(self, layout: RepositoryLayout, remote: str = "") -> None:
        self.layout = layout
        self.git = layout.git
        self.repository = GitRepository(layout)
        self.remote = SharedRemote(layout, remote) if remote else None

    async def tip(self, target: str) -> str | None:
        return (await self._tips(target))[0]

    async def _tips(self, target: str) -> tuple[str | None, str | None]:
        """The commit of the target that counts, and the one that the remote has.

        A branch of Genba's own may not be on the remote yet. Any other that is gone there is gone.
        """
        if self.remote is None:
            return await self.git.commit_of(f"refs/heads/{target}"), None
        there = await self.remote.tip(target)
        if there is not None or not target.startswith(OWN_BRANCHES):
            return there, there
        return await self.git.commit_of(f"refs/heads/{target}"), None

    async def tip_of(self, entry: MergeEntry) -> str | None:
        tip = await self.git.commit_of(f"refs/heads/{entry.branch}")
        if tip == entry.commit or self.remote is None:
            return tip
        shared = await self.remote.fetch(f"refs/genba/sessions/{entry.run}", f"refs/genba/fetched/{entry.run}")
        if await self.git.commit_of(entry.commit) is None:
            raise StateConflictError(
                f"{entry.commit[:7]} of {entry.branch} is not here, and {self.remote.name} does not have it",
                hint=f"genba work, on the host that made it: see {entry.run} in genba sessions",
            )
        if shared is None:
            return tip
        if not await self.git.is_ancestor(entry.commit, shared):
            return shared
        # Another host works on it: a branch that was left behind here says nothing.
        behind = tip is None or await self.git.is_ancestor(tip, entry.commit)
        return entry.commit if behind else tip

    async def stack(self, base: str, works: Sequence[Work], history: MergeHistory) -> tuple[Stacked, ...]:
        made: list[Stacked] = []
        for work in works:
            try:
                made.append(await self._put_on(made[-1].tip if made else base, work, history))
            except GitError as error:
                made.append(Stacked(base=made[-1].tip if made else base, problem=error.message))
        return tuple(made)

    async def _put_on(self, base: str, work: Work, history: MergeHistory) -> Stacked:
        merged = await merge_tree(self.git, base, work.commit)
        tree = merged.tree
        # What has arrived changes nothing, so only then it is worth asking.
        changes = self.git.memory.trees.get(base) not in (None, tree)
        if not changes and await self.git.is_ancestor(work.commit, base):
            return Stacked(base=base, arrived=True)
        if merged.in_conflict:
            return Stacked(base=base, conflict=True, paths=merged.paths)
        if history is MergeHistory.MERGE:
            message = f"Merge {work.subject}\n\n{work.trailers}"
            return Stacked(base=base, tree=tree, commit=await self.git.commit_tree(tree, (base, work.commit), message))
        if tree == await self.git.text("rev-parse", f"{base}^{{tree}}"):
            return Stacked(base=base, arrived=True)
        return Stacked(base=base, tree=tree, commit=await self._squashed(base, work, tree))

    async def _squashed(self, base: str, work: Work, tree: str) -> str:
        """The whole work as one commit on its base, by its author."""
        args = ("log", "-z", "--no-merges", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%s")
        fields = (await self.git.run(*args, f"{base}..{work.commit}")).stdout.split("\0")
        if len(fields) < 4:  # noqa: PLR2004  (nothing but merges: then by the author of the last one)
            fields = (await self.git.run(*args[:2], *args[3:], "-1", work.commit)).stdout.split("\0")
        name, email, date = fields[:3]
        subjects = [subject for subject in reversed(fields[3::4]) if subject.strip()]
        text = "".join(f"* {subject}\n" for subject in subjects[:_MOST_SUBJECTS])
        if len(subjects) > _MOST_SUBJECTS:
            text += f"* and {len(subjects) - _MOST_SUBJECTS} more\n"
        message = f"{work.subject}\n\n{text}\n{work.trailers}{_TRAILER}: {work.commit}\n"
        return await self._commit_as(name, email, date, ("commit-tree", tree, "-p", base, "-F", "-"), message)

    async def _commit_as(self, name: str, email: str, date: str, args: tuple[str, ...], message: str) -> str:
        """A commit by the author of the work, as far as git takes that name: an agent can call itself anything."""
        author = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": date}
        for environment in (author, {**author, **_COMMITTER}):  # the second where git does not know who the user is
            done = await self.git.run(*args, stdin=message, environment=environment, allow=(0, 128))
            if done.returncode == 0:
                return done.stdout.strip()
        return (await self.git.run(*args, stdin=message, environment={**_AUTHOR, **_COMMITTER})).stdout.strip()

    async def land(self, target: str, old: str, new: str, keep: Sequence[Work] = ()) -> MergeResult | None:
        now, there = await self._tips(target)
        if now is None:
            return None
        if now == new or (now != old and await self.git.is_ancestor(new, now)):
            return MergeResult(status=MergeStatus.MERGED, commit=new)
        if now != old:
            return None
        for work in keep:
            await self.git.run("update-ref", landed_ref(work), work.commit)
        if self.remote is not None:
            return await self._publish(self.remote, target, there or "", new, keep)
        return await self._move(target, old, new)

    async def _move(self, target: str, old: str, new: str) -> MergeResult | None:
        """Move the branch here, with its checkout where that is clean."""
        lock = self.layout.branch_lock(target)
        if lock.exists() and is_held(lock):
            message = f"{target} is being worked on by {FileLock(lock).holder()}"
            return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=message)
        named = Workspace(
            run="", path="", git_dir="", branch=f"the merge queue of {target}", base_branch=target, base=old,
            isolated=True,
        )  # fmt: skip
        return await self.repository.land(named, Proposal(base=old, commit=new))

    async def _publish(
        self, remote: SharedRemote, target: str, old: str, new: str, keep: Sequence[Work]
    ) -> MergeResult | None:
        """Move the branch of the remote. That is the landing; the branch here follows where it can."""
        more = [f"{work.commit}:{landed_ref(work)}" for work in keep]
        refused = await remote.push(target, old, new, *more)
        if refused:
            now = await remote.tip(target)
            if now is not None and (now == new or await self.git.is_ancestor(new, now)):
                return MergeResult(status=MergeStatus.MERGED, commit=new)
            if (now or "") != old:
                return None
            raise GitError(f"{remote.name} did not take {target}: {refused}", hint=f"git push {remote.name} {target}")
        detail = await self._follow(target, new)
        return MergeResult(status=MergeStatus.MERGED, commit=new, detail=detail)

    async def follow(self, target: str) -> str:
        """Bring the branch here along with what others landed on the remote; says why it stays behind."""
        there = await self.remote.tip(target) if self.remote is not None else None
        return await self._follow(target, there) if there is not None else ""

    async def _follow(self, target: str, new: str) -> str:
        """Bring the branch here along with the remote; says why it stays behind."""
        here = await self.git.commit_of(f"refs/heads/{target}")
        if here in (None, new):
            return ""
        if not await self.git.is_ancestor(str(here), new):
            return f"{target} has commits here that the remote does not have"
        try:
            moved = await self._move(target, str(here), new)
        except (GitError, StateConflictError) as error:
            return error.message
        return moved.detail if moved is not None else ""

    async def landed(self, target: str, work: Work, history: MergeHistory) -> str:
        tip = await self.tip(target)
        if tip is None or await self.git.commit_of(work.commit) is None:
            return ""
        over = f"{work.commit}..{tip}"
        if await self.git.is_ancestor(work.commit, tip):
            args = ("rev-list", "--first-parent", "--parents", over)
            lines = (line.split() for line in (await self.git.text(*args)).splitlines())
            return next((commit for commit, *parents in lines if work.commit in parents[1:]), tip)
        if history is MergeHistory.MERGE:
            return ""
        # Only the last lines of a message count: the others have words of the agent in them.
        shown = f"--format=%H %(trailers:key={_TRAILER},valueonly,separator=%x20)"
        search = ("log", "--first-parent", "--fixed-strings", f"--grep={_TRAILER}: {work.commit}", shown, over)
        lines = (line.split() for line in (await self.git.text(*search)).splitlines())
        return next((commit for commit, *named in lines if work.commit in named), "")


class GitRework:
    """Brings targets into branches. The caller has reopened the workspace, and so holds its branch."""

    def __init__(self, layout: RepositoryLayout, remote: str = "") -> None:
        self.layout = layout
        self.git = layout.git
        self.repository = GitRepository(layout)
        self.remote = SharedRemote(layout, remote) if remote else None

    async def adopt(self, workspace: Workspace, over: str, message: str) -> UpdatedBranch:
        """One merge commit on the branch, and the working tree on it. What else was in the tree is kept under a ref.

        A branch that has the commit already goes on as it is; a tree that a dead process left half-way is brought on.
        """
        tip = await self.git.commit_of(f"refs/heads/{workspace.branch}")
        if tip is None:
            raise StateConflictError(f'the branch "{workspace.branch}" is gone', hint="git branch --all   git reflog")
        await self._fetch_missing(workspace, over)
        if await self.git.is_ancestor(over, tip):
            return await self._again(workspace, tip, over)
        merged = await merge_tree(self.git, tip, over)
        commit = await self.git.commit_tree(merged.tree, (tip, over), message)
        rescued = await self.repository.try_out(workspace, commit, adopt=True)
        return UpdatedBranch(commit=commit, paths=await self.markers_left(commit, merged.paths), rescued=rescued)

    async def tip(self, branch: str) -> str:
        return await self.remote.tip(branch) or "" if self.remote is not None else ""

    async def _again(self, workspace: Workspace, tip: str, over: str) -> UpdatedBranch:
        """The same call, after one that came to its end, or was cut off before the tree was back on its branch."""
        parents = (await self.git.text("rev-list", "--parents", "--max-count=1", tip)).split()[1:]
        just_made = parents[1:] == [over]
        rescued = ""
        if just_made and branch_of(Path(workspace.git_dir)) != f"refs/heads/{workspace.branch}":
            rescued = await self.repository.try_out(workspace, tip, adopt=True)
        paths = (await merge_tree(self.git, parents[0], over)).paths if just_made else ()
        return UpdatedBranch(commit=tip, paths=await self.markers_left(tip, paths), rescued=rescued)

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


def landed_ref(work: Work) -> str:
    return f"{LANDED}{work.task}-{work.commit[:12]}"
