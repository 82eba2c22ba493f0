"""Progress of long work: live at a terminal, one plain line elsewhere.

It is drawn on stderr, in no colour, and leaves nothing behind. Quick work shows nothing.
"""

import contextlib
import os
import sys
import threading
import time
from types import TracebackType
from typing import Self

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_BEAT_SECONDS = 0.1
_QUIET_SECONDS = 0.5
"""What is over by then was not long."""
_PLAIN_SECONDS = 15.0
"""Seconds before a plain line is printed."""
_CLEAR = "\r\x1b[2K"
_WIDTH = 78


class Progress:
    """Tells what is being done now, for as long as it is."""

    def __init__(self, doing: str, *, quiet: bool = False) -> None:
        self.doing = doing
        self.began = time.monotonic()
        self.alive = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.quiet = quiet
        self._drawn = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        if not self.quiet:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._clear()

    def say(self, line: str) -> None:
        """A line that stays, above what moves."""
        if not self.quiet:
            with self._lock:
                self._clear()
                self._write(f"{line}\n")

    def _run(self) -> None:
        if not self.alive:
            if not self._over.wait(_PLAIN_SECONDS):
                self.say(self.doing)
            return
        if self._over.wait(_QUIET_SECONDS):
            return
        while not self._over.wait(_BEAT_SECONDS):
            seconds = time.monotonic() - self.began
            frame = _FRAMES[int(seconds / _BEAT_SECONDS) % len(_FRAMES)]
            with self._lock:
                self._write(f"{_CLEAR} {frame} {self.doing[:_WIDTH]}  {seconds:.0f} s")
                self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            self._write(_CLEAR)
            self._drawn = False

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone
            sys.stderr.write(text)
            sys.stderr.flush()
