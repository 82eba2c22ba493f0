"""Locks between processes, held by the kernel: a dead process holds none."""

import asyncio
import fcntl
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

from genba.connections.kernel_locks import lock_alone
from genba.connections.private_folders import make_private_folder
from genba.domain.errors import StateConflictError

_POLL_SECONDS = 0.01
_LINES: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, asyncio.Lock]] = WeakKeyDictionary()
"""By loop and by lock: those who wait for it here."""


class FileLock:
    """One lock file. Who holds it stands in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self.before = ""
        """Who held the lock before us, if anybody."""

    def try_acquire(self, holder: str) -> bool:
        make_private_folder(self.path.parent)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            is_ours = lock_alone(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if not is_ours:
            os.close(descriptor)
            return False
        self.before = self._holder_before(descriptor)
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"holder": holder, "process": os.getpid()}).encode(), 0)
        except OSError:
            os.close(descriptor)  # who cannot say that it holds a lock does not hold it
            raise
        self._descriptor = descriptor
        return True

    @staticmethod
    def _holder_before(descriptor: int) -> str:
        try:
            return str(json.loads(os.pread(descriptor, 4096, 0))["holder"])
        except (ValueError, KeyError, TypeError):
            return ""

    def holder(self) -> str:
        """Who holds the lock, as far as the file tells."""
        try:
            result = json.loads(self.path.read_text(encoding="utf-8"))
            return f"{result['holder']} (process {result['process']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"

    def holder_is_gone(self) -> bool:
        """Whether the process that took the lock has died: one that it started holds it still."""
        try:
            return is_gone(int(json.loads(self.path.read_text(encoding="utf-8"))["process"]))
        except (OSError, ValueError, KeyError, TypeError):
            return False

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a process inherits that is to hold the lock with us, and after us if we die."""
        return () if self._descriptor is None else (self._descriptor,)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@asynccontextmanager
async def held(path: Path, holder: str, patience_seconds: float = 120.0) -> AsyncIterator[FileLock]:
    """Hold a lock for a short piece of work, waiting for the others.

    Those of one process stand in line: of however many there are, one looks whether another process has let go.
    """
    lock, line = FileLock(path), _line(path)
    deadline = time.monotonic() + patience_seconds
    try:
        async with asyncio.timeout(patience_seconds):
            await line.acquire()
    except TimeoutError:
        raise _busy(lock) from None
    try:
        while not lock.try_acquire(holder):
            if time.monotonic() > deadline:
                raise _busy(lock)
            await asyncio.sleep(_POLL_SECONDS)
        try:
            yield lock
        finally:
            lock.release()
    finally:
        line.release()


def _line(path: Path) -> asyncio.Lock:
    return _LINES.setdefault(asyncio.get_running_loop(), {}).setdefault(path, asyncio.Lock())


def _busy(lock: FileLock) -> StateConflictError:
    message = f"the repository is busy: {lock.holder()} holds {lock.path.name}"
    return StateConflictError(message, hint="wait for it, or end it, then try again")


def is_gone(process: int) -> bool:
    """Whether there is no such process, as far as one sees from here. A zombie is gone too."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except ProcessLookupError:
        return True
    except (OSError, OverflowError, IndexError):
        return False


def is_held(path: Path) -> bool:
    """Whether a process holds the lock. It blocks no process that takes the lock."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
