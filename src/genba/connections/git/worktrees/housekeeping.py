"""Removing what ended tasks left in the repository: worktrees, branches, refs, private repositories and templates.

Law: nothing becomes unreachable. A ref goes only while another ref that stays has its commit, and git checks both at
the moment of the deletion. Nothing goes that Genba did not make, and nothing that a run holds.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from genba.connections.git.private.packs import Packs
from genba.connections.git.private.private_repositories import is_behind
from genba.connections.git.private.repository_state import read_state
from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.repository.locks import FileLock, held, is_held
from genba.connections.git.worktrees.overlay_mount import read_overlay
from genba.connections.git.worktrees.records import TreeRecord, read_record
from genba.connections.git.worktrees.removal import remove
from genba.connections.git.worktrees.trash import delete_later, throw_away
from genba.domain.sessions.branch_naming import OWN_BRANCHES
from genba.domain.sessions.workspaces import Workspace
from genba.domain.tasks.housekeeping import Candidate, Collected, SessionLeftovers

Act = Callable[[], Awaitable[str]]
"""Clears a thing away; says why it stays after all."""
BRANCH = "branch"
"""The kind of a branch that is cleared away or stays."""
_HEADS, _GENBA = "refs/heads/", "refs/genba/"
_FIELDS_OF_A_REF = 4
_OF_RUNS = ("sessions", "shared", "private", "base", "fetched")
_TO_KEEP = ("heads", "landed", "rescue", "private", "sessions")
"""Where several refs have a commit that nothing else has, the first of these keeps it."""
_LISTED = ("heads", "rescue", "private")
"""Kinds of refs that are listed when they stay: a person may want to know what is in them."""


class Ref(msgspec.Struct, frozen=True):
    name: str
    commit: str
    made: int

    @property
    def kind(self) -> str:
        return "heads" if self.name.startswith(_HEADS) else self.name.removeprefix(_GENBA).partition("/")[0]

    @property
    def rest(self) -> str:
        """The name below its kind."""
        below = self.name.removeprefix(_HEADS) if self.kind == "heads" else self.name.removeprefix(_GENBA)
        return below if self.kind == "heads" else below.partition("/")[2]


class GitHousekeeping:
    """Finds what can go. `runs` is everything that is known of runs; what is older than `before` is old enough."""

    def __init__(
        self, layout: RepositoryLayout, runs: Mapping[str, SessionLeftovers], before: float, rescued: bool = False
    ) -> None:
        self.layout = layout
        self.git = layout.git
        self.runs = runs
        self.before = before
        self.rescued = rescued
        """Whether old rescue refs go although nothing else has their commits: only on request."""

    async def find(self) -> list[Candidate]:
        trees = await asyncio.to_thread(lambda: list(self._trees()))
        going = {candidate.found.name for candidate in trees if candidate.act is not None}
        refs = await self._refs(going)
        private_dirs = await asyncio.to_thread(lambda: [*self._private_dirs(), *self._templates(), *self._packs()])
        return [*trees, *refs, *private_dirs]

    # Working trees

    def _trees(self) -> Iterator[Candidate]:
        for path in self.layout.tree_records():
            record = read_record(path)
            fact = self.runs.get(record.run) if record is not None else None
            if record is None or fact is None or not (fact.over or fact.listed):
                continue
            tree = Path(record.path)
            if not fact.over:
                stays = "it runs" if self._is_held(record.branch) else fact.why
                yield _kept("working tree", record.path, stays, folder_size(tree))
                continue
            if self._is_held(record.branch):
                yield _kept("working tree", record.path, f"a run holds {record.branch}", folder_size(tree))
                continue
            git_dir = self.layout.find_git_dir_of(tree)
            size = folder_size(tree) + (folder_size(self.layout.private_dir(git_dir)) if git_dir is not None else 0)
            found = Collected(kind="working tree", name=record.path, why=fact.why, size=size)
            yield Candidate(found, self._removing(record, fact))

    def _removing(self, record: TreeRecord, fact: SessionLeftovers) -> Act:
        async def act() -> str:
            lock = FileLock(self.layout.branch_lock(record.branch))
            # Under the name of its run: the next holder of the branch sees that one.
            if not lock.try_acquire(record.run):
                return f"a run holds {record.branch}"
            try:
                return await self._remove(record, fact)
            finally:
                lock.release()

        return act

    async def _remove(self, record: TreeRecord, fact: SessionLeftovers) -> str:
        known = read_record(self.layout.tree_record(record.branch))
        if known != record:
            return "" if known is None else f"{known.run} works there now"
        tree = Path(record.path)
        git_dir = self.layout.find_git_dir_of(tree)
        if git_dir is None:
            if is_folder(tree):
                return "git does not know it as a working tree"
            self.layout.tree_record(record.branch).unlink(missing_ok=True)
            return ""
        workspace = Workspace(
            run=record.run,
            path=record.path,
            git_dir=str(git_dir),
            branch=record.branch,
            base_branch=fact.base_branch,
            base=record.base,
            isolated=True,
            overlay=read_overlay(self.layout.private_dir(git_dir)),
        )
        removal = await remove(self.layout, workspace)
        return "" if removal.removed else removal.reason

    def _is_held(self, branch: str) -> bool:
        lock = self.layout.branch_lock(branch)
        return lock.is_file() and is_held(lock)

    # Refs

    async def _refs(self, going: set[str]) -> list[Candidate]:
        args = ("for-each-ref", "--format=%(refname) %(objectname) %(objecttype) %(creatordate:unix)")
        lines = (line.split(" ") for line in (await self.git.run(*args)).stdout.split("\n"))
        refs = [_ref(*fields) for fields in lines if len(fields) == _FIELDS_OF_A_REF and fields[2] == "commit"]
        checkouts = {branch: str(path) for branch, path in (await self.layout.checkouts()).items()}
        with_private_dirs = await asyncio.to_thread(self._runs_with_private_dirs, going)
        wanted = {ref: why for ref in refs if (why := self._may_go(ref, with_private_dirs))}
        candidates: list[Candidate] = []
        kept = {ref.name for ref in refs if ref not in wanted}
        for ref in sorted(wanted, key=_worth_keeping):
            where = checkouts.get(ref.rest, "") if ref.kind == "heads" else ""
            stays = f"it is checked out at {where}" if where and where not in going else ""
            if not stays and ref.kind == "heads" and self._is_held(ref.rest):
                stays = "a run holds it"
            keeper = "" if stays else await self._keeper(ref.commit, kept)
            drops = ref.kind == "rescue" and self.rescued
            if not stays and not keeper and not drops:
                stays = "nothing else has its commits"
            if stays:
                kept.add(ref.name)
                if ref.kind in _LISTED:
                    candidates.append(_kept(_shown_kind(ref), ref.name.removeprefix(_HEADS), stays))
                continue
            message = f"{wanted[ref]}; {_short(keeper)} has its commits" if keeper else f"{wanted[ref]}; --rescued"
            found = Collected(kind=_shown_kind(ref), name=ref.name.removeprefix(_HEADS), why=message)
            candidates.append(Candidate(found, self._deleting(ref, keeper)))
        return candidates

    def _may_go(self, ref: Ref, with_private_dirs: set[str]) -> str:
        """Why a ref is no longer needed; empty where it is, or is not Genba's."""
        if ref.kind == "heads":
            return self._branch_over(ref.rest)
        if not ref.name.startswith(_GENBA):
            return ""
        if ref.kind in _OF_RUNS:
            owner = self.runs.get(ref.rest.partition("/")[0]) or self.runs.get(ref.rest.rpartition("/")[2])
            if owner is None:
                branch = ref.rest.partition("branches/")[2] or ref.rest.partition("heads/")[2]
                return self._branch_over(branch) if branch and ref.kind == "fetched" else ""
            return owner.why if owner.over and not (ref.kind == "base" and owner.run in with_private_dirs) else ""
        if ref.kind == "landed":
            number = ref.rest.partition("-")[0]
            facts = [fact for fact in self.runs.values() if str(fact.task) == number]
            return facts[0].why if facts and all(fact.over for fact in facts) else ""
        if ref.kind == "rescue":
            owners = [run for run in self.runs if ref.rest == run or ref.rest.startswith(f"{run}-")]
            owner = self.runs[max(owners, key=len)] if owners else None
            if ref.made > self.before or (owner is not None and not owner.over):
                return ""
            return owner.why if owner is not None else "it is old"
        return ""

    def _branch_over(self, branch: str) -> str:
        """Why no process works on a branch of Genba's any more; empty where one may, or it is the user's."""
        facts = [fact for fact in self.runs.values() if fact.branch == branch]
        record = read_record(self.layout.tree_record(branch))
        ours = branch.startswith(OWN_BRANCHES) or (record is not None and record.new_branch)
        needed = any(fact.base_branch == branch and not fact.over for fact in self.runs.values())
        if not facts or not ours or needed or not all(fact.over for fact in facts):
            return ""
        return facts[-1].why

    def _runs_with_private_dirs(self, going: set[str]) -> set[str]:
        private_dirs = self.layout.own / "private"
        states = [read_state(private_dir) for private_dir in private_dirs.iterdir()] if private_dirs.is_dir() else []
        return {state.workspace.run for state in states if state is not None and state.workspace.path not in going}

    async def _keeper(self, commit: str, kept: set[str]) -> str:
        """A ref that stays, and has this commit."""
        done = await self.git.run("for-each-ref", "--format=%(refname)", f"--contains={commit}", allow=(0, 128, 129))
        having = [name for name in done.stdout.splitlines() if name in kept]
        branches = [name for name in having if name.startswith((_HEADS, "refs/remotes/", "refs/tags/"))]
        return (branches or having or [""])[0]

    def _deleting(self, ref: Ref, keeper: str) -> Act:
        async def act() -> str:
            lock = FileLock(self.layout.branch_lock(ref.rest)) if ref.kind == "heads" else None
            if lock is not None and not lock.try_acquire(_holder_before(lock)):
                return "a run holds it"
            try:
                async with held(self.layout.repository_lock, f"deletion of {ref.name}"):
                    return await self._delete(ref, keeper)
            finally:
                if lock is not None:
                    lock.release()

        return act

    async def _delete(self, ref: Ref, keeper: str) -> str:
        """In one transaction of git's: the keeper still has the commit, and the ref is where it was looked at."""
        now = await self.git.commit_of(ref.name)
        if now is None:
            return ""
        if now != ref.commit:
            return "it has moved"
        if ref.kind == "heads" and (where := (await self.layout.checkouts()).get(ref.rest)):
            return f"it is checked out at {where}"
        if ref.kind == "base" and ref.rest.partition("/")[0] in await asyncio.to_thread(
            self._runs_with_private_dirs, set()
        ):
            return "a private repository borrows from it"
        lines = []
        if keeper:
            at = await self.git.commit_of(keeper)
            if at is None or not await self.git.is_ancestor(ref.commit, at):
                return f"{_short(keeper)} has its commits no longer"
            exact = await self.git.text("rev-parse", "--verify", keeper)
            lines.append(f"verify {keeper} {exact}\n")
        lines.append(f"delete {ref.name} {ref.commit}\n")
        done = await self.git.run("update-ref", "--stdin", stdin="".join(lines), allow=(0, 1, 128))
        return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["git gave no reason"])[-1]

    # Cells and templates

    def _private_dirs(self) -> Iterator[Candidate]:
        """The private folders of sandboxed worktrees that are gone."""
        private_dirs = self.layout.own / "private"
        for private_dir in sorted(private_dirs.iterdir()) if private_dirs.is_dir() else ():
            state = read_state(private_dir)
            fact = self.runs.get(state.workspace.run) if state is not None else None
            if is_folder(self.layout.common / "worktrees" / private_dir.name) or (fact is not None and not fact.over):
                continue
            if private_dir.stat().st_mtime > self.before:
                continue
            size = folder_size(private_dir)
            if state is None or is_behind(private_dir):
                message = "it may have work that was not brought back from the sandbox"
                yield _kept("private repository", str(private_dir), message, size)
                continue
            why = fact.why if fact is not None else "its working tree is gone"
            yield Candidate(
                Collected(kind="private repository", name=str(private_dir), why=why, size=size),
                self._throwing(private_dir, "private repository"),
            )

    def _templates(self) -> Iterator[Candidate]:
        root = self.layout.own / "templates"
        for path in sorted(root.iterdir()) if root.is_dir() else ():
            if path.stat().st_mtime > self.before or path.name in self._lain_over():
                continue
            found = Collected(
                kind="template", name=path.name, why="no working tree lies over it", size=folder_size(path)
            )
            yield Candidate(found, self._throwing_template(path))

    def _packs(self) -> Iterator[Candidate]:
        packs = Packs(self.layout)
        for path in packs.unused(self.before):
            found = Collected(kind="pack", name=path.name, why="no session uses it", size=folder_size(path))
            yield Candidate(found, self._throwing_pack(packs, path))

    def _throwing_pack(self, packs: Packs, path: Path) -> Act:
        async def act() -> str:
            if path not in await asyncio.to_thread(packs.unused, self.before):
                return "a session uses it"
            return await self._throwing(path, "pack")()

        return act

    def _lain_over(self) -> set[str]:
        private_dirs = self.layout.own / "private"
        overlays = (
            [read_overlay(private_dir) for private_dir in private_dirs.iterdir()] if private_dirs.is_dir() else []
        )
        return {Path(overlay.lower).parent.name for overlay in overlays if overlay is not None}

    def _throwing_template(self, path: Path) -> Act:
        async def act() -> str:
            async with held(self.layout.own / "locks" / "templates", "housekeeping"):
                if path.name in await asyncio.to_thread(self._lain_over):
                    return "a working tree lies over it"
                making = FileLock(self.layout.own / "locks" / f"template-{path.name.partition('.')[0]}")
                if not making.try_acquire("housekeeping"):
                    return "it is being made"
                try:
                    return await self._throwing(path, "template")()
                finally:
                    making.release()

        return act

    def _throwing(self, path: Path, name: str) -> Act:
        async def act() -> str:
            await asyncio.to_thread(lambda: delete_later(throw_away(self.layout, path, name)))
            return ""

        return act


def folder_size(path: Path) -> int:
    """What a file or a folder takes, links not followed."""
    try:
        total = path.lstat().st_size
    except OSError:
        return 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118  (many of them)
            except OSError:
                continue
    return total


def _ref(name: str, commit: str, _kind: str, made: str) -> Ref:
    """A ref as git lists it. Of some commits git cannot tell the time: they are as old as any."""
    return Ref(name, commit, int(made) if made.isdigit() else 0)


def _kept(kind: str, name: str, why: str, size: int = 0) -> Candidate:
    return Candidate(Collected(kind=kind, name=name, why=why, size=size, kept=True))


def _worth_keeping(ref: Ref) -> tuple[int, str]:
    return (_TO_KEEP.index(ref.kind) if ref.kind in _TO_KEEP else len(_TO_KEEP), ref.name)


def _shown_kind(ref: Ref) -> str:
    return {"heads": BRANCH, "rescue": "rescued work"}.get(ref.kind, "ref")


def _short(name: str) -> str:
    return name.removeprefix(_HEADS).removeprefix("refs/remotes/").removeprefix("refs/tags/")


def _holder_before(lock: FileLock) -> str:
    """The previous holder of a lock: the next holder of the branch sees that one, not us."""
    return lock.holder().partition(" (process")[0] if lock.path.is_file() else ""
