"""As much of HTTP/1.1 as the tools need: requests with a body, whole answers, streams, lasting connections."""

import asyncio
import json
from typing import Any

import msgspec

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}
_LONGEST = 64 * 1024 * 1024


class Message(msgspec.Struct, frozen=True):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """By their names in small letters."""
    body: bytes


class NotHttp(Exception):
    """What came is no request."""


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """The next request of a connection; None where there is none any more."""
    line = await reader.readline()
    if not line:
        return None
    words = line.decode("latin-1").split()
    if len(words) != 3:
        raise NotHttp(line[:80])
    headers: dict[str, str] = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return Message(words[0], words[1], headers, await _body(reader, headers))


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            parts.append(await reader.readexactly(min(size, _LONGEST)))
            await reader.readline()
        await reader.readline()
        return b"".join(parts)
    return await reader.readexactly(min(int(headers.get("content-length", "0")), _LONGEST))


def whole(status: int, body: Any, headers: dict[str, str] | None = None) -> bytes:
    """A complete answer of JSON."""
    payload = json.dumps(body).encode()
    lines = {"content-type": "application/json", "content-length": str(len(payload)), **(headers or {})}
    return _head(status, lines) + payload


def stream_head() -> bytes:
    return _head(
        200, {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"}
    )


def chunk(data: bytes) -> bytes:
    """A piece of a stream; an empty one is its end."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
