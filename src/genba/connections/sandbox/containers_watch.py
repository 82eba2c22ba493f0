"""Watches a running container from outside: what the kernel refused it, and how much it has written."""

import asyncio
import os
from pathlib import Path

from genba.domain.walls import Violation, WallLimits

_POLL_SECONDS = 0.2
_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_MEGABYTE = 1024 * 1024


def memory_violation(limits: WallLimits) -> Violation:
    return Violation(
        kind="memory", detail=f"used more than its {limits.memory_mb} MB of memory (sandbox.limits.memory_mb)"
    )


def processes_violation(limits: WallLimits) -> Violation:
    return Violation(
        kind="processes", detail=f"started more than its {limits.processes} processes (sandbox.limits.processes)"
    )


def disk_violation(limits: WallLimits) -> Violation:
    return Violation(kind="disk", detail=f"wrote more than its {limits.disk_mb} MB (sandbox.limits.disk_mb)")


async def run_into(limits: WallLimits, places: tuple[str, ...], id_file: Path) -> Violation:
    """The limit that the container has run into, as soon as it does; it waits for ever where there is none."""
    watches = []
    if limits.processes is not None:
        watches.append(asyncio.create_task(_too_many(limits, id_file)))
    if limits.disk_mb is not None:
        watches.append(asyncio.create_task(_too_much(limits, places)))
    if not watches:
        await asyncio.get_running_loop().create_future()
    try:
        done, _ = await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _too_many(limits: WallLimits, id_file: Path) -> Violation:
    events: tuple[Path, ...] = ()
    while not events:
        await asyncio.sleep(_POLL_SECONDS)
        events = await asyncio.to_thread(_event_files, id_file)
    while not any(_refused(file) for file in events):  # noqa: ASYNC110  (the kernel wakes nobody)
        await asyncio.sleep(_POLL_SECONDS)
    return processes_violation(limits)


def _refused(file: Path) -> int:
    """How often the kernel refused another process."""
    try:
        counts = dict(line.split() for line in file.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(counts.get("max", "0"))


def _event_files(id_file: Path) -> tuple[Path, ...]:
    """The counters of the container's own group of processes, however the engine names it."""
    try:
        identity = id_file.read_text().strip()
    except OSError:
        return ()
    for name in os.listdir(_PROC):  # noqa: PTH208  (hundreds of entries)
        if not name.isdigit() or not identity:
            continue
        try:
            lines = (_PROC / name / "cgroup").read_text().splitlines()
        except OSError:
            continue
        files = tuple(file for line in lines for file in _counters(line, identity))
        if files:
            return files
    return ()


def _counters(line: str, identity: str) -> tuple[Path, ...]:
    _, controllers, path = line.split(":", 2)
    if identity not in path or controllers not in ("", "pids"):
        return ()
    group = _GROUPS / controllers / path.lstrip("/")
    return tuple(
        place / "pids.events"
        for place in (group, *group.parents)
        if identity in str(place) and (place / "pids.events").exists()
    )


async def _too_much(limits: WallLimits, places: tuple[str, ...]) -> Violation:
    allowed = (limits.disk_mb or 0) * _MEGABYTE
    loop = asyncio.get_running_loop()
    before = await asyncio.to_thread(_written, places)
    while True:
        began = loop.time()
        if await asyncio.to_thread(_written, places) - before > allowed:
            return disk_violation(limits)
        await asyncio.sleep(max(_POLL_SECONDS, (loop.time() - began) * 10))


def _written(places: tuple[str, ...]) -> int:
    """Bytes on disk below some folders. What vanishes meanwhile, or cannot be looked into, counts nothing."""
    total = 0
    left = list(places)
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            left.append(entry.path)
                        else:
                            total += entry.stat(follow_symlinks=False).st_blocks * 512
                    except OSError:
                        continue
        except OSError:
            continue
    return total
