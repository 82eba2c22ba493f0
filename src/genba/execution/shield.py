"""What is short and must not be cut in two."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uncut(work: Coroutine[Any, Any, T]) -> T:
    """Carry it through: a wish to stop is heard when it is over."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    return task.result()
