"""Watches a running container from outside: what the kernel refused it, and how much it uses and has written."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from genba.connections.sandbox.disk import DiskWatch
from genba.connections.sandbox.limits import Group, violation
from genba.connections.sandbox.watch import Watch
from genba.domain.walls import Violation, WallLimits

_POLL_SECONDS = 0.1
_LOOKS = 600
"""How often the first process is looked for."""
_GROUPS = Path("/sys/fs/cgroup")
_COUNTERS = {"memory": ("memory.events", "memory.oom_control"), "processes": ("pids.events",)}
_CONTROLLERS = {"memory": ("memory",), "pids": ("processes",), "": ("memory", "processes")}
"""What a tree of groups limits; the new kind has one tree for all."""


class ContainerWatch:
    """Looks at one container, which the engine names in `id_file` and whose processes carry `variable`."""

    def __init__(self, limits: WallLimits, disk: DiskWatch | None, id_file: Path, variable: str) -> None:
        self._limits = limits
        self._id_file = id_file
        self._variable = variable.encode()
        self._first: int | None = None
        self._watch = Watch(limits, Group(folders={}), disk, lambda: self._first, lambda: None)

    @property
    def found(self) -> Violation | None:
        return self._watch.found

    async def guard(self) -> None:
        """Returns when a limit was passed, and never otherwise."""
        looks = _LOOKS if self._limits.memory_mb is not None or self._limits.processes is not None else 0
        guarding = asyncio.create_task(self._watch.guard())
        try:
            while self._first is None and looks > 0:
                await asyncio.sleep(_POLL_SECONDS)
                await asyncio.to_thread(self._look)
                looks -= 1
            await guarding
        finally:
            guarding.cancel()

    async def last_look(self, told: Sequence[str]) -> Violation | None:
        """What was passed shortly before the end counts too; `told` are the limits that were seen from inside."""
        is_set = {"memory": self._limits.memory_mb, "processes": self._limits.processes}
        for kind in told:
            if self._watch.found is None and is_set.get(kind) is not None:
                return violation(kind, self._limits)
        await self._watch.last_look()
        return self._watch.found

    def _look(self) -> None:
        """Find the first process, and the control groups that it is in."""
        try:
            identity = self._id_file.read_text().strip()
        except OSError:
            return
        if not identity:
            return
        for pid in _pids():
            groups = _groups(pid, identity)
            if groups or self._is_inside(pid):
                self._watch.group = Group(folders=groups)
                self._first = pid
                return

    def _is_inside(self, pid: int) -> bool:
        """Whether a process carries the variable and is in another PID namespace: an engine may make no groups."""
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return self._variable in environment and _namespace(pid) != _namespace("self")
        except OSError:
            return False


def _pids() -> Iterable[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208  (hundreds)


def _namespace(pid: int | str) -> str:
    return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115  (it is no path)


def _groups(pid: int, identity: str) -> dict[str, str]:
    """The groups of a container that count something, by what they limit."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return {}
    return {what: folder for line in lines for what, folder in _folders(line, identity)}


def _folders(line: str, identity: str) -> Iterable[tuple[str, str]]:
    """What a line of /proc/PID/cgroup says of a container: the outermost group of its own has the limits."""
    _, names, path = line.split(":", 2)
    if identity not in path or names not in _CONTROLLERS:
        return
    group = _GROUPS / names / path.lstrip("/")
    own = [place for place in (group, *group.parents) if identity in str(place)][-1]
    for what in _CONTROLLERS[names]:
        if any((own / counter).exists() for counter in _COUNTERS[what]):
            yield what, str(own)
