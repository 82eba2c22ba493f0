"""A clock that a test winds: the wall clock jumps, or a day goes by in minutes, for processes started with it.

A small library stands between a program and the C library (`faketime.c`). It is compiled where there is a compiler. All
processes of one clock show the same time, whenever they were started, and see at once what is set. Agents in a sandbox
do not inherit it.
"""

import functools
import hashlib
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

NOT_RUN: Final = "not run: there is no C compiler to make a fake clock with (Debian: apt-get install gcc libc6-dev)"
_SOURCE = Path(__file__).with_suffix(".c")
_COUNT = struct.Struct("@I")
_SETTING = struct.Struct("@qqqd")
_FIRST, _MOST = 32, 8191
_SECOND = 1_000_000_000


@functools.cache
def library() -> Path | None:
    """The library that `LD_PRELOAD` names, made once for each version of its source; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    name = f"faketime-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}.so"
    made = Path(sys.prefix) / name
    if made.is_file():
        return made
    folder = made.parent if os.access(made.parent, os.W_OK) else Path(tempfile.mkdtemp(prefix="genba-faketime-"))
    handle, draft = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    words = [compiler, "-O2", "-shared", "-fPIC", "-o", draft, str(_SOURCE), "-ldl", "-lpthread"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        Path(draft).unlink()
        return None
    Path(draft).chmod(0o755)
    return Path(draft).rename(folder / name)


class Clock:
    """One clock. It shows the real time until it is wound."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clock"
        self.path.write_bytes(b"\0" * (_FIRST + _MOST * _SETTING.size))
        with self.path.open("r+b") as file:
            self._shown = mmap.mmap(file.fileno(), 0)
        self._set = (time.monotonic_ns(), 0, 0, 1.0)
        self._count = 0
        self._write()

    def environment(self) -> dict[str, str]:
        """What a child needs to live by this clock."""
        found = library()
        assert found is not None, NOT_RUN
        return {"LD_PRELOAD": str(found), "GENBA_TEST_CLOCK": str(self.path)}

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back. What only counts seconds does not notice."""
        since, ahead, jumped, speed = self._set
        self._set = (since, ahead, jumped + round(seconds * _SECOND), speed)
        self._write()

    def speed(self, factor: float) -> None:
        now = time.monotonic_ns()
        _, _, jumped, _ = self._set
        self._set = (now, self._ahead(now), jumped, factor)
        self._write()

    def ahead(self) -> float:
        """By how many seconds more than a real clock this one has gone, jumps not counted."""
        return self._ahead(time.monotonic_ns()) / _SECOND

    def time(self) -> float:
        """What the wall clock shows."""
        return time.time() + self.ahead() + self._set[2] / _SECOND

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead()

    def _ahead(self, now: int) -> int:
        since, ahead, _, speed = self._set
        return ahead + round((now - since) * (speed - 1))

    def _write(self) -> None:
        assert self._count < _MOST, "this clock was set too often"
        _SETTING.pack_into(self._shown, _FIRST + self._count * _SETTING.size, *self._set)
        self._count += 1
        _COUNT.pack_into(self._shown, 0, self._count)
