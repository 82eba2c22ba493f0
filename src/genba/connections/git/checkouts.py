"""Clean checkouts to verify in: a folder of its own, a repository of its own, gone afterwards.

The checkout is a repository that borrows the objects of the user's and has nothing else of it: no branch, no remote,
no hook, no setting. What runs in it can ask git about its history, and cannot move anything of the user's.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.locks import FileLock
from genba.connections.git.removal import remove_tree

LeftBy = Callable[[str], Awaitable[None]]


class GitCheckouts:
    """`holder` names who verifies; `left_by` is called with the name of one that died and left a checkout behind.

    `filters` lets git run the filters of the user's on what it checks out: not on the work of an agent behind walls.
    """

    def __init__(
        self,
        layout: RepositoryLayout,
        holder: str = "verification",
        left_by: LeftBy | None = None,
        filters: bool = True,
    ) -> None:
        self.filters = filters
        self.layout = layout
        self.holder = holder
        self.left_by = left_by
        self.git = layout.git
        self.root = layout.own / "checkouts"
        self._locks: dict[str, FileLock] = {}
        self._kept: dict[str, tuple[str, ...]] = {}
        """What a setup made in each folder, beside the files of the commit."""
        self._over: dict[str, tuple[tuple[str, str], ...]] = {}

    async def open(self, commit: str, over: tuple[tuple[str, str], ...] = ()) -> str:
        """The files of a commit in a new folder; `over` lays other blobs over it, as (path, blob)."""
        home = self._home(commit)
        folder, repository = home / "tree", home / "tree" / ".git"
        try:
            await self.sweep()
            await asyncio.to_thread(self._bare, repository, commit)
            words = ("read-tree", "-m", "-u", "--no-recurse-submodules", commit)
            await self.git.run(*words, tree=folder, git_dir=repository)
            shutil.copyfile(repository / "index", home / "index")
            self._over[str(folder)] = over
            await self._lay_over(folder, over)
        except BaseException:
            await self.close(str(folder))
            raise
        return str(folder)

    async def restore(self, folder: str, commit: str, keep: bool = False) -> None:
        """Bring the files of the commit, and those laid over it, back to what they were; remove what else is there.

        What the commit ignores stays; so does, from now on, what is there when it is called with `keep`.

        The repository in the folder is made anew first, since what ran there could write to it as well.
        """
        home, tree = Path(folder).parent, Path(folder)
        repository = tree / ".git"
        if repository.is_symlink() or repository.is_file():
            repository.unlink()
        await asyncio.to_thread(remove_tree, repository)
        await asyncio.to_thread(self._bare, repository, commit)
        shutil.copyfile(home / "index", repository / "index")
        os.utime(repository / "index", (1, 1))  # older than every file: git then compares contents, not times and sizes
        words = ("read-tree", "--reset", "-u", "--no-recurse-submodules", commit)
        await self.git.run(*words, tree=tree, git_dir=repository)
        if keep:
            words = ("ls-files", "--others", "--directory", "--exclude-standard", "-z")
            done = await self.git.run(*words, tree=tree, git_dir=repository)
            self._kept[folder] = tuple(name for name in done.stdout.split("\0") if name)
        spared = [word for name in self._kept.get(folder, ()) for word in ("-e", f"/{_literal(name)}")]
        await self.git.run("clean", "-ffdq", *spared, tree=tree, git_dir=repository, allow=(0, 1))
        await self._lay_over(tree, self._over.get(folder, ()))

    async def close(self, folder: str) -> None:
        home = Path(folder).parent
        lock = self._locks.pop(folder, None)
        try:
            if home.parent == self.root:
                await asyncio.to_thread(remove_tree, home)
            if lock is not None:
                lock.path.unlink(missing_ok=True)
        finally:  # whoever is stopped here leaves it to the next one who sweeps
            self._kept.pop(folder, None)
            self._over.pop(folder, None)
            if lock is not None:
                lock.release()

    def _home(self, commit: str) -> Path:
        """A folder that nobody has, with its lock held: whoever finds the lock free may remove the folder."""
        while True:
            home = self.root / f"{commit[:12]}-{os.getpid()}-{os.urandom(3).hex()}"
            lock = FileLock(home.with_suffix(".lock"))
            try:
                taken = lock.try_acquire(self.holder)
            except OSError:
                lock.path.unlink(missing_ok=True)
                raise
            if taken:
                self._locks[str(home / "tree")] = lock
                return home

    def _bare(self, repository: Path, commit: str) -> None:
        """A repository by hand: what `git init` would write, without templates, hooks or the user's settings."""
        (repository / "objects" / "info").mkdir(parents=True)
        (repository / "refs" / "heads").mkdir(parents=True)
        borrowed = self.layout.common / "objects"
        (repository / "objects" / "info" / "alternates").write_text(f"{borrowed}\n", encoding="utf-8")
        (repository / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n", encoding="ascii")
        if not self.filters:
            (repository / "info").mkdir()
            (repository / "info" / "attributes").write_text("* -filter\n", encoding="ascii")
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
        """Remove the checkouts of processes that died: their locks are nobody's."""
        for path in self.root.glob("*.lock"):
            if str(path.with_suffix("") / "tree") in self._locks:
                continue
            lock = FileLock(path)
            if lock.try_acquire("sweep"):
                try:
                    if self.left_by is not None and lock.before:
                        await self.left_by(lock.before)
                    await asyncio.to_thread(remove_tree, path.with_suffix(""))
                    path.unlink(missing_ok=True)
                finally:
                    lock.release()


def _literal(name: str) -> str:
    """A path as a pattern of git that fits nothing else."""
    return "".join(f"\\{letter}" if letter in "\\*?[]!# " else letter for letter in name)
