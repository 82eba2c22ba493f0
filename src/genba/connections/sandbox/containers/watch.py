"""Watches a running container from outside: what the kernel refused it, and how much it uses and has written."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from genba.connections.sandbox.disk import DiskWatch
from genba.connections.sandbox.limits import Group, violation
from genba.connections.sandbox.watch import Watch
from genba.domain.sessions.sandbox import SandboxLimits, Violation

_POLL_SECONDS = 0.1
_LOOKS = 600
"""How often the first process is looked for."""
_MORE_LOOKS = 50
"""How often its groups are looked at again, while one that is limited is missing."""
_GROUPS = Path("/sys/fs/cgroup")
_COUNTERS = {"memory": ("memory.events", "memory.oom_control"), "processes": ("pids.events",)}
_CONTROLLERS = {"memory": ("memory",), "pids": ("processes",), "": ("memory", "processes")}
"""What a tree of groups limits; the new kind has one tree for all."""


class ContainerWatch:
    """Looks at one container, which the engine names in `id_file` and whose processes carry `variable`."""

    def __init__(self, limits: SandboxLimits, disk: DiskWatch | None, id_file: Path, variable: str) -> None:
        self._limits = limits
        self._id_file = id_file
        self._variable = variable.encode()
        self.first: int | None = None
        """Its first process, once it was seen."""
        self._watch = Watch(limits, Group(folders={}), disk, lambda: self.first, lambda: None)

    @property
    def found(self) -> Violation | None:
        return self._watch.found

    @property
    def counts(self) -> bool:
        """Whether anything is limited that the kernel counts inside."""
        return bool(self._wanted)

    @property
    def _wanted(self) -> set[str]:
        """What is limited and can be counted."""
        limits = {"memory": self._limits.memory_mb, "processes": self._limits.processes}
        return {kind for kind, limit in limits.items() if limit is not None}

    async def guard(self) -> None:
        """Returns when a limit was passed, and never otherwise."""
        looks = _LOOKS if self._wanted else 0
        guarding = asyncio.create_task(self._watch.guard())
        try:
            while looks > 0 and not self._watch.group.folders.keys() >= self._wanted:
                await asyncio.sleep(_POLL_SECONDS)
                await asyncio.to_thread(self._look)
                looks = min(looks - 1, _LOOKS if self.first is None else _MORE_LOOKS)
            await guarding
        finally:
            guarding.cancel()

    async def last_look(self, output: Sequence[str]) -> Violation | None:
        """What was passed shortly before the end counts too; `output` are the limits that were seen from inside."""
        for kind in output:
            if self._watch.found is None and kind in self._wanted:
                return violation(kind, self._limits)
        await self._watch.last_look()
        return self._watch.found

    def _look(self) -> None:
        """Find the first process, and the control groups that it is in. An engine puts it into one after the other."""
        try:
            identity = self._id_file.read_text().strip()
        except OSError:
            return
        if not identity:
            return
        first: int | None = None
        groups: dict[str, str] = {}
        for pid in _pids():
            found = _groups(pid, identity)
            if found or (first is None and self._is_inside(pid)):
                first, groups = first or pid, {**groups, **found}
            if first is not None and groups.keys() >= self._wanted:
                break
        if first is not None:
            self._watch.group = Group(folders=groups)
            self.first = first

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
