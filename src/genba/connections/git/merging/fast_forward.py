"""Fast-forwarding the user's checkout, so that one who dies in the middle of it leaves nothing in anybody's way.

The files of the checkout come first and its branch last. What is about to land is written down before, so that the next
lands next finds a checkout that was left between the two, and puts it back. A git that outlives who started it holds
the lock of the repository until it is done: no other process looks at what it is still writing.
"""

import asyncio
import os
import subprocess
from pathlib import Path

import msgspec

from genba.connections.atomic_write import put
from genba.connections.git.repository.git_errors import error_line
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock
from genba.connections.git.scanning.commit_range import Change, changes_over, parse_changes
from genba.connections.private_folders import make_private_folder
from genba.domain.decoding import reader
from genba.domain.errors import GitError
from genba.domain.sessions.workspaces import MergeResult, MergeStatus, Proposal

_SHOWN = 5
_CLOCK_STEP = 2.0
"""The coarsest that a file system tells the time of a file."""
_WRITING_SECONDS = 60.0
"""So long after the record may a git that died have written a file. What is half a file later is the user's."""


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    checkout: str
    ref: str
    base: str
    commit: str


class Landing:
    """Moves a branch together with its checkout. The caller holds the lock of the repository."""

    def __init__(self, layout: RepositoryLayout, lock: FileLock) -> None:
        self.layout = layout
        self.git = layout.git
        self.keeps = lock.descriptors
        self.record = layout.own / "landing.json"

    async def fast_forward(
        self, checkout: Path, base_ref: str, proposal: Proposal, changes: list[Change]
    ) -> MergeResult | None:
        """Bring the user's clean checkout forward together with its branch, or leave both as they are."""
        if await self.git.commit_of(base_ref) != proposal.base:
            return None
        git_dir = self.layout.git_dir_of(checkout)
        there = [change.path for change in changes if change.status == "A" and _exists(checkout / change.path)]
        if there:
            shown = ", ".join(there[:_SHOWN])
            message = f"{checkout} has files that the merge would overwrite ({shown})"
            return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=message, paths=tuple(there))
        self._write(_Record(checkout=str(checkout), ref=base_ref, base=proposal.base, commit=proposal.commit))
        forward = ("read-tree", "-m", "-u", proposal.base, proposal.commit)
        done = await self._change(*forward, tree=checkout, git_dir=git_dir)
        if "not uptodate" in done.stderr:  # a file that was only touched, until git has looked into it again
            await self._change("update-index", "-q", "--refresh", tree=checkout, git_dir=git_dir)
            done = await self._change(*forward, tree=checkout, git_dir=git_dir)
        output = done.stderr
        if done.returncode == 0:
            moved = await self._change("update-ref", "-m", "genba: merge", base_ref, proposal.commit, proposal.base)
            if moved.returncode == 0:
                self.record.unlink(missing_ok=True)
                return MergeResult(status=MergeStatus.MERGED, commit=proposal.commit)
            output = moved.stderr
        try:
            if not await self._is_untouched(checkout, git_dir, proposal.base, changes):
                await self._put_back(checkout, git_dir, proposal.base, changes)
        except GitError as error:  # the next landing puts it back: the record of it stays
            message = f"{checkout} could not be put back: {error.message}"
            return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=message)
        self.record.unlink(missing_ok=True)
        if await self.git.commit_of(base_ref) != proposal.base:
            return None
        return MergeResult(status=MergeStatus.CHECKOUT_IN_THE_WAY, detail=f"{checkout}: {error_line(output)}")

    async def _is_untouched(self, checkout: Path, git_dir: Path, base: str, changes: list[Change]) -> bool:
        """Whether git refused before it changed anything, so that there is nothing to put back, now or later."""
        if not await self._is_staged(checkout, git_dir, base):
            return False
        found = await self._blobs(checkout, git_dir, changes)
        return all(found.get(each.path, "") == ("" if each.status == "A" else each.old_blob) for each in changes)

    async def _is_staged(self, checkout: Path, git_dir: Path, commit: str) -> bool:
        """Whether the index is that of a commit."""
        args = ("diff-index", "--cached", "--quiet", "--ignore-submodules=all", commit)
        staged = await self.git.run(*args, tree=checkout, git_dir=git_dir, allow=(0, 1, 128))
        return staged.returncode == 0

    async def put_back_what_was_cut_off(self, checkout: Path | None) -> None:
        """Put a checkout back that a dead process had brought forward without its branch, wholly or half way.

        Only what is exactly as that process left it is touched. Where the user has changed something since, everything
        stays, and is reported as a change like any other.
        """
        record = self._read()
        if record is None or checkout is None or str(checkout) != record.checkout:
            return
        if await self.git.commit_of(record.ref) != record.base:
            self.record.unlink(missing_ok=True)
            return
        git_dir = self.layout.git_dir_of(checkout)
        changes = await self.changes(record.base, record.commit)
        if await self._is_as_left(checkout, git_dir, record, changes):
            await self._put_back(checkout, git_dir, record.base, changes)
            self.record.unlink(missing_ok=True)

    async def _is_as_left(self, checkout: Path, git_dir: Path, record: _Record, changes: list[Change]) -> bool:
        """Whether the index is that of either commit, and so is every file, unless git was on the way to write it.

        Who dies in putting back leaves the index of the base beside files of the other.
        """
        await self._change("update-index", "-q", "--refresh", tree=checkout, git_dir=git_dir)
        if not any([await self._is_staged(checkout, git_dir, commit) for commit in (record.commit, record.base)]):
            return False
        asked = ("diff-files", "--name-only", "-z", "--ignore-submodules=all")
        result = await self.git.run(*asked, tree=checkout, git_dir=git_dir, allow=(0, 1, 128))
        touched = {change.path for change in changes}
        if result.returncode != 0 or not {name for name in result.stdout.split("\0") if name} <= touched:
            return False
        return await self._are_ours(checkout, git_dir, changes)

    async def _are_ours(self, checkout: Path, git_dir: Path, changes: list[Change]) -> bool:
        """Whether each file that is there is as one of both commits has it, or the beginning of that.

        A file that a person has written since may look like a beginning too: the time it was written tells them apart.
        """
        found = await self._blobs(checkout, git_dir, changes)
        there = [change for change in changes if change.path in found]
        others = [change for change in there if found[change.path] not in (change.old_blob, change.new_blob)]
        if not others:
            return True
        whole = await asyncio.to_thread(self.git.batch, [change.new_blob for change in others])
        return all(
            self._was_cut_off(checkout / change.path)
            and whole.get(change.new_blob, b"").startswith((checkout / change.path).read_bytes())
            for change in others
        )

    def _was_cut_off(self, path: Path) -> bool:
        """Whether it may be a file that a git was writing which died soon after it began."""
        later = path.lstat().st_mtime - self.record.stat().st_mtime
        return not path.is_symlink() and -_CLOCK_STEP <= later <= _WRITING_SECONDS

    async def _blobs(self, checkout: Path, git_dir: Path, changes: list[Change]) -> dict[str, str]:
        """What git would store of each file that is there, as it lies there: of the plain ones by one git."""
        there = [change.path for change in changes if _exists(checkout / change.path)]
        plain = [name for name in there if _is_one_line(name) and not (checkout / name).is_symlink()]
        asked = ("hash-object", "--stdin-paths")
        message = "".join(f"{name}\n" for name in plain)
        done = await self.git.run(*asked, tree=checkout, git_dir=git_dir, stdin=message, allow=(0, 128))
        blobs = done.stdout.split() if done.returncode == 0 else [""] * len(plain)
        others = {name: await self._blob(checkout, git_dir, name) for name in there if name not in set(plain)}
        return dict(zip(plain, blobs, strict=True)) | others

    async def _blob(self, checkout: Path, git_dir: Path, name: str) -> str:
        """The same of one whose name or kind wants a git of its own."""
        path = checkout / name
        link = os.readlink(path) if path.is_symlink() else None  # noqa: PTH115  (as it stands there)
        args = ("hash-object", "--", name) if link is None else ("hash-object", "--stdin")
        result = await self.git.run(*args, tree=checkout, git_dir=git_dir, stdin=link, allow=(0, 128))
        return result.stdout.strip()

    async def changes(self, base: str, commit: str) -> list[Change]:
        """What changes from one commit to another."""
        return parse_changes(await changes_over(self.git, base, commit))

    async def _put_back(self, checkout: Path, git_dir: Path, base: str, changes: list[Change]) -> None:
        """Undo a fast-forward that failed: the tracked files were clean, and the added ones were not there before.

        It is done when this returns; else it raises, and may be done again.
        """
        await self.git.run("read-tree", "--reset", base, git_dir=git_dir, keeps=self.keeps)
        there = "\0".join(change.path for change in changes if change.status != "A")
        restore = ("checkout-index", "--force", "--quiet", "-z", "--stdin")
        await self.git.run(*restore, tree=checkout, git_dir=git_dir, stdin=there, keeps=self.keeps)
        for change in changes:
            if change.status == "A" and _exists(checkout / change.path):
                (checkout / change.path).unlink()
        await self._change("update-index", "-q", "--refresh", tree=checkout, git_dir=git_dir)

    async def _change(
        self, *args: str, git_dir: Path | None = None, tree: Path | None = None, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A git that changes something. It holds the lock for as long as it lives."""
        return await self.git.run(*args, tree=tree, git_dir=git_dir, stdin=stdin, allow=(0, 1, 128), keeps=self.keeps)

    def _read(self) -> _Record | None:
        try:
            return reader(_Record).decode(self.record.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def _write(self, record: _Record) -> None:
        make_private_folder(self.record.parent)
        put(self.record, msgspec.json.encode(record))


def _is_one_line(name: str) -> bool:
    """Whether git takes a line for this name. One that begins with a quote is taken for a quotation."""
    return "\n" not in name and not name.startswith('"')


def _exists(path: Path) -> bool:
    """Whether something of this name is there; a folder of tracked files that become one file is git's to judge."""
    return path.is_symlink() or path.is_file()
