"""Real servers and clients around an egress port: one in the sandbox, one outside."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import h11

from genba.domain.sessions.egress import EgressEvent, Verdict

SOON = 30.0
"""The deadline of everything that must happen. It is never waited for when it does."""

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A port of the loopback that leads to a handler. A fault that escapes a handler fails the test."""
    escaped: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: escaped.append(context))
    running: set[asyncio.Task[Any]] = set()

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await serve(reader, writer)
        except asyncio.CancelledError:
            return  # the end of the server, below
        finally:
            running.discard(task)
            writer.close()

    server = await asyncio.start_server(tracked, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    assert not [context for context in escaped if "exception" in context], escaped


class Seen:
    """One request that a far server got."""

    def __init__(self, request: h11.Request) -> None:
        self.method = request.method.decode()
        self.target = request.target.decode()
        self.headers = {name.decode(): value.decode() for name, value in request.headers}
        self.names = [name.decode() for name, _ in request.headers]
        self.body = b""


class Far:
    """A far HTTP server: it keeps what it saw, and answers with the raw bytes that it was given."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.seen: list[Seen] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        state = h11.Connection(h11.SERVER)
        with contextlib.suppress(ConnectionError):
            while (seen := await read_request(state, reader)) is not None:
                self.seen.append(seen)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                writer.write(answer)
                await writer.drain()
                state = h11.Connection(h11.SERVER)


async def read_request(state: h11.Connection, reader: asyncio.StreamReader) -> Seen | None:
    seen = None
    while True:
        event = state.next_event()
        if event is h11.NEED_DATA:
            state.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Request):
            seen = Seen(event)
        elif isinstance(event, h11.Data) and seen is not None:
            seen.body += bytes(event.data)
        else:
            return seen


def ok(body: bytes = b"fine", *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


class Answer:
    """What a client read: whole, or broken off."""

    def __init__(self) -> None:
        self.status = 0
        self.reason = b""
        self.headers: dict[str, str] = {}
        self.body = b""
        self.whole = False


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._ahead = b""

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, port: int) -> AsyncIterator["Client"]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def ask(self, raw: bytes, *, method: bytes = b"GET") -> Answer:
        with contextlib.suppress(ConnectionError):
            self.writer.write(raw)
            await self.writer.drain()
        return await self.answer(method)

    async def answer(self, method: bytes = b"GET") -> Answer:
        state = h11.Connection(h11.CLIENT)
        state.send(h11.Request(method=method, target=b"/", headers=[(b"host", b"x")]))
        state.send(h11.EndOfMessage())
        if self._ahead:
            state.receive_data(self._ahead)
        answer = Answer()
        async with asyncio.timeout(SOON):
            while True:
                try:
                    event = state.next_event()
                    if event is h11.NEED_DATA:
                        state.receive_data(await self.reader.read(65536))
                        continue
                except (h11.RemoteProtocolError, ConnectionError):
                    return answer
                match event:
                    case h11.Response():
                        answer.status, answer.reason = event.status_code, bytes(event.reason)
                        answer.headers = {name.decode(): value.decode() for name, value in event.headers}
                    case h11.Data():
                        answer.body += bytes(event.data)
                    case h11.EndOfMessage():
                        answer.whole = True
                        self._ahead = state.trailing_data[0]
                        return answer
                    case h11.ConnectionClosed():
                        return answer
                    case _:
                        pass

    async def until(self, needle: bytes) -> bytes:
        """What came, up to and with these bytes."""
        async with asyncio.timeout(SOON):
            return await self.reader.readuntil(needle)

    async def to_end(self) -> bytes:
        async with asyncio.timeout(SOON):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


class Diary:
    def __init__(self) -> None:
        self.events: list[EgressEvent] = []

    def told(self, event: EgressEvent) -> None:
        self.events.append(event)

    def of(self, verdict: Verdict) -> list[str]:
        return [f"{event.target} {event.detail}".strip() for event in self.events if event.verdict is verdict]
