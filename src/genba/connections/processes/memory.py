"""How much memory processes use, by the mark that they carry and by whom they descend from: one look for all."""

import os
from pathlib import Path

from genba.connections.processes.tree import MARK
from genba.domain.views.workers import MemoryUse

_PROC = Path("/proc")
_NEEDLE = f"{MARK}=".encode()


def look(processes: frozenset[int], marks: frozenset[str]) -> MemoryUse:
    """Look once at every process. Where there is no /proc only the host is known."""
    import psutil  # noqa: PLC0415  (slow to import)

    memory = psutil.virtual_memory()
    host = {"total_mb": memory.total >> 20, "free_mb": memory.available >> 20}
    if not _PROC.is_dir() or not (processes or marks):
        return MemoryUse(by_mark={}, by_process={}, **host)
    page = os.sysconf("SC_PAGE_SIZE")
    parents: dict[int, int] = {}
    bytes_of: dict[int, int] = {}
    by_mark: dict[str, int] = {}
    for name in os.listdir(_PROC):  # noqa: PTH208  (hundreds of entries, often)
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
            used = int(fields[21]) * page
            parents[int(name)], bytes_of[int(name)] = int(fields[1]), used
            mark = _mark_of(name) if marks else ""
        except (OSError, ValueError, IndexError):
            continue
        run = next((run for run in (mark, mark.rpartition(".")[0]) if run in marks), "")
        if run:
            by_mark[run] = by_mark.get(run, 0) + used
    return MemoryUse(
        by_mark={run: used >> 20 for run, used in by_mark.items()},
        by_process={process: _tree(process, parents, bytes_of) >> 20 for process in processes if process in bytes_of},
        **host,
    )


def _mark_of(process: str) -> str:
    """The mark of a process; empty for one that has none, or that belongs to another user."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123
            words = file.read().split(b"\0")
    except OSError:
        return ""
    return next((word[len(_NEEDLE) :].decode("utf-8", "replace") for word in words if word.startswith(_NEEDLE)), "")


def _tree(root: int, parents: dict[int, int], bytes_of: dict[int, int]) -> int:
    children: dict[int, list[int]] = {}
    for process, parent in parents.items():
        children.setdefault(parent, []).append(process)
    total, ahead, seen = 0, [root], {root}
    while ahead:
        process = ahead.pop()
        total += bytes_of.get(process, 0)
        fresh = [child for child in children.get(process, ()) if child not in seen]
        seen.update(fresh)
        ahead += fresh
    return total
