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

from genba.connections.process.tree import MARK

OWN = "GENBA_OWN_PROCESS"
"""In the environment of everything that Genba starts for itself, such as git. Agents never get it."""
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_MOMENT_SECONDS = 0.06


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
    while time.monotonic() < deadline:
        living = _surely_orphans()
        if not living:
            break
        found |= living
        for pid in living:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
        for pid in living:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    return len(found)


def _surely_orphans() -> set[int]:
    """Those that look like orphans twice: who is just becoming another program has no environment for a moment."""
    first = {(pid, _begun(pid)) for pid in _orphans()}
    if not first:
        return set()
    time.sleep(_MOMENT_SECONDS)
    return {pid for pid in _orphans() if (pid, _begun(pid)) in first}


def _orphans() -> set[int]:
    """Children of this process that it did not start. One that was just forked still has this process's environment."""
    mine = os.getpid()
    begun_with = _environment(mine)
    own = f"{OWN}={mine}".encode()
    found = set()
    for pid in _children(mine):
        environment = _environment(pid)
        if environment is None or environment == begun_with or (pid, _begun(pid)) in _before:
            continue
        words = environment.split(b"\0")
        if own not in words and not any(word.startswith(f"{MARK}=".encode()) for word in words):
            found.add(pid)
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


def _environment(pid: int) -> bytes | None:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
