"""The state of a worktree that an agent can write, as git would see it, without git in that worktree.

Law: the host starts git in folders that it made for itself, and in no other. What may have changed is found by a walk
(`tree_walk`), copied into a new folder below `.git/genba/staging` that no agent sees, and given to git there. The
repository of that folder is made by the host: its settings are those of the user, its attributes turn off every
filter, and it has no hook. So nothing that an agent leaves in its worktree can make git run a command: no nested
repository, no filter, no attribute, no link, no file in the place of a folder.

It is the same for every kind of sandbox, and without one.
"""

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from genba.connections.git.agent_trees.patterns import LARGEST, problem_of
from genba.connections.git.agent_trees.safe_open import copy_beneath, split
from genba.connections.git.agent_trees.tree_walk import Differences, Index, IndexEntry, ReadIndex, TreeWalk
from genba.connections.git.repository.commands import Git, branch_of, is_link
from genba.connections.git.repository.environment import LOCAL_SECONDS, PATTERN_SECONDS
from genba.connections.git.worktrees.overlay_changes import template_of
from genba.connections.git.worktrees.overlay_mount import read_overlay
from genba.domain.errors import BoundaryViolationError, DiskFullError, GitError, is_disk_full
from genba.domain.sessions.sandbox import Overlay

_LISTED = re.compile(
    rb"([0-7]{6}) ([0-9a-f]+) ([0-3])\t([^\0]+)\0"
    rb"  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: (\d+)\n  uid: \d+\tgid: \d+\n"
    rb"  size: (\d+)\tflags: ([0-9a-f]+)\n"
)
_LIST = ("ls-files", "--stage", "--debug", "-z")
_MOST_INDEXES, _MAX_ANSWERS = 8, 8
_YOUNG_NS = 50_000_000
"""An index that was written a moment ago may be written again without a trace."""
_ANNOUNCED, _OUTSIDE = 1 << 29, 1 << 30
_SECOND = 1_000_000_000
_MOST_BYTES = 8 * 1024**3
"""More than that is not copied at once."""
_BYTES_A_SECOND = 10_000_000
"""How fast git stores files at the least."""
_ATTRIBUTES_FILE = b".gitattributes"
_KEPT = "the files stay in the worktree; make the patterns simpler, or remove them"
_ATTRIBUTES = "* -filter\n"
_NOTHING = {40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"}  # fmt: skip


class Staged(msgspec.Struct, frozen=True):
    """A worktree as git would see it."""

    head: str
    on: str
    """The branch; empty where HEAD is on none."""
    dirty: tuple[str, ...] = ()
    """The paths that are not as the commit has them."""
    tree: str = ""
    """The tree of all that is there, ignored files and nested repositories aside; empty where the commit has it."""


async def stage(git: Git, tree: Path, git_dir: Path, pattern_seconds: float = PATTERN_SECONDS) -> Staged:
    """What a worktree has beyond its commit. Raises BoundaryViolationError where the worktree is a link now.

    Raises GitError where git would match the patterns of the worktree for longer than `pattern_seconds`.
    """
    if is_link(tree):
        raise BoundaryViolationError(f"{tree} is a link now: nothing is read or written where it leads")
    head, on, settings = await asyncio.gather(
        git.commit_of_head(git_dir), _branch(git, git_dir), git.settings_of_staging()
    )
    with Bench.made(git, settings, head or "") as bench:
        bench.pattern_seconds = pattern_seconds
        return await asyncio.to_thread(_staged, bench, tree, git_dir, head or "", on)


async def _branch(git: Git, git_dir: Path) -> str:
    if (git.git_dir / "reftable").exists():
        done = await git.run("symbolic-ref", "--quiet", "HEAD", git_dir=git_dir, allow=(0, 1))
        return done.stdout.strip().removeprefix("refs/heads/")
    return branch_of(git_dir).removeprefix("refs/heads/")


def _staged(bench: "Bench", tree: Path, git_dir: Path, head: str, on: str) -> Staged:
    index = bench.read_index(git_dir)
    args = ("diff-index", "--cached", "-z", "--name-only", "--no-renames", "--ignore-submodules=all",
             head or _NOTHING[bench.width], "--")  # fmt: skip
    listed = bench.ask_of_index(git_dir, *args)
    found = bench.differences(tree, git_dir, index)
    if not found and not listed:
        return Staged(head, on)
    bench.take_index(git_dir, index)
    whole = listed
    if found:
        bench.add(found)
        whole = bench.in_index(*args)
    names = {name for name in (listed + whole).split(b"\0") if name}
    made = bench.in_index("write-tree", "--missing-ok").decode().strip() if whole else ""
    return Staged(head, on, tuple(sorted(map(_shown, names))), made)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


class KnownIndex:
    """Git's answers about an index, as long as its file is the same."""

    def __init__(self, print_of: tuple[int, ...], index: ReadIndex) -> None:
        self.print_of = print_of
        self.index = index
        self._answers: dict[tuple[str, ...], bytes] = {}

    def answer(self, args: tuple[str, ...], ask: Callable[[], bytes]) -> bytes:
        if args not in self._answers:
            if len(self._answers) > _MAX_ANSWERS:
                self._answers.clear()
            self._answers[args] = ask()
        return self._answers[args]


class Bench:
    """A repository and two folders of the host's own, for one look at one worktree."""

    def __init__(self, git: Git, folder: Path, width: int, settings: str) -> None:
        self.git = git
        self.settings = settings
        self.folder = folder
        self.width = width
        self.git_dir = folder / "git"
        self.copies = folder / "copies"
        """Copies of what may have changed."""
        self.rules = folder / "rules"
        """Copies of what says which files are ignored."""
        self.index = folder / "index"
        self.is_made = False
        self.pattern_seconds = PATTERN_SECONDS
        """What is left for matching names with patterns."""
        self._waiting: dict[bytes, bytes] = {}
        """Files that say what is ignored, and that were not needed yet."""

    @classmethod
    @contextlib.contextmanager
    def made(cls, git: Git, settings: str, head: str) -> Iterator["Bench"]:
        folder = git.git_dir / "genba" / "staging" / f"{os.getpid()}-{os.urandom(4).hex()}"
        bench = cls(git, folder, len(head) or _width_of(git), settings)
        try:
            yield bench
        except OSError as error:
            if is_disk_full(error):
                raise DiskFullError(f"the disk is full: {folder} could not be written") from error
            raise GitError(f"the worktree cannot be read: {error}") from error
        finally:
            if bench.is_made:
                shutil.rmtree(folder, ignore_errors=True)

    def make(self) -> None:
        """Make the repository and its folders. A look at a worktree in which nothing has changed needs none."""
        if self.is_made:
            return
        self.is_made = True
        self.folder.mkdir(parents=True, mode=0o700)
        (self.git_dir / "objects").mkdir(parents=True)
        (self.git_dir / "refs").mkdir()
        (self.git_dir / "info").mkdir()
        (self.git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
        (self.git_dir / "config").write_text(
            config_text(self.width, self.settings), encoding="utf-8", errors="surrogateescape"
        )
        (self.git_dir / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
        exclude = self.git.git_dir / "info" / "exclude"
        if exclude.is_file():
            shutil.copyfile(exclude, self.git_dir / "info" / "exclude")

    @property
    def _objects(self) -> dict[str, str]:
        return {"GIT_OBJECT_DIRECTORY": str(self.git.git_dir / "objects")}

    def in_index(
        self, *args: str, tree: Path | None = None, stdin: bytes = b"", seconds: float = LOCAL_SECONDS
    ) -> bytes:
        """Run git on the index of this bench."""
        self.make()
        environment = {**self._objects, "GIT_INDEX_FILE": str(self.index)}
        return self.git.aside(self.git_dir, *args, tree=tree, stdin=stdin, environment=environment, seconds=seconds)

    def ask(self, git_dir: Path, *args: str) -> bytes:
        """Ask git about the index of a worktree and about commits. No file of the worktree is looked at."""
        return self.git.aside(git_dir, *args, environment={"GIT_ALLOW_PROTOCOL": "none"})

    def ask_of_index(self, git_dir: Path, *args: str) -> bytes:
        """The same, where the answer depends on the index and on names of objects alone. Git is asked once."""
        return self._known(git_dir).answer(args, lambda: self.ask(git_dir, *args))

    def read_index(self, git_dir: Path) -> ReadIndex:
        """The index of a worktree."""
        return self._known(git_dir).index

    def _known(self, git_dir: Path) -> "KnownIndex":
        try:
            seen = (git_dir / "index").stat()
        except FileNotFoundError:
            return KnownIndex((), ReadIndex({}, 0))
        print_of = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        known = self.git.indexes.get(str(git_dir))
        if known is None or known.print_of != print_of or time.time_ns() - seen.st_ctime_ns < _YOUNG_NS:
            entries = dict(_parsed(self.ask(git_dir, *_LIST)))
            known = KnownIndex(print_of, ReadIndex(entries, seen.st_mtime_ns))
            self.git.indexes[str(git_dir)] = known
            if len(self.git.indexes) > _MOST_INDEXES:
                self.git.indexes.pop(next(iter(self.git.indexes)), None)
        return known

    def read_own_index(self) -> Index:
        return dict(_parsed(self.in_index(*_LIST)))

    def take_index(self, git_dir: Path, index: ReadIndex) -> None:
        """Have a copy of the index of a worktree, to be changed."""
        self.make()
        if any(git_dir.glob("sharedindex.*")):
            rows = (b"%06o %s\t%s" % (entry.mode, entry.blob.encode(), path) for path, entry in index.entries.items())
            self.in_index("update-index", "-z", "--index-info", stdin=b"\0".join([*rows, b""]))
        elif (git_dir / "index").is_file():
            shutil.copyfile(git_dir / "index", self.index)

    def differences(self, tree: Path, git_dir: Path, index: ReadIndex) -> Differences:
        walk = TreeWalk(index, self._ignored, self._take_rule)
        overlay = read_overlay(self.git.git_dir / "genba" / "private" / git_dir.name)
        if overlay is None:
            return walk.plain(os.fsencode(tree))
        return walk.layered(overlay, self._beyond_template(overlay, git_dir))

    def _beyond_template(self, overlay: Overlay, git_dir: Path) -> set[bytes]:
        args = ("diff-index", "--cached", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
        output = self.ask_of_index(git_dir, *args, template_of(overlay), "--")
        return {name for name in output.split(b"\0") if name}

    def _take_rule(self, path: bytes, content: bytes) -> None:
        _refuse_patterns(path, content)
        self._waiting[path] = content

    def _write_rule(self, path: bytes, content: bytes) -> None:
        place = os.fsencode(self.rules) + b"/" + path
        os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120  (bytes)
        with open(place, "wb") as file:  # noqa: PTH123
            file.write(content)

    def _ignored(self, files: list[bytes], folders: list[bytes]) -> set[bytes]:
        self.make()
        self.rules.mkdir(exist_ok=True)
        while self._waiting:
            self._write_rule(*self._waiting.popitem())
        for path in folders:
            os.makedirs(os.fsencode(self.rules) + b"/" + path, exist_ok=True)  # noqa: PTH103  (bytes)
        # A name that begins with a colon is no pattern where a folder stands before it.
        asked = b"".join(b"./%s\0" % path for path in (*files, *folders))
        args = ("check-ignore", "--no-index", "-z", "--stdin")
        began = time.monotonic()
        with _in_time(".gitignore"):
            limit = max(self.pattern_seconds, 0.01)
            output = self.git.aside(self.git_dir, *args, tree=self.rules, stdin=asked, allow=(0, 1), seconds=limit)
        self.pattern_seconds -= time.monotonic() - began
        return {name[2:] for name in output.split(b"\0") if name}

    def add(self, found: Differences) -> None:
        """Bring the index of this bench to what was found. Each file is copied, and git reads the copy."""
        self.copies.mkdir()
        room, there, gone = _MOST_BYTES, [], set(found.gone)
        for path, root in found.changed.items():
            try:
                room -= copy_beneath(root, os.fsencode(self.copies), path, room)
                if split(path)[1] == _ATTRIBUTES_FILE:
                    self._refuse_attributes(path)
                there.append(path)
            except (FileNotFoundError, NotADirectoryError):
                gone.add(path)  # it was removed meanwhile
            except OSError as error:
                if is_disk_full(error):
                    raise
                message = f"{os.fsdecode(root)}/{os.fsdecode(path)} cannot be copied: {error.strerror}"
                raise GitError(message, hint="the file stays where it is") from error
        if gone:
            removed = ("update-index", "-z", "--force-remove", "--stdin")
            self.in_index(*removed, tree=self.copies, stdin=b"\0".join([*sorted(gone), b""]))
        if there:
            added = ("update-index", "-z", "--add", "--replace", "--stdin")
            limit = min(self.pattern_seconds + (_MOST_BYTES - room) / _BYTES_A_SECOND, LOCAL_SECONDS)
            with _in_time(".gitattributes"):
                self.in_index(*added, tree=self.copies, stdin=b"\0".join([*sorted(there), b""]), seconds=limit)

    def _refuse_attributes(self, path: bytes) -> None:
        copy = os.fsencode(self.copies) + b"/" + path
        if not os.path.islink(copy):  # noqa: PTH114  (bytes)
            with open(copy, "rb") as file:  # noqa: PTH123
                _refuse_patterns(path, file.read(LARGEST + 1))


def _refuse_patterns(path: bytes, content: bytes) -> None:
    problem = problem_of(content)
    if problem:
        raise GitError(f"{_shown(path)} {problem}: git would take too long with it", hint=_KEPT)


@contextlib.contextmanager
def _in_time(file: str) -> Iterator[None]:
    try:
        yield
    except GitError as error:
        if not isinstance(error.__cause__, subprocess.TimeoutExpired):
            raise
        raise GitError(f"the patterns of {file} take too long: {error.message}", hint=_KEPT) from error


def _width_of(git: Git) -> int:
    """How long the names of objects are in a repository that has no commit yet."""
    try:
        text = (git.git_dir / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 40
    return 64 if re.search(r"(?im)^\s*objectformat\s*=\s*sha256", text) else 40


def config_text(width: int, settings: str) -> str:
    """The settings of a repository of the host's own: how files are read and written, and nothing else."""
    sha256 = width == 64  # noqa: PLR2004  (the length of the other kind of name)
    lines = ["[core]", f"\trepositoryformatversion = {int(sha256)}", "\tbare = false"]
    lines += ["[extensions]", "\tobjectFormat = sha256"] if sha256 else []
    for entry in settings.split("\0"):
        name, result, value = entry.partition("\n")
        section, _, key = name.rpartition(".")
        if key:
            lines.append(f"[{section}]")
            lines.append(f"\t{key} = {quoted(value)}" if result else f"\t{key}")
    return "\n".join([*lines, ""])


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _parsed(listed: bytes) -> Iterator[tuple[bytes, IndexEntry]]:
    for match in _LISTED.finditer(listed):
        mode, blob, level, path, ctime, ctime_ns, mtime, mtime_ns, inode, size, flags = match.groups()
        marks = int(flags, 16)
        yield (
            path,
            IndexEntry(
                mode=int(mode, 8),
                blob=blob.decode(),
                mtime_ns=int(mtime) * _SECOND + int(mtime_ns),
                ctime_ns=int(ctime) * _SECOND + int(ctime_ns),
                inode=int(inode),
                size=int(size),
                is_certain=level == b"0" and not marks & _ANNOUNCED,
                is_outside=bool(marks & _OUTSIDE),
            ),
        )
