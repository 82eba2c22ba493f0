"""Fast-forwarding the user's checkout, so that one who dies in the middle of it leaves nothing in anybody's way.

The files of the checkout come first and its branch last. What is about to land is written down before, so that whoever
lands next finds a checkout that was left between the two, and puts it back.
"""

from pathlib import Path

import msgspec

from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.saying import telling_line
from genba.connections.git.spans import changes_over, parse_changes
from genba.domain.workspaces import MergeResult, MergeStatus, Proposal

_SHOWN = 5


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    checkout: str
    ref: str
    base: str
    commit: str


class Landing:
    """Moves a branch together with its checkout. Whoever calls holds the lock of the repository."""

    def __init__(self, layout: RepositoryLayout) -> None:
        self.layout = layout
        self.git = layout.git
        self.record = layout.own / "landing.json"

    async def fast_forward(
        self, checkout: Path, base_ref: str, proposal: Proposal, changes: list[tuple[str, str]]
    ) -> MergeResult | None:
        """Bring the user's clean checkout forward together with its branch, or leave both as they are."""
        if await self.git.commit_of(base_ref) != proposal.base:
            return None
        git_dir = self.layout.git_dir_of(checkout)
        there = [name for status, name in changes if status == "A" and _exists(checkout / name)]
        if there:
            shown = ", ".join(there[:_SHOWN])
            told = f"{checkout} has files that the merge would overwrite ({shown})"
            return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=told)
        self._write(_Record(checkout=str(checkout), ref=base_ref, base=proposal.base, commit=proposal.commit))
        forward = ("read-tree", "-m", "-u", proposal.base, proposal.commit)
        done = await self.git.run(*forward, tree=checkout, git_dir=git_dir, allow=(0, 1, 128))
        if "not uptodate" in done.stderr:  # a file that was only touched, until git has looked into it again
            await self.git.run("update-index", "-q", "--refresh", tree=checkout, git_dir=git_dir, allow=(0, 1))
            done = await self.git.run(*forward, tree=checkout, git_dir=git_dir, allow=(0, 1, 128))
        said = done.stderr
        if done.returncode == 0:
            moved = await self.git.run("update-ref", "-m", "genba: merge", base_ref, proposal.commit, proposal.base,
                                       allow=(0, 128))  # fmt: skip
            if moved.returncode == 0:
                self.record.unlink(missing_ok=True)
                return MergeResult(status=MergeStatus.MERGED, commit=proposal.commit)
            said = moved.stderr
        await self._put_back(checkout, git_dir, proposal.base, changes)
        self.record.unlink(missing_ok=True)
        if await self.git.commit_of(base_ref) != proposal.base:
            return None
        return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=f"{checkout}: {telling_line(said)}")

    async def put_back_what_was_cut_off(self, checkout: Path | None) -> None:
        """Put a checkout back that a dead process had brought forward without its branch.

        Only what is exactly as that process left it is touched. Where the user has changed something since, everything
        stays, and is told as a change like any other.
        """
        record = self._read()
        if record is None or checkout is None or str(checkout) != record.checkout:
            return
        if await self.git.commit_of(record.ref) != record.base:
            self.record.unlink(missing_ok=True)
            return
        git_dir = self.layout.git_dir_of(checkout)
        if await self._is_as_left(checkout, git_dir, record):
            changes = await self.changes(record.base, record.commit)
            await self._put_back(checkout, git_dir, record.base, changes)
            self.record.unlink(missing_ok=True)

    async def _is_as_left(self, checkout: Path, git_dir: Path, record: _Record) -> bool:
        await self.git.run("update-index", "-q", "--refresh", tree=checkout, git_dir=git_dir, allow=(0, 1, 128))
        words = ("diff-index", "--cached", "--quiet", "--ignore-submodules=all", record.commit)
        staged = await self.git.run(*words, tree=checkout, git_dir=git_dir, allow=(0, 1, 128))
        changed = await self.git.run(
            "diff-files", "--quiet", "--ignore-submodules=all", tree=checkout, git_dir=git_dir, allow=(0, 1, 128)
        )
        return staged.returncode == 0 and changed.returncode == 0

    async def changes(self, base: str, commit: str) -> list[tuple[str, str]]:
        """What changes from one commit to another: the status and the name of each file."""
        return [(change.status, change.path) for change in parse_changes(await changes_over(self.git, base, commit))]

    async def _put_back(self, checkout: Path, git_dir: Path, base: str, changes: list[tuple[str, str]]) -> None:
        """Undo a fast-forward that failed: the tracked files were clean, and the added ones were not there before."""
        await self.git.run("read-tree", "--reset", base, git_dir=git_dir)
        there = "\0".join(name for status, name in changes if status != "A")
        restore = ("checkout-index", "--force", "--quiet", "-z", "--stdin")
        await self.git.run(*restore, tree=checkout, git_dir=git_dir, stdin=there, allow=(0, 1, 128))
        for status, name in changes:
            if status == "A" and (checkout / name).is_file():
                (checkout / name).unlink()
        await self.git.run("update-index", "-q", "--refresh", tree=checkout, git_dir=git_dir, allow=(0, 1))

    def _read(self) -> _Record | None:
        try:
            return msgspec.json.decode(self.record.read_bytes(), type=_Record)
        except (OSError, ValueError, RecursionError):
            return None

    def _write(self, record: _Record) -> None:
        self.record.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.record.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(record))
        fresh.replace(self.record)


def _exists(path: Path) -> bool:
    """Whether something of this name is there; a folder of tracked files that become one file is git's to judge."""
    return path.is_symlink() or path.is_file()
