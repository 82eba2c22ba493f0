"""Large repositories: one immutable template of each base commit, and a thin layer over it for each working tree."""

import asyncio
import os
from pathlib import Path

from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock, held
from genba.connections.git.worktrees.overlay_mount import overlay_problem, read_overlay, write_overlay
from genba.connections.git.worktrees.trash import delete_later, throw_away
from genba.connections.git.worktrees.worktree_create import fresh_folder
from genba.connections.removal import remove_tree
from genba.domain.sessions.sandbox import Overlay

LARGE = 2000
"""From so many files on, a template and a mount are cheaper than a checkout."""
_KEPT = 3
"""Templates that are kept, though nothing uses them now."""
_PATIENCE_SECONDS = 900.0
_UNFINISHED = ".new-"


class Templates:
    """A template is made once, never changed, and removed when no working tree lies over it."""

    def __init__(self, layout: RepositoryLayout, large: int = LARGE) -> None:
        self.layout = layout
        self.large = large
        self.root = layout.own / "templates"

    async def lay(self, commit: str, tree: Path, git_dir: Path, keeps: tuple[int, ...] = ()) -> bool:
        """Make a working tree a layer over the template of a commit; False where a plain checkout is better."""
        if not await self._worth_it(commit):
            return False
        for _ in range(2):
            await self._make(commit)
            async with held(self._lock, "templates"):
                if (self.root / commit).is_dir():
                    await asyncio.to_thread(self._lay, commit, git_dir)
                    delete_later(*self._unused(commit))
                    break
        else:
            return False
        if await self.layout.git.commit_of_head(git_dir) != commit:
            await self._bring_forward(tree, git_dir, keeps)
        return True

    async def _bring_forward(self, tree: Path, git_dir: Path, keeps: tuple[int, ...]) -> None:
        """Bring a new layer, which no agent has seen, to the branch of its tree: mounted at a place of our own."""
        place = fresh_folder(self.layout, tree, git_dir)
        remove_tree(place)
        place.mkdir(parents=True)
        try:
            await self.layout.git.run("reset", "--hard", "--quiet", tree=place, git_dir=git_dir, keeps=keeps)
        finally:
            remove_tree(place)

    @property
    def _lock(self) -> Path:
        return self.layout.own / "locks" / "templates"

    def _making(self, commit: str) -> Path:
        return self.layout.own / "locks" / f"template-{commit}"

    async def _worth_it(self, commit: str) -> bool:
        if (self.root / commit).is_dir():
            return True
        if _files_in(self.layout.git_dir / "index") < self.large:
            return False
        listed = await self.layout.git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        if listed.stdout.count("\0") < self.large:
            return False
        return not await asyncio.to_thread(overlay_problem, self.layout.own)

    async def _make(self, commit: str) -> None:
        final = self.root / commit
        if final.is_dir():
            return
        async with held(self._making(commit), commit, _PATIENCE_SECONDS):
            if final.is_dir():
                return
            for left in self.root.glob(f"{commit}{_UNFINISHED}*"):
                delete_later(throw_away(self.layout, left, "template"))
            fresh = self.root / f"{commit}{_UNFINISHED}{os.getpid()}"
            (fresh / "tree").mkdir(parents=True)
            args = ("-c", "core.splitIndex=false", "-c", "core.sparseCheckout=false",
                     "read-tree", "-m", "-u", "--no-recurse-submodules", commit)  # fmt: skip
            environment = {"GIT_INDEX_FILE": str(fresh / "index")}
            await self.layout.git.run(*args, tree=fresh / "tree", environment=environment, filters=False)
            fresh.rename(final)

    def _lay(self, commit: str, git_dir: Path) -> None:
        private_dir, template = self.layout.private_dir(git_dir), self.root / commit
        overlay = Overlay(
            lower=str(template / "tree"), upper=str(private_dir / "upper"), work=str(private_dir / "work")
        )
        for folder in (overlay.upper, overlay.work):
            Path(folder).mkdir(parents=True)
        Path(overlay.upper, ".git").write_text(f"gitdir: {git_dir}\n", encoding="utf-8")
        (git_dir / "index.lock").unlink(missing_ok=True)
        (git_dir / "index").write_bytes((template / "index").read_bytes())
        made, copied = (template / "index").stat(), (git_dir / "index").stat()
        if int(copied.st_mtime) <= int(made.st_mtime) + 1:
            # A change in the second in which the template was made would look as old as the template.
            os.utime(git_dir / "index", ns=(made.st_atime_ns, made.st_mtime_ns))
        write_overlay(private_dir, overlay)
        os.utime(template)

    def _unused(self, but: str) -> list[Path | None]:
        """Move away what no working tree lies over, but for the newest; and what a dead process had begun to make."""
        private_dirs = self.layout.own / "private"
        overlays = (
            [read_overlay(private_dir) for private_dir in private_dirs.iterdir()] if private_dirs.is_dir() else []
        )
        used = {Path(overlay.lower).parent.name for overlay in overlays if overlay is not None}
        found = sorted(self.root.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        whole = [path for path in found if _UNFINISHED not in path.name and path.name not in {*used, but}]
        gone = [throw_away(self.layout, path, "template") for path in whole[_KEPT:]]
        for path in found:
            commit, unfinished, _ = path.name.partition(_UNFINISHED)
            lock = FileLock(self._making(commit))
            if unfinished and lock.try_acquire("clearing"):
                gone.append(throw_away(self.layout, path, "template"))
                lock.release()
        return gone


def _files_in(index: Path) -> int:
    """How many files an index lists, by its head alone."""
    try:
        with index.open("rb") as file:
            head = file.read(12)
    except OSError:
        return 0
    return int.from_bytes(head[8:12], "big") if head.startswith(b"DIRC") else 0
