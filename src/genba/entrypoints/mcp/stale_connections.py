"""Servers also close the connections of agents that are silent for too long."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from genba.coordination.workflow.service import WorkflowService

logger = logging.getLogger("genba.mcp")

_SECONDS = 5.0


@contextlib.asynccontextmanager
async def sweeping(service: WorkflowService) -> AsyncIterator[None]:
    """Sweep now and then, as long as the block lasts; in the end wait for what is under way."""

    async def sweep() -> None:
        while True:
            await asyncio.sleep(_SECONDS)
            try:
                await service.sweep()
            except Exception as error:  # noqa: BLE001  (the next sweep may find the database again)
                logger.warning("a sweep failed: %s", type(error).__name__)

    task = asyncio.create_task(sweep())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await service.settle()
