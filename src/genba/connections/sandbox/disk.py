"""How much a sandbox has written, and how many files: what is new in its places, and what it holds open unseen."""

import contextlib
import os
import stat
import time
from collections.abc import Iterable

_MEGABYTE = 1024 * 1024
_BLOCK = 512
_COARSE_CLOCK_NS = 20_000_000
"""File times come from a clock that lags behind by a tick or two."""
_IN_MEMORY = ("/memfd:", "/dev/shm/")  # noqa: S108  (compared with, never written)
_QUICK_SECONDS, _SLOW_SECONDS = 0.25, 2.0
_QUICK_SHARE, _SLOW_SHARE = 4, 40
"""How many times as long as a survey took the pause after it is, so that it never takes much of the machine."""
_LONGEST_SECONDS = 20.0
_DEEPEST = 256
"""So many folders below each other are walked: each is held open."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_ANY = 1 << 62
_ROOMS = ("/tmp", "/run", "/dev/shm")  # noqa: S108  (the sandbox's own)
_LARGEST_ROOM = 4096 * _MEGABYTE
"""What is larger does not belong to the sandbox."""


class DiskWatch:
    """Surveys the places of a sandbox, often where the file system is filling up and seldom where it is not.

    A file counts when it was made, written or renamed since the sandbox opened: no program can set that time back. It
    counts with its length or with its blocks, whichever is more, so that holes in files save nothing.
    """

    def __init__(self, places: Iterable[str], limit_mb: int | None, files: int | None = None) -> None:
        self.places = _outermost(places)
        self.limit = limit_mb * _MEGABYTE if limit_mb is not None else _ANY
        self.files = files if files is not None else _ANY
        self.since_ns = time.time_ns() - _COARSE_CLOCK_NS
        self.free = self._free()
        self.due = time.monotonic() + _QUICK_SECONDS
        self.took = 0.0

    def is_due(self) -> bool:
        """Whether to survey now; cheap enough to be asked all the time."""
        now = time.monotonic()
        return now >= self.due + (_SLOW_SECONDS + _SLOW_SHARE * self.took) or (now >= self.due and self.is_filling())

    def is_filling(self) -> bool:
        """Whether so much went, through whomever, that this sandbox may have used up its share."""
        space, files = self._lost()
        return space * 2 >= self.limit or files * 2 >= self.files

    def exceeded(self, processes: Iterable[str] = ()) -> str:
        """Look now; returns the limit that is passed: `disk`, `files` or none. Not for the event loop: it takes time.

        `processes` are folders of /proc: what those processes have removed and still hold open counts too, and so do
        the files in memory that they see as /tmp.
        """
        began = time.monotonic()
        processes = tuple(processes)
        survey = _Survey(self.since_ns, self.limit, self.files, began + _LONGEST_SECONDS)
        survey.files += _in_memory(processes)
        for place in self.places:
            survey.walk(place)
        if survey.bytes <= self.limit and self.is_filling():
            survey.bytes += _unseen(processes)
        self.took = time.monotonic() - began
        self.due = time.monotonic() + _QUICK_SECONDS + _QUICK_SHARE * self.took
        space, files = self._lost() if survey.hidden else (0, 0)
        if survey.bytes > self.limit or space > self.limit:
            return "disk"
        return "files" if survey.files > self.files or files > self.files else ""

    def _lost(self) -> tuple[int, int]:
        """How much space, and how many files, the fullest of the places has less than before."""
        now = self._free()
        lost = [(was[0] - is_[0], was[1] - is_[1]) for was, is_ in zip(self.free, now, strict=True)]
        return max((space for space, _ in lost), default=0), max((files for _, files in lost), default=0)

    def _free(self) -> list[tuple[int, int]]:
        return [_free_at(place) for place in self.places]


class _Survey:
    """One walk over the places. It follows no link, also where a folder becomes one while it is looked at."""

    def __init__(self, since_ns: int, most_bytes: int, most_files: int, deadline: float) -> None:
        self.since_ns = since_ns
        self.most_bytes = most_bytes
        self.most_files = most_files
        self.deadline = deadline
        self.bytes = 0
        self.files = 0
        self.hidden = False
        """Whether there are folders that cannot be looked into, or too many for one walk."""
        self.counted: set[tuple[int, int]] = set()

    def walk(self, place: str) -> None:
        """Each folder is opened from the one above it, never by its path."""
        waiting: list[tuple[int, list[str]]] = []
        self._enter(place, None, waiting)
        while waiting:
            folder, names = waiting[-1]
            if not names or self._is_over():
                os.close(folder)
                waiting.pop()
            elif len(waiting) >= _DEEPEST:
                self.hidden = True
                names.clear()
            else:
                self._enter(names.pop(), folder, waiting)

    def _enter(self, name: str, above: int | None, waiting: list[tuple[int, list[str]]]) -> None:
        try:
            folder = os.open(name, _FOLDER, dir_fd=above)
        except (FileNotFoundError, NotADirectoryError):
            return  # it went meanwhile, or became something else
        except OSError:
            self.hidden = True
            return
        names: list[str] = []
        waiting.append((folder, names))
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if self._count(entry):
                        names.append(entry.name)
                    if self._is_over():
                        return
        except OSError:
            self.hidden = True

    def _is_over(self) -> bool:
        """Whether the answer is known, or time is up."""
        if self.bytes > self.most_bytes or self.files > self.most_files:
            return True
        if time.monotonic() > self.deadline:
            self.hidden = True
            return True
        return False

    def _count(self, entry: "os.DirEntry[str]") -> bool:
        """Add a new entry; say whether it is a folder."""
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        is_folder = stat.S_ISDIR(found.st_mode)
        if found.st_ctime_ns >= self.since_ns:
            self.files += 1
            if found.st_nlink > 1 and not is_folder:
                if (found.st_dev, found.st_ino) in self.counted:
                    return False
                self.counted.add((found.st_dev, found.st_ino))
            self.bytes += max(found.st_blocks * _BLOCK, found.st_size)
        return is_folder


def _in_memory(processes: Iterable[str]) -> int:
    """How many files there are in the rooms that live in memory. All processes of a sandbox see the same ones."""
    for process in processes:
        counts = [_used_files(f"{process}/root{room}") for room in _ROOMS]
        if any(counts):
            return sum(counts)
    return 0


def _used_files(room: str) -> int:
    try:
        found = os.statvfs(room)
    except OSError:
        return 0
    return found.f_files - found.f_ffree if found.f_blocks * found.f_frsize <= _LARGEST_ROOM else 0


def _unseen(processes: Iterable[str]) -> int:
    """Bytes of files that were removed and are still held open."""
    held: dict[tuple[int, int], int] = {}
    for process in processes:
        try:
            numbers = os.listdir(f"{process}/fd")  # noqa: PTH208  (many, while something is filling the disk)
        except OSError:
            continue
        for number in numbers:
            with contextlib.suppress(OSError):
                file = f"{process}/fd/{number}"
                found = os.stat(file)  # noqa: PTH116
                is_file = found.st_nlink == 0 and stat.S_ISREG(found.st_mode)
                if is_file and not os.readlink(file).startswith(_IN_MEMORY):  # noqa: PTH115
                    held[found.st_dev, found.st_ino] = max(found.st_blocks * _BLOCK, found.st_size)
    return sum(held.values())


def _outermost(places: Iterable[str]) -> tuple[str, ...]:
    found: list[str] = []
    for place in sorted({os.path.realpath(place) for place in places}):
        if not any(place.startswith(other.rstrip("/") + "/") for other in found):
            found.append(place)
    return tuple(found)


def _free_at(place: str) -> tuple[int, int]:
    """Free bytes, and how many files can still be made. Some file systems count no files."""
    try:
        found = os.statvfs(place)
    except OSError:
        return 0, 0
    return found.f_bavail * found.f_frsize, found.f_favail
