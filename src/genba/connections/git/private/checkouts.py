"""Clean checkouts to verify in: a folder of its own, a repository of its own, gone afterwards.

The checkout is a repository that borrows the objects of the user's and has nothing else of it: no branch, no remote,
no hook, no setting. What runs in it can ask git about its history, and cannot move anything of the user's.

Law: git runs here once, while the checkout is made, before anything else has run in it. See `views` for what runs.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

from genba.connections.git.private.packs import Packs
from genba.connections.git.private.views import Views
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock
from genba.connections.git.worktrees.trash import delete_later, throw_away
from genba.domain.goals.verification import NOTHING_KEPT, Kept
from genba.domain.sessions.sandbox import CheckoutView

LeftBy = Callable[[str], Awaitable[None]]
_SHA256 = 64


class GitCheckouts:
    """`holder` names who verifies; `left_by` is called with the name of one that died and left a checkout behind.

    `filters` lets git run the user's filters on what it checks out: not on the work of a sandboxed agent.
    `overlays` says whether the commands run where overlays are mounted for them.
    """

    def __init__(
        self,
        layout: RepositoryLayout,
        holder: str = "verification",
        left_by: LeftBy | None = None,
        filters: bool = True,
        overlays: bool = False,
    ) -> None:
        self.filters = filters
        self.overlays = overlays
        self.layout = layout
        self.holder = holder
        self.left_by = left_by
        self.git = layout.git
        self.root = layout.own / "checkouts"
        self._locks: dict[str, FileLock] = {}
        self._views: dict[str, Views] = {}

    async def open(self, commit: str, over: tuple[tuple[str, str], ...] = (), sandboxed: bool = True) -> str:
        """A folder for the files of a commit; `over` lays other blobs over it, as (path, blob)."""
        place = self._place(commit)
        folder, views = str(place / "tree"), Views(self.layout, place, self.overlays and sandboxed)
        repository = views.pristine / ".git"
        try:
            await self.sweep()
            if sandboxed and not self.filters:
                views.objects = str(await Packs(self.layout).ensure(commit))
            await asyncio.to_thread(self._bare, repository, commit)
            args = ("read-tree", "-m", "-u", "--no-recurse-submodules", commit)
            await self.git.run(*args, tree=views.pristine, git_dir=repository)
            await self._lay_over(views.pristine, over)
        except BaseException:
            await self.close(folder)
            raise
        self._views[folder] = views
        return folder

    async def renew(self, folder: str, setup: bool = False, kept: Kept | None = None) -> None:
        """A new view of the checkout in its folder: the commit, and what a setup made."""
        await asyncio.to_thread(self._views[folder].renew, setup, kept or NOTHING_KEPT)

    async def changed(self, folder: str) -> tuple[str, ...]:
        """Which files that judge differ from the commit in the view that there is."""
        return await asyncio.to_thread(self._views[folder].changed)

    async def keep(self, folder: str) -> None:
        """What ran since the last `renew` was the setup: what it made is seen in all further views."""
        await asyncio.to_thread(self._views[folder].keep)

    def view(self, workdir: str) -> CheckoutView | None:
        """The view that a command in this folder runs in; None for a folder that is none of a checkout."""
        path = Path(workdir)
        for folder, views in self._views.items():
            if path.is_relative_to(folder):
                return views.now
        return None

    def files(self, folder: str) -> Path:
        """Where the host looks at the files of a checkout."""
        return self._views[folder].pristine

    def reports(self, folder: str) -> Path:
        """Where commands in a checkout write what the host reads."""
        now = self._views[folder].now
        return Path(now.reports if now is not None else folder)

    async def close(self, folder: str) -> None:
        place = Path(folder).parent
        lock = self._locks.pop(folder, None)
        self._views.pop(folder, None)
        try:
            if place.parent == self.root:
                await asyncio.to_thread(self._remove, place)
            if lock is not None:
                lock.path.unlink(missing_ok=True)
        finally:  # a process that is stopped here leaves it to the next sweep
            if lock is not None:
                lock.release()

    def _remove(self, place: Path) -> None:
        delete_later(throw_away(self.layout, place, "checkout"))

    def _place(self, commit: str) -> Path:
        """A folder of one process, with its lock held: a process that finds the lock free may remove the folder."""
        while True:
            place = self.root / f"{commit[:12]}-{os.getpid()}-{os.urandom(3).hex()}"
            lock = FileLock(place.with_suffix(".lock"))
            try:
                taken = lock.try_acquire(self.holder)
            except OSError:
                lock.path.unlink(missing_ok=True)
                raise
            if taken:
                self._locks[str(place / "tree")] = lock
                return place

    def _bare(self, repository: Path, commit: str) -> None:
        """A repository by hand: what `git init` would write, without templates, hooks or the user's settings."""
        (repository / "objects" / "info").mkdir(parents=True)
        (repository / "refs" / "heads").mkdir(parents=True)
        borrowed = self.layout.common / "objects"
        (repository / "objects" / "info" / "alternates").write_text(f"{borrowed}\n", encoding="utf-8")
        sha256 = len(commit) == _SHA256
        lines = ["[core]", f"\trepositoryformatversion = {int(sha256)}", "\tbare = false"]
        lines += ["\tcheckStat = minimal", "\ttrustctime = false"]  # a view has other numbers of its files
        lines += ["[extensions]", "\tobjectFormat = sha256"] if sha256 else []
        (repository / "config").write_text("\n".join([*lines, ""]), encoding="ascii")
        if not self.filters:
            (repository / "info").mkdir()
            (repository / "info" / "attributes").write_text("* -filter\n", encoding="ascii")
        if (self.layout.common / "shallow").is_file():
            shutil.copyfile(self.layout.common / "shallow", repository / "shallow")
        (repository / "HEAD").write_text(f"{commit}\n", encoding="ascii")

    async def _lay_over(self, folder: Path, over: tuple[tuple[str, str], ...]) -> None:
        """Write other blobs into the folder. A link on the way is no way: it is replaced, never followed."""
        found = await asyncio.to_thread(self.git.batch, [blob for _, blob in over]) if over else {}
        for path, blob in over:
            target = folder
            for part in Path(path).parts[:-1]:
                target = target / part
                if target.is_symlink() or target.is_file():
                    target.unlink()
                target.mkdir(exist_ok=True)
            target = target / Path(path).name
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            target.unlink(missing_ok=True)
            target.write_bytes(found.get(blob, b""))
            target.chmod(target.stat().st_mode | stat.S_IXUSR)  # a test may be a script that is called by its name

    async def sweep(self) -> None:
        """Remove the checkouts of processes that died: their locks are free."""
        for path in self.root.glob("*.lock"):
            if str(path.with_suffix("") / "tree") in self._locks:
                continue
            lock = FileLock(path)
            if lock.try_acquire("sweep"):
                try:
                    if self.left_by is not None and lock.before:
                        await self.left_by(lock.before)
                    await asyncio.to_thread(self._remove, path.with_suffix(""))
                    path.unlink(missing_ok=True)
                finally:
                    lock.release()
