"""What differs between the files of a worktree and an index, found without git.

An agent can write in the tree, so the host never starts git on it: the settings, the attributes and the nested
repositories that an agent leaves there could make git run a command. The walk reads names and what the kernel says of
files, and compares with the index. It is generous: a path that may differ is named, and git decides about a copy of
it in a folder of its own (see `staging`).

Nested repositories and gitlinks are left out: nothing in them is looked at.
"""

import contextlib
import functools
import hashlib
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from genba.connections.git.agent_trees.patterns import LARGEST
from genba.connections.git.agent_trees.safe_open import DEEPEST, folder_beneath, read_beneath, split
from genba.domain.errors import GitError
from genba.domain.sessions.sandbox import Overlay

GITLINK = 0o160000
_GIT = b".git"
_IGNORE = b".gitignore"
_LARGEST_HASHED = 64 * 1024 * 1024
_MOST_ENTRIES = 2_000_000
_EXECUTABLE = 0o100755


class IndexEntry(NamedTuple):
    """One path of an index, and the kernel's facts of its file when git last looked."""

    mode: int
    blob: str
    mtime_ns: int
    ctime_ns: int
    inode: int
    size: int
    is_certain: bool
    """False for a conflict, and for a path that was only announced: its file always counts as changed."""
    is_outside: bool = False
    """A path that a sparse checkout leaves out: there need not be a file."""


Index = Mapping[bytes, IndexEntry]
Ignored = Callable[[list[bytes], list[bytes]], set[bytes]]
"""Tells which of some files and of some folders git ignores."""


@dataclass
class Differences:
    """What may differ from the index."""

    changed: dict[bytes, bytes] = field(default_factory=dict)
    """Files and links that are new or may have changed, and the root that each is read below."""
    gone: set[bytes] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)


class ReadIndex:
    """An index, and what a walk wants to know of it as a whole: of a large one that is asked once."""

    def __init__(self, entries: Index, written_ns: int) -> None:
        self.entries = entries
        self.written_ns = written_ns
        """When it was written: a file as young as that may have changed without a trace."""

    @functools.cached_property
    def folders(self) -> set[bytes]:
        found: set[bytes] = set()
        for path in self.entries:
            for folder in _above(path):
                if folder in found:
                    break
                found.add(folder)
        return found

    @functools.cached_property
    def gitlinks(self) -> set[bytes]:
        return {path for path, entry in self.entries.items() if entry.mode == GITLINK}

    @functools.cached_property
    def names(self) -> list[bytes]:
        return sorted(self.entries)


class TreeWalk:
    """One walk over one tree. `ignored` is asked once for each level of untracked names."""

    def __init__(self, index: ReadIndex, ignored: Ignored, ignore_file: Callable[[bytes, bytes], None]) -> None:
        self.index = index.entries
        self.whole = index
        self.ignored = ignored
        self.ignore_file = ignore_file
        """Called with the path and the content of each .gitignore."""
        self.found = Differences()
        self._folders = index.folders
        self._gitlinks = index.gitlinks
        self._seen: set[bytes] = set()
        self._count = 0

    def plain(self, root: bytes) -> Differences:
        """Compare a folder with the index."""
        self._walk(root, lambda _path: None)
        self.found.gone = {path for path in self._missing(self.index) if path not in self._seen}
        return self.found

    def layered(self, overlay: Overlay, differing: set[bytes]) -> Differences:
        """Compare an overlay with the index; `differing` is what the index has otherwise than the template.

        Only the layer that the agent writes to is walked: what it does not have is as the template has it.
        """
        upper, lower = os.fsencode(overlay.upper), os.fsencode(overlay.lower)
        hidden: set[bytes] = set()

        def below(path: bytes) -> bytes | None:
            return lower if path not in hidden and not any(folder in hidden for folder in _above(path)) else None

        self._walk(upper, below, hidden)
        for path in hidden:
            for name in _with_prefix(self.whole.names, path):
                if name not in self._seen:
                    self.found.gone.add(name)
        seen_below = [path for path in differing - self._seen - self.found.gone if below(path) is not None]
        for path in seen_below:
            if path in self.index:
                self._compare_below(lower, path)
        self._take_untracked(lower, [path for path in seen_below if path not in self.index], below)
        self.found.gone = set(self._missing(self.found.gone))
        return self.found

    def _take_untracked(self, lower: bytes, paths: list[bytes], below: Callable[[bytes], bytes | None]) -> None:
        """Files of a template that the index does not have: new files, unless git ignores them."""
        there = [path for path in paths if _exists(lower, path) and path not in self.found.changed]
        for folder in {folder for path in there for folder in (*_above(path), b"")}:
            self._take_ignores(lower, folder, {}, below)
        ignored = self.ignored(there, []) if there else set()
        self.found.changed |= {path: lower for path in there if path not in ignored}

    def _missing(self, paths: "Mapping[bytes, IndexEntry] | set[bytes]") -> Iterator[bytes]:
        for path in paths:
            entry = self.index[path]
            if entry.mode != GITLINK and not entry.is_outside:
                yield path

    def _compare_below(self, root: bytes, path: bytes) -> None:
        """Compare one file of a template with the index."""
        folder, name = split(path)
        try:
            with folder_beneath(root, folder) as within:
                seen = os.stat(name, dir_fd=within, follow_symlinks=False)
                kept = stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode)
                if kept and self._is_changed(within, name, path, seen):
                    self.found.changed[path] = root
        except OSError:
            kept = False
        if not kept:
            self.found.gone.add(path)

    def _walk(self, root: bytes, below: Callable[[bytes], bytes | None], hidden: set[bytes] | None = None) -> None:
        waiting: list[bytes] = [b""]
        while waiting:
            files: list[bytes] = []
            folders: list[bytes] = []
            while waiting:
                self._look(root, waiting.pop(), waiting, files, folders, below, hidden)
            if files or folders:
                ignored = self.ignored(files, folders)
                self.found.changed |= {path: root for path in files if path not in ignored}
                waiting = [path for path in folders if path not in ignored]

    def _look(
        self,
        root: bytes,
        path: bytes,
        tracked: list[bytes],
        files: list[bytes],
        folders: list[bytes],
        below: Callable[[bytes], bytes | None],
        hidden: set[bytes] | None,
    ) -> None:
        """Look at the names in one folder: `files` and `folders` take those that are not in the index."""
        if path.count(b"/") > DEEPEST:
            raise GitError(f"{os.fsdecode(root)} has folders within folders that are too deep to be looked at")
        try:
            with folder_beneath(root, path) as within:
                entries = list(os.scandir(within))
                self._count += len(entries)
                if self._count > _MOST_ENTRIES:
                    raise GitError(f"{os.fsdecode(root)} has more than {_MOST_ENTRIES} files: it is not looked at")
                names = dict(_looked_at(entries))
                if path and path not in self._folders and _GIT in names:
                    return  # a repository of its own
                self._take_ignores(root, path, names, below)
                for name, seen in names.items():
                    inner = path + b"/" + name if path else name
                    if name == _GIT or inner in self._gitlinks:
                        continue
                    if hidden is not None:
                        _note_hidden(inner, seen, within, name, below, hidden)
                    if stat.S_ISDIR(seen.st_mode):
                        (tracked if inner in self._folders else folders).append(inner)
                    elif stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode):
                        if inner not in self.index:
                            files.append(inner)
                            continue
                        self._seen.add(inner)
                        if self._is_changed(within, name, inner, seen):
                            self.found.changed[inner] = root
        except FileNotFoundError:
            return  # it was removed meanwhile
        except OSError as error:
            raise GitError(f"{os.fsdecode(root)}/{os.fsdecode(path)} cannot be read: {error.strerror}") from error

    def _take_ignores(
        self, root: bytes, path: bytes, names: Mapping[bytes, os.stat_result], below: Callable[[bytes], bytes | None]
    ) -> None:
        inner = path + b"/" + _IGNORE if path else _IGNORE
        source: bytes | None = root
        if _IGNORE not in names:
            source = below(inner)
        content = read_beneath(source, inner, LARGEST) if source is not None else None
        if content is not None:
            self.ignore_file(inner, content)

    def _is_changed(self, within: int, name: bytes, path: bytes, seen: os.stat_result) -> bool:
        """Whether a file may be another one than the index says. Its content is read where the kernel leaves doubt."""
        entry = self.index[path]
        if not entry.is_certain or entry.mode != _mode_of(seen):
            return True
        is_known = (
            entry.size == seen.st_size & 0xFFFFFFFF
            and entry.mtime_ns == seen.st_mtime_ns
            and entry.ctime_ns == seen.st_ctime_ns
            and entry.inode == seen.st_ino & 0xFFFFFFFF
            and seen.st_mtime_ns < self.whole.written_ns
        )
        try:
            return not is_known and _blob_of(within, name, seen, len(entry.blob)) != entry.blob
        except OSError:  # it changes right now, or it cannot be read: the copy that follows reports it
            return True


def _looked_at(entries: "list[os.DirEntry[str]]") -> Iterator[tuple[bytes, os.stat_result]]:
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
            yield os.fsencode(entry.name), entry.stat(follow_symlinks=False)


def _note_hidden(
    path: bytes,
    seen: os.stat_result,
    within: int,
    name: bytes,
    below: Callable[[bytes], bytes | None],
    hidden: set[bytes],
) -> None:
    """Note what of the template cannot be seen through the layer: removed, replaced, or a folder made afresh."""
    lower = below(path)
    if lower is None:
        return
    if not stat.S_ISDIR(seen.st_mode) or _is_opaque(within, name) or not _is_folder(lower, path):
        hidden.add(path)


def _exists(root: bytes, path: bytes) -> bool:
    folder, name = split(path)
    try:
        with folder_beneath(root, folder) as within:
            mode = os.stat(name, dir_fd=within, follow_symlinks=False).st_mode
            return stat.S_ISREG(mode) or stat.S_ISLNK(mode)
    except OSError:
        return False


def _is_folder(root: bytes, path: bytes) -> bool:
    try:
        with folder_beneath(root, path):
            return True
    except OSError:
        return False


def _is_opaque(within: int, name: bytes) -> bool:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    except OSError:
        return False
    try:
        return os.getxattr(descriptor, "user.overlay.opaque") == b"y"
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _above(path: bytes) -> Iterator[bytes]:
    """The folders that a path lies in."""
    end = path.rfind(b"/")
    while end > 0:
        path = path[:end]
        yield path
        end = path.rfind(b"/")


def _with_prefix(names: list[bytes], path: bytes) -> Iterator[bytes]:
    """A path and everything below it, of sorted names."""
    index = bisect_left(names, path)
    if index < len(names) and names[index] == path:
        yield path
    prefix = path + b"/"
    index = bisect_left(names, prefix)
    while index < len(names) and names[index].startswith(prefix):
        yield names[index]
        index += 1


def _mode_of(seen: os.stat_result) -> int:
    if stat.S_ISLNK(seen.st_mode):
        return 0o120000
    return _EXECUTABLE if seen.st_mode & stat.S_IXUSR else 0o100644


def _blob_of(within: int, name: bytes, seen: os.stat_result, width: int) -> str:
    """The name of the blob that a file would be if git stored it byte by byte; empty where that is not known."""
    if stat.S_ISLNK(seen.st_mode):
        content = os.readlink(name, dir_fd=within)
    elif seen.st_size > _LARGEST_HASHED:
        return ""
    else:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            content = file.read(_LARGEST_HASHED + 1)
    whole = b"blob %d\0" % len(content) + content
    sha256 = width == 64  # noqa: PLR2004  (the length of the other kind of name)
    return (hashlib.sha256(whole) if sha256 else hashlib.sha1(whole, usedforsecurity=False)).hexdigest()
