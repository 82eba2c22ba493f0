"""Finding and ending a whole process tree: group, children, and everyone who carries the mark."""

import os
import signal
import time
from pathlib import Path

MARK = "GENBA_PROCESS_MARK"
_GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_PROC = Path("/proc")


def living(mark: str, root: int | None = None) -> set[int]:
    """Every living process that carries the mark or descends from `root`; never this one or its parents."""
    table = _table_from_proc(mark) if _PROC.is_dir() else _table_from_psutil(mark)
    found = {pid for pid, (_, marked) in table.items() if marked}
    found |= {root} & table.keys() if root is not None else set()
    grew = True
    while grew:
        children = {pid for pid, (parent, _) in table.items() if parent in found} - found
        found |= children
        grew = bool(children)
    return found - _ourselves(table)


def end_all(mark: str, root: int | None = None) -> int:
    """Ask everyone to end, then make them. Returns how many there were."""
    victims = living(mark, root)
    if not victims:
        return 0
    _signal(victims, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and living(mark, root):
        time.sleep(_POLL_SECONDS)
    seen = set(victims)
    for _ in range(50):
        left = living(mark, root)
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


def _table_from_proc(mark: str) -> dict[int, tuple[int, bool]]:
    """Parent and mark of every process that is not a zombie."""
    needle = f"{MARK}={mark}".encode()
    table: dict[int, tuple[int, bool]] = {}
    for name in os.listdir(_PROC):  # noqa: PTH208  (hundreds of entries, often)
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state in (b"Z", b"X"):
                continue
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                marked = needle in file.read().split(b"\0")
        except PermissionError:
            marked = False
        except OSError:
            continue
        table[int(name)] = (int(parent), marked)
    return table


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
