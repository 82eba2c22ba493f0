"""Running verifications: one at a time for each claim, and none ends because the client hangs up.

Clients give up on a call long before a test suite has run through. A client that repeats the claim meanwhile gets what
the same verification came to; what it came to stands on the blackboard in any case.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from genba.domain.workflow.actions import ErrorCode, WorkflowError

T = TypeVar("T")

_MOST_WAITING = 8
"""Calls that wait for one claim: each of them holds a connection, and others need some too."""


class Claims:
    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._waiting: Counter[str] = Counter()
        self.waiting = 0
        """Calls that wait for a verdict right now."""

    def is_running(self, name: str) -> bool:
        return name in self._running

    async def settled(self, name: str, claim: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the claim of this name comes to. It is begun only if it is not under way."""
        running: asyncio.Task[T] | None = self._running.get(name)
        if running is None:
            running = asyncio.create_task(claim())
            self._running[name] = running
            running.add_done_callback(lambda done: self._over(name, done))
        if self._waiting[name] >= _MOST_WAITING:
            raise WorkflowError(
                ErrorCode.LIMIT, "it is being verified, and you wait for that already", hint="wait", action="wait"
            )
        self.waiting += 1
        self._waiting[name] += 1
        try:
            return await asyncio.shield(running)
        finally:
            self.waiting -= 1
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name]

    def connections(self) -> frozenset[str]:
        """Whose claims are under way. The name of a claim begins with its connection."""
        return frozenset(name.partition(":")[0] for name in self._running)

    async def settle(self) -> None:
        """Wait for everything that is under way."""
        while self._running:
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _over(self, name: str, done: asyncio.Task[Any]) -> None:
        self._running.pop(name, None)
        if not done.cancelled():
            done.exception()  # waiting callers get it; without callers it is dropped
