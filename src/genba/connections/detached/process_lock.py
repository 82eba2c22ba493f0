"""Locks that tell who is alive, and processes that are named for ever: by their number and when they began."""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from genba.connections.kernel_locks import lock_alone
from genba.domain.errors import DiskFullError, is_disk_full

_POLL_SECONDS = 0.005


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """One process, and no other that gets its number later."""

    process: int
    begun: str

    @classmethod
    def of(cls, process: int) -> "Holder":
        return cls(process=process, begun=begun(process))

    def is_alive(self) -> bool:
        return bool(self.begun) and begun(self.process) == self.begun

    def signal(self, number: signal.Signals) -> None:
        """Nothing happens to one that is gone, nor to a stranger with its number."""
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.process, number)


def begun(process: int) -> str:
    """When a process began; empty when it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
        return "" if fields[0] in ("Z", "X") else fields[19]
    except FileNotFoundError:
        return "" if Path("/proc/self").exists() else _begun_elsewhere(process)
    except (OSError, IndexError):
        return ""


def _begun_elsewhere(process: int) -> str:
    import psutil  # noqa: PLC0415  (only where there is no /proc)

    try:
        return str(psutil.Process(process).create_time())
    except psutil.Error:
        return ""


def take(path: Path) -> int | None:
    """Take a lock: an open file that holds it, also for the children that it is left to. None when it is held."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        is_ours = lock_alone(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    if not is_ours:
        os.close(descriptor)
        return None
    return descriptor


def is_held(path: Path) -> bool:
    """Whether a process holds a lock alone; looking at it blocks no other reader."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def sharing(path: Path) -> Iterator[None]:
    """Hold a lock together with others, and wait out those who only look whether anybody does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def is_shared(path: Path) -> bool:
    """Whether anybody holds a lock, alone or together with others."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def telling_of_full_disks(path: Path) -> Iterator[None]:
    """A full disk is an error of its own: nothing was wrong with the question."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise disk_full(path) from error
        raise


def disk_full(path: Path) -> DiskFullError:
    return DiskFullError(f"the disk is full: {path} cannot be written", hint="free some space, then go on")
