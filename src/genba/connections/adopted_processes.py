"""Processes of another process namespace that came to Genba when their parent ended.

The first process of a namespace ends only after the last of the others is collected. Where bubblewrap is ended by a
signal, the command that it started comes to Genba, the nearest ancestor that takes in orphans.
"""

import contextlib
import os
from pathlib import Path

_PROC = Path("/proc")


def collect_adopted() -> None:
    """Collect those that have ended. Genba starts no process in another namespace itself: no exit code gets lost."""
    own = _namespaces("self")
    for pid in _children():
        if own and _namespaces(pid) > own:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(int(pid), os.WNOHANG)


def _children() -> list[str]:
    """The children of all threads of this process, also those that have ended."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for thread in (_PROC / "self" / "task").iterdir():
            with contextlib.suppress(OSError):
                found += (thread / "children").read_text("ascii").split()
    return found


def _namespaces(pid: str) -> int:
    """In how many process namespaces a process is, as far as one sees from here; 0 where the system does not say."""
    try:
        status = (_PROC / pid / "status").read_bytes()
    except OSError:
        return 0
    return next((len(line.split()) - 1 for line in status.split(b"\n") if line.startswith(b"NSpid:")), 0)
