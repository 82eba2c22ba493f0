"""What a private repository borrows: one pack of all that a commit leads to, and nothing else of the user's objects.

A stash, a deleted branch or the work of another session is in no such pack. It is made once for each commit, never
changed, and shared, read-only, by all sessions that began at that commit. The pack of a commit that came before is
taken over as it is, by links, so that only what is new is packed.
"""

import asyncio
import contextlib
import os
import time
from pathlib import Path

from genba.connections.git.private.repository_state import read_state
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock, held
from genba.connections.git.worktrees.trash import delete_later, throw_away

_UNFINISHED = ".new-"
_MOST_PACKS = 8
"""Packs that one commit may have; with more of them it is packed afresh."""
_SMALL = 1024 * 1024
_TRIED = 3
"""Earlier commits whose packs may be taken over."""
_KEPT = 3
"""Packs that are kept, though no session uses them now."""
_YOUNG_SECONDS = 3600.0
"""So long a pack is kept in any case: a session may be about to use it."""
_PATIENCE_SECONDS = 900.0
_PACK = ("-c", "pack.compression=1", "-c", "pack.writeReverseIndex=false",
         "pack-objects", "--revs", "-q", "--window=0", "--delta-base-offset")  # fmt: skip


class Packs:
    """The packs of one repository, below `.git/genba/packs`."""

    def __init__(self, layout: RepositoryLayout) -> None:
        self.layout = layout
        self.git = layout.git
        self.root = layout.own / "packs"

    def objects(self, commit: str) -> Path:
        """The folder of objects that a sandbox sees in the place of the user's."""
        return self.root / commit / "objects"

    async def ensure(self, commit: str) -> Path:
        """Make the pack of a commit where there is none; returns its folder of objects."""
        final = self.root / commit
        if _touched(final):
            return self.objects(commit)
        async with held(self._making(commit), commit, _PATIENCE_SECONDS):
            if not _touched(final):
                await self._make(commit)
        await asyncio.to_thread(self._tidy, commit)
        return self.objects(commit)

    async def pack(self, folder: Path, tips: tuple[str, ...], known: str = "") -> None:
        """Pack all that some commits lead to, and a known one does not, into a folder of packs."""
        message = "".join(f"{line}\n" for line in (*tips, *([f"^{known}"] if known else [])))
        partial = ("--missing=allow-any",) if await asyncio.to_thread(self.is_partial) else ()
        await self.git.run(*_PACK, *partial, str(folder / "pack"), stdin=message)

    def is_partial(self) -> bool:
        """Whether objects may be missing because the user's clone has never fetched them."""
        return any((self.layout.common / "objects" / "pack").glob("*.promisor"))

    def _making(self, commit: str) -> Path:
        return self.layout.own / "locks" / f"pack-{commit}"

    async def _make(self, commit: str) -> None:
        fresh = self.root / f"{commit}{_UNFINISHED}{os.getpid()}"
        for left in self.root.glob(f"{commit}{_UNFINISHED}*"):
            delete_later(throw_away(self.layout, left, "pack"))
        before = await self._earlier(commit)
        folder = await asyncio.to_thread(self._begin, fresh, before)
        await self.pack(folder, (commit,), before)
        fresh.rename(self.root / commit)

    def _begin(self, fresh: Path, before: str) -> Path:
        folder = fresh / "objects" / "pack"
        folder.mkdir(parents=True)
        (fresh / "objects" / "info").mkdir()
        for path in (self.objects(before) / "pack").iterdir() if before else ():
            os.link(path, folder / path.name)
        return folder

    async def _earlier(self, commit: str) -> str:
        """An earlier commit whose packs can be taken over: all that it leads to is led to by this one as well."""
        for path in (await asyncio.to_thread(self._whole))[:_TRIED]:
            sizes = [pack.stat().st_size for pack in (path / "objects" / "pack").glob("*.pack")]
            if sum(sizes) < _SMALL:
                return ""  # all of it is packed sooner than the earlier one is asked for
            if len(sizes) < _MOST_PACKS and await self.git.is_ancestor(path.name, commit):
                return path.name
        return ""

    def _whole(self) -> list[Path]:
        """The packs that are complete, newest first."""
        found: list[tuple[float, Path]] = []
        for path in self.root.iterdir() if self.root.is_dir() else ():
            with contextlib.suppress(FileNotFoundError):
                if _UNFINISHED not in path.name:
                    found.append((path.stat().st_mtime, path))
        return [path for _, path in sorted(found, key=lambda pair: pair[0], reverse=True)]

    def unused(self, older_than: float) -> list[Path]:
        """The packs that no session uses, and that none has asked for since a moment."""
        used = self._used()
        return [path for path in self._whole() if path.name not in used and _modified(path) < older_than]

    def _used(self) -> set[str]:
        private_dirs = self.layout.own / "private"
        states = [read_state(private_dir) for private_dir in private_dirs.iterdir()] if private_dirs.is_dir() else []
        return {commit for state in states if state is not None for commit in (state.borrowed, state.workspace.base)}

    def _tidy(self, but: str) -> None:
        """Delete what no session uses, but for the newest, and what a dead process had begun to make."""
        young = time.time() - _YOUNG_SECONDS
        gone = [throw_away(self.layout, path, "pack") for path in self.unused(young)[_KEPT:] if path.name != but]
        for path in self.root.glob(f"*{_UNFINISHED}*"):
            lock = FileLock(self._making(path.name.partition(_UNFINISHED)[0]))
            if lock.try_acquire("clearing"):
                gone.append(throw_away(self.layout, path, "pack"))
                lock.release()
        delete_later(*gone)


def _touched(folder: Path) -> bool:
    """Whether a pack is there; it counts as used now."""
    try:
        os.utime(folder)
    except FileNotFoundError:
        return False
    return True


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()
