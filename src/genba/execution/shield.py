"""Work that a cancellation must not interrupt."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uncut(work: Coroutine[Any, Any, T]) -> T:
    """Finish the work; a cancellation takes effect afterwards."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    return task.result()
