"""Where Genba keeps its own things in a repository: below the git directory, out of the user's sight."""

import contextlib
import os
import re
import secrets
import stat
import zlib
from pathlib import Path

from genba.connections.atomic_write import put
from genba.connections.git.repository.commands import Git, branch_of, discover
from genba.connections.private_folders import make_private_folder
from genba.domain.errors import GitError

_LONGEST_NAME = 200
_OWN_FOLDERS = ("private", "checkouts", "fresh", "goals", "locks", "packs", "runs", "staging", "trash", "trees")
"""Made before anything is put into them, so that they are never open to others."""
_IDENTITY = "repository"
_ID = re.compile(r"repo_[0-9a-f]{24}")


class RepositoryLayout:
    """The folders of one repository."""

    def __init__(self, top: Path, git_dir: Path, common: Path) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common = common
        self.git = Git(common)

    @classmethod
    async def find(cls, folder: Path) -> "RepositoryLayout":
        found = cls(*await discover(folder))
        _close(str(found.own), make=False)
        return found

    @property
    def main(self) -> Path:
        """The folder of the main checkout, the same one from every working tree of the repository."""
        return self.common.parent if self.common.name == ".git" else self.top

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the project: that of this checkout, and that of the main one."""
        return self.top, self.main

    @property
    def own(self) -> Path:
        return self.common / "genba"

    def identity(self) -> tuple[str, bool]:
        """The id of this repository, and whether it was made just now; empty where it cannot be kept.

        A move and a new name leave it as it is, and no clone has it.
        """
        if known := identity_at(self.common):
            return known, False
        fresh = f"repo_{secrets.token_hex(12)}"
        try:
            make_private_folder(self.own)
            draft = self.own / f".{os.getpid()}-{secrets.token_hex(8)}.new"
            put(draft, f"{fresh}\n".encode())
            try:
                os.link(draft, self.own / _IDENTITY)  # of two at once, one makes it
            finally:
                draft.unlink()
        except FileExistsError:
            return identity_at(self.common), False
        except OSError:
            return "", True
        return fresh, True

    @property
    def repository_lock(self) -> Path:
        return self.own / "locks" / "repository"

    def branch_lock(self, branch: str) -> Path:
        return self.own / "locks" / "branches" / _escaped(branch)

    def tree_record(self, branch: str) -> Path:
        """Where it is recorded that Genba made the working tree of a branch."""
        return self.own / "trees" / (_escaped(branch) + ".json")

    def tree_records(self) -> list[Path]:
        folder = self.own / "trees"
        names = os.listdir(folder) if folder.is_dir() else ()  # noqa: PTH208  (asked often, with many trees)
        return [folder / name for name in sorted(names) if name.endswith(".json")]

    def git_dir_of(self, tree: Path) -> Path:
        """The folder of git's own that belongs to a working tree, looked up from outside of it."""
        found = self.find_git_dir_of(tree)
        if found is None:
            raise GitError(f"git does not know the working tree {tree}", hint="git worktree list")
        return found

    def find_git_dir_of(self, tree: Path) -> Path | None:
        if tree == self.top:
            return self.git_dir
        likely = self.common / "worktrees" / tree.name
        if _pointed_to(likely) == tree:
            return likely
        for pointer in (self.common / "worktrees").glob("*/gitdir"):
            there = _pointed_to(pointer.parent)
            if there is not None and (there == tree or there.resolve() == tree.resolve()):
                return pointer.parent
        main = tree / ".git"
        return main if main.is_dir() and main.resolve() == self.common.resolve() else None

    def private_dir(self, git_dir: str | Path) -> Path:
        """The folder of a sandboxed worktree: its private repository, and the layer of an overlay."""
        return self.own / "private" / Path(git_dir).name

    @property
    def trash(self) -> Path:
        return self.own / "trash"

    def run_folder(self, run: str) -> Path:
        return self.own / "runs" / run

    def keep_private(self) -> None:
        """Close Genba's folders to other users of the machine, those that older versions made as well."""
        make_private_folder(self.own)
        names = {*_OWN_FOLDERS, *os.listdir(self.own)}  # noqa: PTH208  (names)
        for path in (str(self.own), *(f"{self.own}/{name}" for name in names)):
            _close(path)

    def exclude(self, *patterns: str) -> None:
        """Keep Genba's folders out of `git status`, without touching a file of the user's."""
        path = self.common / "info" / "exclude"
        known = path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""
        missing = [pattern for pattern in patterns if pattern not in known.splitlines()]
        if missing:
            start = "" if not known or known.endswith("\n") else "\n"
            whole = known + start + "".join(f"{pattern}\n" for pattern in missing)
            path.parent.mkdir(parents=True, exist_ok=True)
            make_private_folder(self.own)
            put(path, whole.encode("utf-8", "surrogateescape"), folder=self.own)

    async def ignored(self, names: tuple[str, ...]) -> frozenset[str]:
        """Those of these paths of the user's checkout that git ignores."""
        command = ("check-ignore", "--stdin", "-z")
        done = await self.git.run(*command, tree=self.top, git_dir=self.git_dir, stdin="\0".join(names), allow=(0, 1))
        return frozenset(name for name in done.stdout.split("\0") if name)

    def may_be_checked_out(self, branch: str) -> bool:
        """Whether a checkout of this repository says that it is on a branch, read from files."""
        ref = f"refs/heads/{branch}"
        return any(branch_of(folder) == ref for folder in (str(self.common), *self.folders_of_trees()))

    def folders_of_trees(self) -> list[str]:
        """The folders of git's own that belong to working trees other than the main one."""
        place = f"{self.common}/worktrees"
        try:
            return [f"{place}/{name}" for name in os.listdir(place)]  # noqa: PTH208  (asked often, with many trees)
        except FileNotFoundError:
            return []

    async def checkouts(self) -> dict[str, Path]:
        """Every branch that is checked out somewhere, and where."""
        found: dict[str, Path] = {}
        where = Path()
        for line in (await self.git.run("worktree", "list", "--porcelain")).stdout.splitlines():
            arg, _, rest = line.partition(" ")
            if arg == "worktree":
                # Of a repository that is a submodule git names the git directory as its main checkout.
                where = self.top if Path(rest) == self.common == self.git_dir else Path(rest)
            elif arg == "branch":
                found[rest.removeprefix("refs/heads/")] = where
        return found


def _close(path: str, *, make: bool = True) -> None:
    """Let its owner alone into a folder of Genba's, and `make` it where there is none. A link is left alone."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        if make:
            make_private_folder(path)
        return
    if stat.S_ISDIR(mode) and mode & 0o077:
        with contextlib.suppress(PermissionError):
            os.chmod(path, 0o700)  # noqa: PTH101


def _pointed_to(git_dir: Path) -> Path | None:
    """The working tree that a folder of git's own belongs to."""
    try:
        return Path((git_dir / "gitdir").read_text(encoding="utf-8", errors="surrogateescape").strip()).parent
    except OSError:
        return None


def is_folder(path: str | Path) -> bool:
    return Path(path).is_dir()


def _escaped(branch: str) -> str:
    """A branch as the name of one file, however long it is."""
    plain = branch.replace("%", "%25").replace("/", "%2F")
    if len(plain.encode()) <= _LONGEST_NAME:
        return plain
    return f"{plain[:80]}-{zlib.crc32(branch.encode()):08x}-{len(plain)}"


def identity_at(common: Path) -> str:
    """The id of the repository with this git folder; empty where there is none."""
    try:
        with (common / "genba" / _IDENTITY).open(encoding="ascii") as file:
            found = _ID.fullmatch(file.read(100).strip())
    except (OSError, ValueError):
        return ""
    return found[0] if found else ""
