"""Who a process is, so that others know whether it still lives.

Law: only who cannot be mistaken is called dead. A number of a process means something in one boot of one machine, and
there in one room of processes: a container has its own.
"""

import os
import secrets
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ROOM = Path("/proc/self/ns/pid")


def one_here() -> str:
    """A new owner name for this process; every call returns another one."""
    return f"{_place() or 'somewhere'}/{os.getpid()}/{secrets.token_hex(4)}"


def lives(owner: str) -> bool | None:
    """Whether the process behind a name is alive; None where this host cannot tell."""
    here = _place()
    place, _, rest = owner.partition("/")
    number = rest.partition("/")[0]
    if not here or place != here or not number.isdecimal():
        return None
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return not _is_over(int(number))


def _place() -> str:
    """This boot of this machine, and the room of processes that this one is in; empty where that is not known."""
    try:
        return f"{_BOOT.read_text().strip()[:13]}.{_ROOM.stat().st_ino}"
    except OSError:
        return ""


def _is_over(process: int) -> bool:
    """A process that has ended, and whose parent has not noticed yet."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return bool(state) and state[0] in ("Z", "X")
