"""Views of a checkout: what one goal runs in. Each is new, and gone with all that ran in it.

The commit is checked out once, into a folder that nothing writes afterwards (`pristine`). Where overlays can be
mounted, a view is a thin layer over it that is mounted for its commands alone; elsewhere it is a copy. Its paths stay
the same, so that what a setup installed finds itself again. What a setup made is a layer under the commit: a file of
the commit is always the commit's own. Of the HOME of a setup goals see only `KEPT_AT_HOME`: data and caches.

Law: the host runs no program in a view. It moves and removes it as a whole, and reads of it what judges alone, as
what is not trusted. What judges is mounted read-only from `pristine` where there are mounts.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from genba.connections.git.private.private_repositories import make_writable
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.trash import delete_later, throw_away
from genba.connections.own_processes import own_environment
from genba.connections.untrusted_files import UntrustedFolder
from genba.domain.errors import DiskFullError, GitError
from genba.domain.goals.verification import NOTHING_KEPT, Kept
from genba.domain.sessions.sandbox import Bind, CheckoutView, Overlay

KEPT_AT_HOME = (
    ".cache", ".local/bin", ".local/lib", ".local/share", ".npm/_cacache", ".npm/_npx", ".pnpm-store", ".yarn/berry",
    ".bun/install", ".cargo/registry", ".cargo/git", ".cargo/bin", ".rustup", "go/pkg", "go/bin", ".m2/repository",
    ".m2/wrapper", ".gradle/caches", ".gradle/wrapper", ".ivy2/cache", ".ivy2/local", ".sbt/boot", ".nuget/packages",
    ".dotnet/tools", ".dotnet/store", ".gem/ruby", ".bundle/cache", ".composer/cache", ".pub-cache", ".mix/archives",
    ".hex/packages", ".stack/snapshots", ".cabal/packages", ".cabal/store", ".julia/packages", ".julia/artifacts",
    ".pyenv/versions", ".nvm/versions", ".conda/pkgs",
)  # fmt: skip
"""What goals see of the HOME that a setup wrote. No file from which a tool reads its settings is among it."""
_COPY_SECONDS = 1800


class Views:
    """The views of one checkout, one at a time. `place` is its folder; `pristine` in it has the files of the commit."""

    def __init__(self, layout: RepositoryLayout, place: Path, overlays: bool) -> None:
        self.layout = layout
        self.objects = ""
        self.place = place
        self.pristine = place / "pristine"
        self.overlays = overlays
        self.now: CheckoutView | None = None
        self.kept = NOTHING_KEPT
        self._count = 0

    def renew(self, setup: bool, kept: Kept) -> None:
        """A new view; what was written in the last one is moved out of the way and deleted."""
        self.drop()
        paths = tuple(path for path in kept.paths if _is_plain_file(self.pristine / path))
        self.kept = msgspec.structs.replace(kept, paths=paths)
        self._count += 1
        own = self.place / "views" / str(self._count)
        for name in ("reports", "temporary"):
            (own / name).mkdir(parents=True, mode=0o700)
        tree, home = self.place / "tree", self.place / "home"
        view = CheckoutView(
            tree=str(tree),
            home=str(home),
            temporary=f"{own}/temporary",
            reports=f"{own}/reports",
            objects=self.objects,
            setup=setup,
            read_only=() if self.kept.modes_change else tuple(self._mounted(tree)),
        )
        layer, home_layer = self.place / "layers" / "tree", self.place / "layers" / "home"
        if self.overlays:
            home_layer.mkdir(parents=True, exist_ok=True, mode=0o700)
            below = (str(layer),) if layer.is_dir() else ()
            view = msgspec.structs.replace(
                view,
                overlay=_overlay(self.pristine, own / "tree", below),
                home_overlay=_overlay(home_layer, own / "home", ()),
            )
            for folder in (tree, home):
                folder.mkdir(exist_ok=True, mode=0o700)
        else:
            _copy(layer if layer.is_dir() else self.pristine, tree)
            if home_layer.is_dir():
                _copy(home_layer, home)
            else:
                home.mkdir(mode=0o700)
        self.now = view

    def _mounted(self, tree: Path) -> Iterator[Bind]:
        """The files that are kept. A folder in a copy is a mount too: else it could be renamed, and replaced."""
        folders = {str(folder) for path in self.kept.paths for folder in Path(path).parents} - {"."}
        for folder in () if self.overlays else sorted(folders):
            yield Bind(source=f"{tree}/{folder}", target=f"{tree}/{folder}", writable=True)
        for path in self.kept.paths:
            yield Bind(source=f"{self.pristine}/{path}", target=f"{tree}/{path}")

    def changed(self) -> tuple[str, ...]:
        """Which files that are kept differ now from the commit. In an overlay none can, where they are mounted."""
        if self.now is None or (self.now.overlay is not None and not self.kept.modes_change):
            return ()
        return tuple(path for path in self.kept.paths if not self._is_unchanged(self.now, path))

    def _is_unchanged(self, view: CheckoutView, path: str) -> bool:
        wanted = (self.pristine / path).read_bytes()
        if view.overlay is None:
            return UntrustedFolder(Path(view.tree)).read_start(path, len(wanted) + 1) == wanted
        written = UntrustedFolder(Path(view.overlay.upper))
        return not written.exists(path) or written.read_start(path, len(wanted) + 1) == wanted

    def keep(self) -> None:
        """Make what the setup wrote a layer of all further views. Its git repository is not part of that."""
        if self.now is None:
            return
        overlay, home_overlay = self.now.overlay, self.now.home_overlay
        tree = Path(overlay.upper) if overlay is not None else self.place / "tree"
        home = Path(home_overlay.upper) if home_overlay is not None else self.place / "home"
        layers = self.place / "layers"
        layers.mkdir(mode=0o700, exist_ok=True)
        make_writable(tree)
        delete_later(throw_away(self.layout, tree / ".git", "checkout"), self._laid_over(tree))
        tree.rename(layers / "tree")
        delete_later(throw_away(self.layout, layers / "home", "checkout"))
        _move_kept(home, layers / "home")
        self.drop()

    def drop(self) -> None:
        """Remove the view that there is."""
        self.now = None
        written = () if self.overlays else (self.place / "tree", self.place / "home")
        for place in written:
            if _is_folder(place):
                make_writable(place)
        delete_later(*(throw_away(self.layout, place, "checkout") for place in (self.place / "views", *written)))

    def _laid_over(self, tree: Path) -> Path | None:
        """Put the files of the commit over a copy that a setup changed. Returns what they replaced."""
        if self.overlays:
            return None  # the layer lies under the commit
        replaced = self.place / f"replaced-{os.urandom(4).hex()}"
        replaced.mkdir(mode=0o700)
        waiting = [""]
        while waiting:
            inside = waiting.pop()
            for entry in list(os.scandir(self.pristine / inside)):
                path = f"{inside}/{entry.name}" if inside else entry.name
                there = tree / path
                if entry.is_dir(follow_symlinks=False):
                    if not _is_folder(there):
                        _move_away(there, replaced)
                        there.mkdir(mode=0o700)
                    there.chmod(stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode) | stat.S_IRWXU)
                    waiting.append(path)
                else:
                    _move_away(there, replaced)
                    shutil.copy2(entry.path, there, follow_symlinks=False)
        return replaced


def _overlay(lower: Path, upper: Path, below: tuple[str, ...]) -> Overlay:
    work = upper.with_name(f"{upper.name}-work")
    for folder in (upper, work):
        folder.mkdir(mode=0o700)
    shutil.copymode(lower, upper)  # what is seen at the top is the mode of the highest layer
    return Overlay(lower=str(lower), upper=str(upper), work=str(work), below=below)


def _copy(source: Path, target: Path) -> None:
    """A copy of a folder that shares nothing with it. `cp` opens no link, and waits for no pipe."""
    args = ["cp", "-a", "--reflink=auto", "-T", "--", str(source), str(target)]
    try:
        done = subprocess.run(
            args,
            cwd="/",
            env=own_environment({"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COPY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(f"a copy of {source} took longer than {_COPY_SECONDS} s") from error
    if done.returncode != 0:
        output = (done.stderr.strip() or "cp failed").splitlines()[-1]
        if "No space left" in output:
            raise DiskFullError(f"the disk is full: {output}")
        raise GitError(f"{source} cannot be copied: {output}")


def _move_kept(home: Path, layer: Path) -> None:
    """Move what may be seen of a HOME into a layer. A link on the way, or in its place, is not followed: it stays."""
    layer.mkdir(mode=0o700)
    make_writable(home)
    for name in KEPT_AT_HOME:
        if all(_is_own_folder(home / part) for part in (*reversed(Path(name).parents[:-1]), Path(name))):
            (layer / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (home / name).rename(layer / name)
    _remove_start_files(layer / ".local" / "lib")


def _remove_start_files(packages: Path) -> None:
    """Remove what every Python would run at its start: a setup runs code of the branch, which could write it."""
    for folder, _, names in os.walk(packages, followlinks=False):
        for name in names:
            if name.endswith(".pth") or name.partition(".")[0] in ("sitecustomize", "usercustomize"):
                os.unlink(os.path.join(folder, name))  # noqa: PTH108, PTH118  (many names, and none is opened)


def _is_own_folder(path: Path) -> bool:
    """Whether it is a folder; if so, one that can be moved and looked into."""
    if not _is_folder(path):
        return False
    make_writable(path)
    return True


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def _is_plain_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def _move_away(path: Path, folder: Path) -> None:
    """Move a name, whatever it stands for, into another folder."""
    if os.path.lexists(path):
        make_writable(path)
        path.rename(folder / os.urandom(8).hex())
