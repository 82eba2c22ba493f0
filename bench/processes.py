"""The processes of a fleet and the memory that they take: PSS, in which what several share is counted once."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = ("orchestrator", "fork server", "supervisors", "agents", "others")
_PROC = Path("/proc")
_FORK_SERVER, _PLAYER = "genba.wiring.sessions.fork_server", "genba.connections.agents.player"


@dataclass(frozen=True)
class Process:
    number: int
    parent: int
    words: str
    """Its command line."""


def family(root: int) -> list[Process]:
    """A process and all that descend from it, parents first."""
    found = {each.number: each for each in _all()}
    children: dict[int, list[Process]] = {}
    for each in found.values():
        children.setdefault(each.parent, []).append(each)
    line = [found[root]] if root in found else []
    for each in line:  # it grows while it is walked
        line += children.get(each.number, [])
    return line


def kind_of(process: Process, root: int) -> str:
    """What a process is to the fleet. A supervisor is a fork of the fork server, with the same command line."""
    if process.number == root:
        return "orchestrator"
    if _FORK_SERVER in process.words:
        return "fork server" if process.parent == root else "supervisors"
    return "agents" if _PLAYER in process.words else "others"


def memory(root: int) -> dict[str, float]:
    """Megabytes by kind. One that ends meanwhile is not counted."""
    found = dict.fromkeys(KINDS, 0.0)
    for process in family(root):
        found[kind_of(process, root)] += megabytes(process.number)
    return found


def count(root: int, kind: str) -> int:
    return sum(kind_of(process, root) == kind for process in family(root))


def megabytes(number: int) -> float:
    """PSS of one process; nothing where it is gone."""
    try:
        lines = (_PROC / str(number) / "smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _all() -> Iterator[Process]:
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            after = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        yield Process(int(folder.name), int(after[1]), words)
