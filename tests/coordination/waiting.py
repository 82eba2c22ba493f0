"""Waiting for a fact, with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable

DEADLINE = 60.0


def until(fact: Callable[[], bool], seconds: float = DEADLINE) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.01)


async def until_so(fact: Callable[[], Awaitable[bool]], seconds: float = DEADLINE) -> None:
    deadline = time.monotonic() + seconds
    while not await fact():
        assert time.monotonic() < deadline, "it did not come to be"
        await asyncio.sleep(0.01)
