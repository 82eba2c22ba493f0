"""Time, and how much of it a caller may take: buckets that fill by themselves."""

import asyncio
import time
from collections import OrderedDict
from typing import Protocol

from genba.blackboard.database.sanitize import now

_KEPT = 4096
"""Buckets at one time: the one that was used least lately makes room, and a returning name starts with a full one."""


class Clocks(Protocol):
    """The clock on the wall, and one that never goes back."""

    def now(self) -> str: ...

    def elapsed(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClocks:
    def now(self) -> str:
        return now()

    def elapsed(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RateLimits:
    """One bucket for each name. It holds so many drops, and is full again after a minute."""

    def __init__(self, a_minute: int, times: Clocks) -> None:
        self._most = float(a_minute)
        self._times = times
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Take a drop. Returns 0, or the seconds after which there is one."""
        at = self._times.elapsed()
        drops = self._drops(name, at)
        if drops >= 1:
            self._keep(name, drops - 1, at)
            return 0.0
        self._keep(name, drops, at)
        return (1 - drops) * 60 / self._most

    def give_back(self, name: str) -> None:
        at = self._times.elapsed()
        self._keep(name, min(self._most, self._drops(name, at) + 1), at)

    def _drops(self, name: str, at: float) -> float:
        drops, then = self._buckets.get(name, (self._most, at))
        return min(self._most, drops + (at - then) * self._most / 60)

    def _keep(self, name: str, drops: float, at: float) -> None:
        self._buckets[name] = (drops, at)
        self._buckets.move_to_end(name)
        if len(self._buckets) > _KEPT:
            self._buckets.popitem(last=False)
