"""Watches what a sandboxed command uses, and ends it when it passes a limit."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

from genba.connections.sandbox.disk import DiskWatch
from genba.connections.sandbox.limits import Group, violation
from genba.domain.processes import Exit
from genba.domain.sessions.sandbox import SandboxLimits, SandboxSpec, Violation

_INTERVAL_SECONDS = 0.25
_MEGABYTE = 1024 * 1024
_LAST_WORDS = 4000
_NO_MORE = re.compile(r"cannot fork|fork: |can't start new thread|pthread_create", re.IGNORECASE)
"""How programs say that the kernel gave them no further process."""


class Watch:
    """Looks at one command, from its first process to its last. `inside` says the first one, once there is one."""

    def __init__(
        self,
        limits: SandboxLimits,
        group: Group,
        disk: DiskWatch | None,
        inside: Callable[[], int | None],
        end: Callable[[], None],
    ) -> None:
        self.limits = limits
        self.group = group
        self.disk = disk
        self.inside = inside
        self.end = end
        self.found: Violation | None = None

    async def guard(self) -> None:
        """Look again and again; at the first limit that is passed, end the command."""
        while True:
            await asyncio.sleep(_INTERVAL_SECONDS)
            kind = await self._look()
            if kind:
                self._keep(kind)
                self.end()
                return

    async def last_look(self) -> None:
        """What was passed shortly before the end counts too."""
        if self.found is not None:
            return
        kind = self.group.hit()
        if not kind and self.disk is not None and self.disk.is_filling():
            kind = await asyncio.to_thread(self.disk.exceeded)
        if kind:
            self._keep(kind)

    def hear(self, done: Exit) -> None:
        """Who could not start a process, and ended for it, ran into the limit before anybody could count."""
        counted = self.limits.processes is None or "processes" in self.group.folders
        if self.found is None and not counted and done.code != 0 and _NO_MORE.search(done.stderr[-_LAST_WORDS:]):
            self._keep("processes")

    def _keep(self, kind: str) -> None:
        self.found = violation(kind, self.limits)

    async def _look(self) -> str:
        kind = self.group.hit()
        if not kind and not self.group.folders.keys() >= {"memory", "processes"}:
            kind = await asyncio.to_thread(self._count)
        if not kind and self.disk is not None and self.disk.is_due():
            kind = await asyncio.to_thread(self.disk.exceeded, self._processes())
        return kind

    def _count(self) -> str:
        """Count processes and memory one by one, where no group does it."""
        processes, memory = self.limits.processes, self.limits.memory_mb
        threads = used = 0
        folders = self._processes() if processes is not None or memory is not None else []
        for folder in folders:
            facts = _facts(f"{folder}/status")
            threads += facts.get("Threads", 0)
            used += facts.get("RssAnon", 0) + facts.get("RssShmem", 0)
        if processes is not None and "processes" not in self.group.folders and threads > processes:
            return "processes"
        if memory is None or "memory" in self.group.folders or used <= memory * 1024:
            return ""
        # What processes share was counted for each of them; the exact count is slow, so it comes last.
        exact = sum(_facts(f"{folder}/smaps_rollup").get("Pss", 0) for folder in folders)
        return "memory" if (exact or used) > memory * 1024 else ""

    def _processes(self) -> list[str]:
        """The sandbox's own /proc shows all of its processes, and no others."""
        first = self.inside()
        if first is None:
            return []
        try:
            names = os.listdir(f"/proc/{first}/root/proc")  # noqa: PTH208  (four times a second)
        except OSError:
            return []
        return [f"/proc/{first}/root/proc/{name}" for name in names if name.isdigit()]


def disk_of(spec: SandboxSpec) -> DiskWatch | None:
    """The watch over what a sandbox writes, in all of its commands together."""
    if spec.limits.disk_mb is None and spec.limits.files is None:
        return None
    tree = spec.overlay.upper if spec.overlay is not None else spec.tree
    home = spec.home_overlay.upper if spec.home_overlay is not None else spec.home
    bound = (bind.source for bind in spec.binds if bind.writable and not bind.source.startswith(f"{spec.tree}/"))
    return DiskWatch((tree, home, *spec.writable, *bound), spec.limits.disk_mb, spec.limits.files)


def _facts(file: str) -> dict[str, int]:
    """The numbers of a file of /proc, by their names; memory is in kilobytes."""
    try:
        lines = Path(file).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {name: int(args[0]) for name, _, rest in pairs if (args := rest.split()) and args[0].isdigit()}
