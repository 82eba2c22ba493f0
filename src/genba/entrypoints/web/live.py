"""What tells browsers that something has changed: server-sent events, and one look at the blackboard for all of them.

Law: nobody listening, nobody looks. A change is told within half a second, and never more than a few times a second.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

from starlette.requests import Request
from starlette.responses import StreamingResponse

LOOK_SECONDS = 0.2
LEAST_SECONDS = 0.3
_SIGN_OF_LIFE_SECONDS = 15.0
Stamp = Callable[[], object]
"""Something that is another one after every change."""


class Hub:
    """Looks while somebody listens, and wakes all who do."""

    def __init__(self, pulse: Stamp) -> None:
        self._pulse = pulse
        self._listeners: set[asyncio.Event] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    async def aclose(self) -> None:
        """The server ends: so does every stream, at once. A server that waited for them would have to cut them off."""
        self._closed.set()
        self.wake()

    def wake(self) -> None:
        """Somebody here knows of a change already."""
        for each in self._listeners:
            each.set()

    @contextlib.contextmanager
    def _listening(self) -> Iterator[asyncio.Event]:
        mine = asyncio.Event()
        self._listeners.add(mine)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield mine
        finally:
            self._listeners.discard(mine)

    async def changes(self, other: Stamp | None = None) -> AsyncGenerator[str, None]:
        """`changed`: the blackboard was written. `log`: what `other` looks at has grown. Nothing: a sign of life."""
        with self._listening() as mine:
            seen = await asyncio.to_thread(other) if other is not None else None
            yield "changed"
            quiet = 0.0
            while not self._closed.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(mine.wait(), LOOK_SECONDS if other is not None else _SIGN_OF_LIFE_SECONDS)
                if self._closed.is_set():
                    return
                if mine.is_set():
                    mine.clear()
                    quiet = 0.0
                    yield "changed"
                    await asyncio.sleep(LEAST_SECONDS)
                    continue
                quiet += LOOK_SECONDS if other is not None else _SIGN_OF_LIFE_SECONDS
                if other is not None and (now := await asyncio.to_thread(other)) != seen:
                    seen = now
                    quiet = 0.0
                    yield "log"
                elif quiet >= _SIGN_OF_LIFE_SECONDS:
                    quiet = 0.0
                    yield ""

    async def _look(self) -> None:
        """One look for all who listen; it ends with the last of them."""
        seen: object = None
        while self._listeners:
            try:
                now = await asyncio.to_thread(self._pulse)
            except Exception:  # noqa: BLE001  (a database out of reach for a moment ends nobody's stream)
                await asyncio.sleep(LOOK_SECONDS * 5)
                continue
            if now != seen:  # also at the first look: who listens may have drawn what stood there before it
                self.wake()
            seen = now
            await asyncio.sleep(LOOK_SECONDS)


def stream(request: Request, hub: Hub, other: Stamp | None = None) -> StreamingResponse:
    """A stream of events for one browser, until it goes away."""

    async def lines() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        async for name in hub.changes(other):
            if await request.is_disconnected():
                return
            yield f"event: {name}\ndata: 1\n\n".encode() if name else b": still here\n\n"

    headers = {"x-accel-buffering": "no"}
    return StreamingResponse(lines(), media_type="text/event-stream", headers=headers)
