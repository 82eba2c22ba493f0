"""Reading files that an agent, or code that an agent wrote, may have put there. Every connection reads them with it.

Law: only regular files are opened, never waited for, and read up to a bound. The kernel follows no link: each part of a
path is opened by itself, and a link is resolved here, within the root alone. A file that is replaced meanwhile changes
nothing: what was opened is what is looked at and read.
"""

import fnmatch
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 200
_MOST_LISTED = 500_000
"""Names that one search may look at; a file beyond them is not found."""
_MOST_PARTS = 1000
"""Parts of a path, with those of the links on its way: what leads round in a circle has no end."""


def read_file(path: Path, largest: int) -> bytes | None:
    """The content of a regular file of at most `largest` bytes, or None. The folder that it is in is trusted."""
    content = read_start(path, largest + 1)
    return content if content is not None and len(content) <= largest else None


def read_start(path: Path, most: int) -> bytes | None:
    """The first `most` bytes of a regular file, or None where there is none. The folder that it is in is trusted."""
    try:
        return _content(os.open(path, _FILE), most)
    except (OSError, ValueError):
        return None


class UntrustedFolder:
    """A folder whose content is not trusted; its own path is. Links count where they stay within it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read_start(self, path: str, most: int) -> bytes | None:
        """The first `most` bytes of a regular file, or None where there is none."""
        try:
            *folders, name = self._resolved(path)
            with self._opened(folders) as folder:
                return _content(os.open(name, _FILE, dir_fd=folder), most)
        except (OSError, ValueError):
            return None

    def is_file(self, path: str) -> bool:
        return self._is(path, stat.S_ISREG)

    def is_folder(self, path: str) -> bool:
        return self._is(path, stat.S_ISDIR)

    def exists(self, path: str) -> bool:
        return self._is(path, lambda _mode: True)

    def is_within(self, path: str, folder: str) -> bool:
        """Whether what the path stands for is in a folder at the top of this one, or is that folder."""
        try:
            return self._resolved(path)[:1] == [folder]
        except (OSError, ValueError):
            return False

    def has_file_like(self, pattern: str, but: str) -> bool:
        """Whether a file fits a glob, outside of a folder at the top. The search enters no folder through a link."""
        try:
            wanted = _parts(pattern)
            found = (
                path for path in self._fitting(wanted, but) if self.is_file(path) and not self.is_within(path, but)
            )
            return ".." not in wanted and next(found, None) is not None
        except (OSError, ValueError):
            return False

    def _fitting(self, wanted: list[str], but: str) -> Iterator[str]:
        """The paths that fit the parts of a glob, as the names alone tell."""
        listed = 0
        waiting: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), tuple(wanted))]
        while waiting and listed < _MOST_LISTED:
            folders, left = waiting.pop()
            for name, is_folder in self._listed(folders):
                listed += 1
                path = (*folders, name)
                for rest in _after(left, name):
                    if not rest:
                        yield "/".join(path)
                    elif is_folder and len(path) < _DEEPEST and path != (but,):
                        waiting.append((path, rest))

    def _listed(self, folders: tuple[str, ...]) -> list[tuple[str, bool]]:
        """The names in a folder below the root, and which of them are folders; none where it cannot be entered."""
        try:
            with self._opened(list(folders)) as folder:
                descriptor = os.open(".", _LISTED, dir_fd=folder)
            try:
                with os.scandir(descriptor) as entries:
                    return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            finally:
                os.close(descriptor)
        except OSError:
            return []

    def _is(self, path: str, kind: Callable[[int], bool]) -> bool:
        try:
            *folders, name = self._resolved(path) or ["."]
            with self._opened(folders) as folder:
                return kind(os.lstat(name, dir_fd=folder).st_mode)
        except (OSError, ValueError):
            return False

    def _resolved(self, path: str) -> list[str]:
        """The parts of a path without links; ValueError for one that leaves the folder."""
        found: list[str] = []
        waiting = _parts(path)
        for _ in range(_MOST_PARTS):
            if not waiting:
                return found
            part = waiting.pop(0)
            if part == "..":
                if not found:
                    raise ValueError(f"{path} leads out of the folder")
                found.pop()
                continue
            with self._opened(found) as folder:
                if stat.S_ISLNK(os.lstat(part, dir_fd=folder).st_mode):
                    waiting = [*_parts(os.readlink(part, dir_fd=folder)), *waiting]
                else:
                    found.append(part)
        raise ValueError(f"{path} has too many parts")

    @contextmanager
    def _opened(self, folders: list[str]) -> Iterator[int]:
        """A folder below the root, opened part by part."""
        held = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in folders:
                inner = os.open(name, _FOLDER, dir_fd=held)
                os.close(held)
                held = inner
            yield held
        finally:
            os.close(held)


def _parts(path: str) -> list[str]:
    if path.startswith("/"):
        raise ValueError(f"{path} leads out of the folder")
    return [part for part in path.split("/") if part not in ("", ".")]


def _after(wanted: tuple[str, ...], name: str) -> Iterator[tuple[str, ...]]:
    """What is left of the parts of a glob after a name has taken the first of them: nothing left is a fit."""
    if wanted[0] != "**":
        if fnmatch.fnmatchcase(name, wanted[0]):
            yield wanted[1:]
        return
    yield wanted
    if len(wanted) > 1:
        yield from _after(wanted[1:], name)


def _content(descriptor: int, most: int) -> bytes | None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)
