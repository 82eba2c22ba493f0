"""Finding and ending a whole process tree: group, children, and everyone who carries the mark."""

import os
import signal
import time
from pathlib import Path

MARK = "GENBA_PROCESS_MARK"
_GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_BECOMING_SECONDS = 0.5
_KERNEL = 2
"""What the kernel runs for itself, and the parent of all of that: it never shows anything."""
_PROC = Path("/proc")


def living(mark: str, root: int | None = None, within: int | None = None) -> set[int]:
    """Every living process that carries the mark or descends from `root`; never this one or its parents.

    With `within`, only among what descends from that process. Where there are hundreds, to look at the marks of all of
    them is what takes long.
    """
    table = _table_from_proc(mark, within) if _PROC.is_dir() else _table_from_psutil(mark)
    found = {pid for pid, (_, marked) in table.items() if marked}
    found |= {root} & table.keys() if root is not None else set()
    grew = True
    while grew:
        children = {pid for pid, (parent, _) in table.items() if parent in found} - found
        found |= children
        grew = bool(children)
    return found - _ourselves(table)


def end_all(mark: str, root: int | None = None, within: int | None = None) -> int:
    """Ask everyone to end, then make them. Returns how many there were."""
    victims = living(mark, root, within)
    if not victims:
        return 0
    _signal(victims, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and living(mark, root, within):
        time.sleep(_POLL_SECONDS)
    seen = set(victims)
    for _ in range(50):
        left = living(mark, root, within)
        if not left:
            break
        seen |= left
        _signal(left, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    return len(seen)


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _ourselves(table: dict[int, tuple[int, bool]]) -> set[int]:
    mine, pid = set(), os.getpid()
    while pid in table and pid not in mine:
        mine.add(pid)
        pid = table[pid][0]
    return mine | {os.getpid()}


def _table_from_proc(mark: str, within: int | None) -> dict[int, tuple[int, bool]]:
    """Parent and mark of every process that is not a zombie; the mark of one that is elsewhere is not looked at."""
    needle = f"{MARK}={mark}".encode()
    parents = _parents()
    table: dict[int, tuple[int, bool]] = {}
    deadline = time.monotonic() + _BECOMING_SECONDS
    for pid, parent in parents.items():
        marked = False
        if within is None or _may_be_within(pid, within, parents):
            try:
                environment = environment_of(pid)
                while environment is None and _KERNEL not in (pid, parent) and time.monotonic() < deadline:
                    time.sleep(_POLL_SECONDS / 4)
                    environment = environment_of(pid)
                marked = needle in (environment or b"").split(b"\0")
            except PermissionError:
                marked = False
            except OSError:
                continue
        table[pid] = (parent, marked)
    return table


def environment_of(pid: int) -> bytes | None:
    """What a process was started with; None while it is just becoming another program, and shows nothing of itself.

    On a busy machine that takes long: the starting process goes on first.
    """
    environment = _read(pid, "environ")
    if environment:
        return environment
    words = _read(pid, "cmdline")
    return _read(pid, "environ") or (b"" if words else None)


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:  # noqa: PTH123
        return file.read()


def _parents() -> dict[int, int]:
    """The parent of every process that is not a zombie."""
    found: dict[int, int] = {}
    for name in os.listdir(_PROC):  # noqa: PTH208  (hundreds of entries, often)
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        if state not in (b"Z", b"X"):
            found[int(name)] = int(parent)
    return found


def _may_be_within(pid: int, within: int, parents: dict[int, int]) -> bool:
    """Whether a process descends from another one. One whose parents ended while they were looked at may."""
    for _ in range(len(parents)):
        if pid == within:
            return True
        if pid not in parents:
            return pid > 0
        pid = parents[pid]
    return True


def _table_from_psutil(mark: str) -> dict[int, tuple[int, bool]]:
    import psutil  # noqa: PLC0415  (only where there is no /proc)

    table: dict[int, tuple[int, bool]] = {}
    for process in psutil.process_iter(["pid", "ppid", "status"]):
        try:
            if process.info["status"] == psutil.STATUS_ZOMBIE:
                continue
            marked = process.environ().get(MARK) == mark
        except psutil.AccessDenied:
            marked = False
        except psutil.Error:
            continue
        table[process.info["pid"]] = (process.info["ppid"], marked)
    return table
