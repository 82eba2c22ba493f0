"""How much a command may use: a control group of its own where the machine gives one, plain limits otherwise.

A group is made inside the group that Genba itself is in, or beside it, so whatever limits Genba limits its commands.
"""

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from genba.domain.sessions.sandbox import SandboxLimits, Violation

_MEGABYTE = 1024 * 1024
_OVERHEAD_PROCESSES = 4
"""Processes that the sandbox itself needs."""
_PERIOD = 100_000
_FILE_SIZE = 1
"""RLIMIT_FSIZE on Linux."""
_LEFT_BEHIND_SECONDS = 60.0
_PATIENCE_SECONDS = 2.0
_NAMES = {"memory": "memory", "pids": "processes", "cpu": "cpus"}
_numbers = itertools.count()


def violation(kind: str, limits: SandboxLimits) -> Violation:
    """A limit that was run into, in the words of the file that set it."""
    values = {
        "memory": f"used more than its {limits.memory_mb} MB of memory (sandbox.limits.memory_mb)",
        "processes": f"started more than its {limits.processes} processes and threads (sandbox.limits.processes)",
        "disk": f"wrote more than its {limits.disk_mb} MB to disk (sandbox.limits.disk_mb)",
        "files": f"made more than its {limits.files} files, folders and links (sandbox.limits.files)",
    }
    return Violation(kind=kind, detail=values[kind])


class Group(msgspec.Struct, frozen=True):
    """A control group for one command: one folder, or with the older kind one for each thing that is limited."""

    folders: dict[str, str] = {}
    """The folder by what it limits: memory, processes, cpus."""

    @property
    def files(self) -> tuple[str, ...]:
        """Where a process writes itself down to be in the group."""
        return tuple(f"{folder}/cgroup.procs" for folder in sorted(set(self.folders.values())))

    def hit(self) -> str:
        """Which limit was run into; empty when none was."""
        if folder := self.folders.get("memory"):
            counts = {**_counts(f"{folder}/memory.oom_control"), **_counts(f"{folder}/memory.events")}
            if counts.get("oom_kill", 0):
                return "memory"
        if (folder := self.folders.get("processes")) and _counts(f"{folder}/pids.events").get("max", 0):
            return "processes"
        return ""

    def take_in(self, pid: int) -> None:
        """Put a process into the group; one that has ended meanwhile needs none."""
        for file in self.files:
            with contextlib.suppress(OSError):
                _write(file, str(pid))

    def remove(self) -> None:
        """End every process that is still in it, and remove it. The kernel needs a moment to forget the dead."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                _write(f"{folder}/cgroup.kill", "1")
            while not _removed(folder) and time.monotonic() < deadline:
                time.sleep(0.005)


def make_group(limits: SandboxLimits) -> Group:
    """A group with as many of the limits as this machine allows; it may have none."""
    wanted = {
        "memory": limits.memory_mb is not None,
        "pids": limits.processes is not None,
        "cpu": limits.cpus is not None,
    }
    name = f"genba-{os.getpid()}-{next(_numbers)}"
    folders: dict[str, str] = {}
    for controllers, parents in hierarchies():
        useful = [controller for controller in controllers if wanted.get(controller)]
        made = next(filter(None, (_make(parent, name, useful, limits) for parent in parents)), None) if useful else None
        if made is not None:
            folder, set_up = made
            folders |= {_NAMES[controller]: folder for controller in set_up}
    return Group(folders)


def launcher_args(limits: SandboxLimits, group: Group, is_root: bool) -> list[str]:
    """What the launcher does about limits before the sandbox starts."""
    args = [arg for file in group.files for arg in ("--group", file)]
    if limits.cpus is not None and "cpus" not in group.folders:
        import random  # noqa: PLC0415  (only where there are no control groups)

        usable = sorted(os.sched_getaffinity(0))
        count = min(len(usable), max(1, round(limits.cpus)))
        args += ["--cpus", ",".join(str(number) for number in random.sample(usable, count))]
    if limits.disk_mb is not None:
        args += ["--limit", str(_FILE_SIZE), str(limits.disk_mb * _MEGABYTE)]
    if limits.processes is not None and "processes" not in group.folders:
        # A little above the limit, so that the watch sees it passed. The kernel lets root pass any such limit: then
        # the watch is all there is, and must not have to queue behind the processes that it counts.
        more = str(limits.processes + limits.processes // 4 + _OVERHEAD_PROCESSES)
        args += ["--nice", "19"] if is_root else ["--processes", more]
    return args


@functools.cache
def hierarchies() -> tuple[tuple[list[str], list[str]], ...]:
    """Found once: a process seldom changes its group, and a child of a group that it left is still a group."""
    found = tuple(_found_hierarchies())
    for _, parents in found:
        for parent in parents:
            with contextlib.suppress(OSError):
                _forget_the_dead(parent)
    return found


def _found_hierarchies() -> Iterator[tuple[list[str], list[str]]]:
    """The controllers of each tree of groups, and the folders to make a group in: the nearest first."""
    mounts = list(_mounts())
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        for folder, root, found in mounts:
            if set(names.split(",")) & found or (not names and "" in found):
                inside = os.path.relpath(path, root)
                own = os.path.normpath(f"{folder}/{inside}")
                if inside.startswith("..") or not Path(own).is_dir():
                    continue
                if names:
                    yield names.split(","), [own]
                else:
                    yield list(_NAMES), _upwards(own, folder)


def _mounts() -> Iterator[tuple[str, str, set[str]]]:
    """Where trees of groups are mounted: folder, which part of the tree, and its controllers ("" for the new kind)."""
    try:
        text = Path("/proc/self/mountinfo").read_text("utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.partition(" ")
        if kind in ("cgroup", "cgroup2"):
            root, folder = before.split()[3:5]
            yield folder, root, {""} if kind == "cgroup2" else set(options.split()[-1].split(","))


def _upwards(folder: str, top: str) -> list[str]:
    found = [folder]
    while folder != top and folder.startswith(top):
        folder = str(Path(folder).parent)
        found.append(folder)
    return found


def _make(parent: str, name: str, controllers: list[str], limits: SandboxLimits) -> tuple[str, list[str]] | None:
    """A new group below a parent, where any of the controllers works there."""
    folder = Path(parent) / name
    try:
        folder.mkdir()
    except OSError:
        return None
    set_up = [controller for controller in controllers if _set(str(folder), controller, limits)]
    if set_up and all(os.access(f"{place}/cgroup.procs", os.W_OK) for place in (folder, parent)):
        return str(folder), set_up
    with contextlib.suppress(OSError):
        folder.rmdir()
    return None


def _set(folder: str, controller: str, limits: SandboxLimits) -> bool:
    """Write a limit down, in the words of the new kind of groups or of the old."""
    if controller == "memory":
        size = str((limits.memory_mb or 0) * _MEGABYTE)
        settings = {"memory.max": size, "memory.limit_in_bytes": size}
    elif controller == "pids":
        size = ""
        settings = {"pids.max": str((limits.processes or 0) + _OVERHEAD_PROCESSES)}
    else:
        size = ""
        share = str(int((limits.cpus or 1) * _PERIOD))
        settings = {"cpu.max": f"{share} {_PERIOD}", "cpu.cfs_quota_us": share}
    done = any(_tried(f"{folder}/{name}", value) for name, value in settings.items())
    if size:  # what is swapped out is used too; a machine without swap has no such files
        _tried(f"{folder}/memory.swap.max", "0")
        _tried(f"{folder}/memory.memsw.limit_in_bytes", size)
    return done


def _forget_the_dead(parent: str) -> None:
    """Take away empty groups of a Genba that was killed."""
    with os.scandir(parent) as entries:
        for entry in entries:
            _, _, rest = entry.name.partition("genba-")
            pid = rest.partition("-")[0]
            if not entry.name.startswith("genba-") or not pid.isdigit() or Path(f"/proc/{pid}").exists():
                continue
            with contextlib.suppress(OSError):
                if time.time() - entry.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                    Path(entry.path).rmdir()


def _removed(folder: str) -> bool:
    try:
        Path(folder).rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _counts(file: str) -> dict[str, int]:
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}  # noqa: PLR2004


def _tried(file: str, value: str) -> bool:
    try:
        _write(file, value)
    except OSError:
        return False
    return True


def _write(file: str, value: str) -> None:
    with open(file, "r+", encoding="utf-8") as opened:  # noqa: PTH123  (never makes a file)
        opened.write(value)
