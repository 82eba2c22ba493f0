"""One end of an HTTP/1.1 conversation with somebody who is not trusted: every read has a bound and a deadline.

What is read is understood whole and written anew, never copied, so nobody can hide a second message inside the first.
"""

import asyncio
from typing import Any

import h11

CHUNK = 64 * 1024
HEAD_BYTES = 64 * 1024
"""The longest head of a message."""
HEAD_SECONDS = 30.0
"""The whole head must be there by then, however it trickles."""
QUIET_SECONDS = 300.0
"""How long the other side may send nothing in the middle of a message, or take nothing of ours."""
LINGER_SECONDS = 2.0
BAD_REQUEST = 400
UNAUTHORIZED = 401
FORBIDDEN = 403
TOO_SLOW = 408
BAD_GATEWAY = 502
FAR_TOO_SLOW = 504
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)

Header = tuple[bytes, bytes]


class Gone(Exception):
    """The other side went away, kept us waiting, or spoke no HTTP. `status` is the answer to that, if there is one."""

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.why = why
        self.status = status


class FarGone(Exception):
    """The far side was not there, went away, kept silent or spoke no HTTP. `status` is what the near side hears."""

    def __init__(self, why: str, status: int = BAD_GATEWAY) -> None:
        super().__init__(why)
        self.why = why
        self.status = status


class Refusal(Exception):
    """A request that is answered here, and goes no further."""

    def __init__(self, status: int, message: str, headers: tuple[Header, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers


class Wire:
    """A stream that carries whole events of HTTP instead of bytes."""

    def __init__(self, role: type[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.state = h11.Connection(role, max_incomplete_event_size=HEAD_BYTES)
        self.reader = reader
        self.writer = writer
        self.method = b""
        """Of the request that was read last."""

    async def begins(self, seconds: float) -> bool:
        """Whether another message begins, before the other side goes away or the time is over."""
        if self.state.trailing_data[0]:
            return True
        try:
            async with asyncio.timeout(seconds):
                data = await self.reader.read(CHUNK)
        except (TimeoutError, OSError):
            return False
        self.state.receive_data(data)
        return bool(data)

    async def next(self, seconds: float) -> h11.Event | type[h11.PAUSED]:
        """The next event, whole, within that time."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    event = self.state.next_event()
                    if isinstance(event, h11.Request):
                        self.method = event.method
                    if event is not h11.NEED_DATA:
                        return event  # type: ignore[return-value]
                    self.state.receive_data(await self.reader.read(CHUNK))
        except TimeoutError as error:
            raise Gone("it kept silent for too long", TOO_SLOW) from error
        except OSError as error:
            raise Gone("the connection broke") from error
        except h11.RemoteProtocolError as error:
            raise Gone("it broke the rules of HTTP, or broke off", error.error_status_hint) from error

    async def send(self, event: h11.Event) -> None:
        """Write one event, and wait until the other side took enough of what was written."""
        try:
            data = self.state.send(event)
        except h11.LocalProtocolError as error:
            raise Gone("the message does not fit its own head") from error
        if data:
            await self.send_bytes(data)

    async def send_bytes(self, data: bytes) -> None:
        try:
            self.writer.write(data)
            async with asyncio.timeout(QUIET_SECONDS):
                await self.writer.drain()
        except TimeoutError as error:
            raise Gone("it took nothing for too long") from error
        except (OSError, RuntimeError) as error:
            raise Gone("the connection broke") from error

    async def until_gone(self) -> None:
        """Raises when the other side goes away; returns when it sends ahead, which is kept for later."""
        try:
            data = await self.reader.read(CHUNK)
        except OSError as error:
            raise Gone("the connection broke") from error
        if not data:
            raise Gone("it went away")
        self.state.receive_data(data)

    async def answer(self, status: int, body: bytes, headers: list[Header]) -> None:
        """A whole response of our own, and the last one of this connection: the request may not be read to its end."""
        fixed: list[Header] = [*headers, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        await self.send(h11.Response(status_code=status, headers=fixed, reason=_REASONS.get(status, b"")))
        if self.method != b"HEAD":
            await self.send(h11.Data(data=body))
        await self.send(h11.EndOfMessage())

    def can_answer(self) -> bool:
        """Whether no part of a response was sent yet."""
        return self.state.our_state in {h11.IDLE, h11.SEND_RESPONSE}

    def again(self) -> bool:
        """Make ready for the next request on the same connection, if both sides left it in order."""
        if self.state.our_state is not h11.DONE or self.state.their_state is not h11.DONE:
            return False
        self.state.start_next_cycle()
        return True

    async def linger(self) -> None:
        """Read off what the other side still sends, for a moment, so that it gets to see the answer before the end."""
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                while await self.reader.read(CHUNK):
                    pass
        except (TimeoutError, OSError, RuntimeError):
            return

    def cut(self) -> None:
        """End in a way that nobody takes for the end of the message."""
        if self.state.our_state is h11.SEND_BODY and self.state.their_http_version != b"1.1":
            self.writer.transport.abort()
        self.writer.close()


def end_to_end(headers: Any, without: frozenset[bytes] = frozenset()) -> list[Header]:
    """The headers that are meant for the far end: not those of one hop, nor those that `Connection` names."""
    named = {
        word.strip().lower() for name, value in headers if name == b"connection" for word in bytes(value).split(b",")
    }
    left_out = HOP_BY_HOP | (named - {b"content-length"}) | without
    return [(name, value) for name, value in headers if name not in left_out]


def framing(headers: Any) -> list[Header]:
    """How the body of a request is delimited. Saying it twice is how requests are smuggled."""
    lengths = [(name, value) for name, value in headers if name == b"content-length"]
    codings = [(name, value) for name, value in headers if name == b"transfer-encoding"]
    if lengths and codings:
        raise Refusal(BAD_REQUEST, "a request with both Content-Length and Transfer-Encoding is refused")
    return [] if lengths else codings


_REASONS = {
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Denied by Genba",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    426: b"Upgrade Required",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    502: b"Bad Gateway",
    503: b"Too Many Connections",
    504: b"Gateway Timeout",
}
