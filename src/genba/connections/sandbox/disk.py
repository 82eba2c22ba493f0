"""How much a cell has written: what is new in its places since it was opened, and what it still holds open unseen."""

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


class DiskWatch:
    """Surveys the places of a cell, often where the file system is filling up and seldom where it is not.

    A file counts when it was made, written or renamed since the cell was opened: nobody can set that time back.
    """

    def __init__(self, places: Iterable[str], limit_mb: int) -> None:
        self.places = _outermost(places)
        self.limit = limit_mb * _MEGABYTE
        self.since_ns = time.time_ns() - _COARSE_CLOCK_NS
        self.free = self._free()
        self.due = time.monotonic() + _QUICK_SECONDS
        self.took = 0.0

    def is_due(self) -> bool:
        """Whether to survey now; cheap enough to be asked all the time."""
        now = time.monotonic()
        return now >= self.due + (_SLOW_SECONDS + _SLOW_SHARE * self.took) or (now >= self.due and self.is_filling())

    def is_filling(self) -> bool:
        """Whether so much space went, through whomever, that this cell may have used up its share."""
        return self._lost() * 2 >= self.limit

    def exceeded(self, processes: Iterable[str] = ()) -> bool:
        """Look now. Takes as long as there are files: not for the event loop.

        `processes` are folders of /proc: what those processes have removed and still hold open counts too.
        """
        began = time.monotonic()
        survey = _Survey(self.since_ns)
        for place in self.places:
            survey.walk(place)
        if survey.bytes <= self.limit and self.is_filling():
            survey.bytes += _unseen(processes)
        self.took = time.monotonic() - began
        self.due = time.monotonic() + _QUICK_SECONDS + _QUICK_SHARE * self.took
        return survey.bytes > self.limit or (survey.hidden and self._lost() > self.limit)

    def _lost(self) -> int:
        return max((before - now for before, now in zip(self.free, self._free(), strict=True)), default=0)

    def _free(self) -> list[int]:
        return [_free_at(place) for place in self.places]


class _Survey:
    def __init__(self, since_ns: int) -> None:
        self.since_ns = since_ns
        self.bytes = 0
        self.hidden = False
        """Whether there are folders that cannot be looked into."""
        self.counted: set[tuple[int, int]] = set()

    def walk(self, place: str) -> None:
        folders = [place]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    folders += [entry.path for entry in entries if self._count(entry)]
            except FileNotFoundError:
                continue
            except OSError:
                self.hidden = True

    def _count(self, entry: "os.DirEntry[str]") -> bool:
        """Add a new entry; say whether it is a folder."""
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        if found.st_ctime_ns >= self.since_ns:
            if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                if (found.st_dev, found.st_ino) in self.counted:
                    return False
                self.counted.add((found.st_dev, found.st_ino))
            self.bytes += found.st_blocks * _BLOCK
        return stat.S_ISDIR(found.st_mode)


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
                    held[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK
    return sum(held.values())


def _outermost(places: Iterable[str]) -> tuple[str, ...]:
    found: list[str] = []
    for place in sorted({os.path.realpath(place) for place in places}):
        if not any(place.startswith(other.rstrip("/") + "/") for other in found):
            found.append(place)
    return tuple(found)


def _free_at(place: str) -> int:
    try:
        found = os.statvfs(place)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
