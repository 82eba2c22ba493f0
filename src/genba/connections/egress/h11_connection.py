"""One end of an HTTP/1.1 conversation with an untrusted peer: every read has a bound and a deadline.

A message is parsed whole and written from its parts, never copied, so none can hide a second message inside the first.
"""

import asyncio
from typing import Any

import h11
import msgspec

CHUNK = 64 * 1024
HEAD_BYTES = 64 * 1024
"""The longest head of a message."""
BAD_REQUEST = 400
UNAUTHORIZED = 401
FORBIDDEN = 403
TOO_SLOW = 408
UPGRADE_REQUIRED = 426
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


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How many seconds the other side may take for what."""

    head: float = 30.0
    """For the whole head of a message, however it trickles."""
    quiet: float = 300.0
    """Without a byte in the middle of a message, theirs or ours."""
    answer: float = 900.0
    """Before the next word of an answer. A model thinks long, and the instance has watchdogs of its own."""
    idle: float = 300.0
    """Until the next request on the same connection."""
    tunnel: float = 600.0
    """Without a byte in either direction."""
    dial: float = 30.0
    linger: float = 2.0
    """For taking the last answer, when we end the connection."""


PATIENT = Patience()


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

    def __init__(
        self, role: type[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter, patience: Patience
    ) -> None:
        self.state = h11.Connection(role, max_incomplete_event_size=HEAD_BYTES)
        self.reader = reader
        self.writer = writer
        self.patience = patience
        self.method = b""
        """Of the request that was read last."""

    async def begins(self) -> bool:
        """Whether another message begins, before the other side goes away or the time is over."""
        if self.state.trailing_data[0]:
            return True
        try:
            async with asyncio.timeout(self.patience.idle):
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
            async with asyncio.timeout(self.patience.quiet):
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
        self.method = b""
        return True

    async def linger(self) -> None:
        """Read off what the other side still sends, for a moment, so that it gets to see the answer before the end."""
        try:
            async with asyncio.timeout(self.patience.linger):
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                while await self.reader.read(CHUNK):
                    pass
        except (TimeoutError, OSError, RuntimeError):
            return

    def cut(self) -> None:
        """End in the middle of a message, which its reader notices by the end that never came."""
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
    BAD_REQUEST: b"Bad Request",
    UNAUTHORIZED: b"Unauthorized",
    FORBIDDEN: b"Denied by Genba",
    405: b"Method Not Allowed",
    TOO_SLOW: b"Request Timeout",
    UPGRADE_REQUIRED: b"Upgrade Required",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    BAD_GATEWAY: b"Bad Gateway",
    FAR_TOO_SLOW: b"Gateway Timeout",
    505: b"HTTP Version Not Supported",
}
