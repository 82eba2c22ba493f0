"""Orphans: processes whose parents ended, and that no mark names. They come back to Genba, which lets none live on.

A daemon that leaves its session and empties its environment escapes a process group and a mark. The kernel hands such
a process to the nearest ancestor that takes in orphans; where that is Genba, it is found among its children.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from genba.connections.own_processes import OWN
from genba.connections.processes.tree import MARK, environment_of

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_MOMENT_SECONDS = 0.06
_BECOMING_SECONDS = 3.0


_before: set[tuple[int, str]] = set()
"""Children that were there already when Genba became itself, as a shell leaves them to what it becomes."""
_takers: set[int] = set()
"""This process and those that it was forked from, as far as orphans come to them."""


def take_in_orphans() -> bool:
    """Become the one to whom orphans come, before anything is started. False where the system has no such thing.

    The first process of a machine or a container has all orphans anyway, and not all of them are Genba's to end.
    """
    if os.getpid() == 1:
        return False
    if os.environ.get(OWN) == str(os.getpid()):
        return True
    _before.update((pid, _begun(pid)) for pid in _children(os.getpid()))
    os.environ[OWN] = str(os.getpid())
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415  (there is no other way to ask the kernel for it)

    taken = bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    if taken:
        _takers.add(os.getpid())
    return taken


def whose_all_descend() -> int | None:
    """This process, if everything that it ever started descends from it for good: orphans come back to it."""
    return os.getpid() if os.getpid() in _takers else None


def end_orphans() -> int:
    """End every orphan, with what it has started since; say how many there were. Nothing of Genba's own is touched."""
    if os.environ.get(OWN) != str(os.getpid()):
        return 0
    found: set[int] = set()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while living := _surely_orphans():
        found |= living
        for pid in living:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
        for pid in living:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            break
    return len(found)


def _surely_orphans() -> set[int]:
    """Those that look like orphans twice, and are not just becoming another program.

    A process that is shows no environment for a moment, which is long on a busy machine. One that never does hides it.
    """
    found = _orphans()
    deadline = time.monotonic() + _BECOMING_SECONDS
    while found:
        time.sleep(_MOMENT_SECONDS)
        again = _orphans()
        found = {known: again[known] for known in found if known in again}
        if time.monotonic() > deadline or not any(found.values()):
            break
    return {pid for pid, _ in found}


def _orphans() -> dict[tuple[int, str], bool]:
    """Children of this process that it did not start, and whether each may only be becoming another program.

    One that was just forked still has this process's environment.
    """
    mine = os.getpid()
    try:
        begun_with = environment_of(mine)
    except OSError:  # where processes cannot be looked at, no orphans come either
        return {}
    own = f"{OWN}={mine}".encode()
    found: dict[tuple[int, str], bool] = {}
    for pid in _children(mine):
        known = (pid, _begun(pid))
        try:
            environment = environment_of(pid)
        except OSError:
            continue
        words = (environment or b"").split(b"\0")
        is_ours = own in words or any(word.startswith(f"{MARK}=".encode()) for word in words)
        if environment != begun_with and known not in _before and not is_ours:
            found[known] = environment is None
    return found


def _children(pid: int) -> list[int]:
    """The living children of a process, those of all of its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(child) for child in (thread / "children").read_text("ascii").split()]
    return [child for child in found if _is_alive(child)]


def _begun(pid: int) -> str:
    """When a process began, which together with its number names it for ever."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False
