"""What tells browsers that something has changed: server-sent events, and one look at the blackboard for all of them.

Without listeners nothing is polled. A change is reported within half a second, and at most a few times a second.
The number of listeners is limited, so that open streams cannot block the pages.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from genba.entrypoints.web.security import visitor_of

MOST_STREAMS = 512
MOST_OF_A_VISITOR = 256
_COME_BACK_SECONDS = 30
LOOK_SECONDS = 0.2
LEAST_SECONDS = 0.3
_SIGN_OF_LIFE_SECONDS = 15.0
Stamp = Callable[[], object]
"""Something that is another one after every change."""


class Hub:
    """Polls while there are listeners, and wakes them all."""

    def __init__(self, pulse: Stamp, most: int = MOST_STREAMS, most_of_a_visitor: int = MOST_OF_A_VISITOR) -> None:
        self._pulse = pulse
        self._most = most
        self._most_of_a_visitor = most_of_a_visitor
        self._listeners: set[asyncio.Event] = set()
        self._connections: Counter[str] = Counter()
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
        """Report a change that this process made."""
        for each in self._listeners:
            each.set()

    @contextlib.contextmanager
    def connection(self, visitor: str) -> Iterator[bool]:
        """A place among those who listen; False: all are taken, or all that one visitor may have."""
        free = self._connections.total() < self._most and self._connections[visitor] < self._most_of_a_visitor
        self._connections[visitor] += free
        try:
            yield free
        finally:
            self._connections[visitor] -= free
            if not self._connections[visitor]:
                del self._connections[visitor]

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
            except Exception:  # noqa: BLE001  (a database out of reach for a moment ends no stream)
                await asyncio.sleep(LOOK_SECONDS * 5)
                continue
            if now != seen:  # also at the first look: who listens may have drawn what stood there before it
                self.wake()
            seen = now
            await asyncio.sleep(LOOK_SECONDS)


class _Stream(StreamingResponse):
    """A stream that has its place before its first byte, and gives it back however it ends."""

    def __init__(self, hub: Hub, visitor: str, lines: AsyncIterator[bytes]) -> None:
        super().__init__(lines, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._hub = hub
        self._visitor = visitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._hub.connection(self._visitor) as free:
            answer = super().__call__ if free else _full()
            await answer(scope, receive, send)


def _full() -> Response:
    message = "too many pages listen for changes\nhint: close other pages; this one still loads by hand\n"
    return PlainTextResponse(message, 503, headers={"retry-after": str(_COME_BACK_SECONDS)})


def stream(request: Request, hub: Hub, other: Stamp | None = None) -> Response:
    """A stream of events for one browser, until it goes away."""

    async def lines() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        async for name in hub.changes(other):
            if await request.is_disconnected():
                return
            yield f"event: {name}\ndata: 1\n\n".encode() if name else b": still here\n\n"

    visitor = visitor_of(request)
    client = request.client.host if request.client else ""
    return _Stream(hub, visitor.csrf or f"{visitor.role} {client}", lines())
