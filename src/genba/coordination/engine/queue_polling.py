"""How often the queues of the engine are looked at: often while there is work, seldom while there is none.

Polling is what an idle executor costs its database. An enqueued workflow wakes it; nothing else needs to.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import SQLAlchemyError

from genba.domain.errors import GenbaError

SELDOM_SECONDS = 0.5
"""DBOS hurries again by and by, a tenth at each look, so that this is no longer than anybody would notice."""
_TICK_SECONDS = 1.0
_CALM_SECONDS = 3.0
"""How long nothing may have happened before the queues are looked at less often."""


class PollingInterval:
    """Decides for one executor; the queue of the merge turns is shared, so others decide about that one, too."""

    def __init__(
        self,
        set_interval: Callable[[float], Awaitable[None]],
        is_idle: Callable[[], Awaitable[bool]],
        often: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._set_interval = set_interval
        self._is_idle = is_idle
        self._often = often
        self._loop = loop
        self._stirred = asyncio.Event()
        self._calm_since = loop.time()
        self._hurries = True

    def stir(self, shared: bool = False) -> None:
        """Something is enqueued. Any thread may call it. Others may have slowed down a queue that is `shared`."""
        if shared:
            self._hurries = False
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stirred.set)

    async def keep(self) -> None:
        """Until it is cancelled. A database that is out of reach is asked again the next time."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._stirred.wait()
            with contextlib.suppress(GenbaError, SQLAlchemyError):
                await self._decide()

    async def _decide(self) -> None:
        if self._stirred.is_set():
            self._stirred.clear()
            self._calm_since = self._loop.time()
            if not self._hurries:
                await self._set_interval(self._often)
                self._hurries = True
        elif self._hurries and self._loop.time() - self._calm_since > _CALM_SECONDS and await self._is_idle():
            await self._set_interval(max(SELDOM_SECONDS, self._often))
            self._hurries = False
