"""What a request has to pass before anybody reads it: its size, where it comes from, and how many came before it.

A client that sends too much is stopped here, cheaply, and does not block others.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genba.domain.workflow.actions import ErrorCode, WorkflowError

LARGEST_BODY = 2 * 1024 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_INVALID_REQUEST = -32600
_TOO_LARGE = 413
_MOST_KEYS = 4096
_BODY_SECONDS = 30.0
_MOST_DRAINED = 16 * LARGEST_BODY
_PER_CALLER = 2
"""How much more than a session may call gets as far as the session's own limit, which says more."""
_PER_ADDRESS = 16


class CallRate:
    """So many a minute for each key, and as many at once."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = per_minute
        self._each = per_minute / 60
        self._clock = clock
        self._left: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def wait(self, key: object) -> float:
        """0: go on, and it is counted. Else after how many seconds it is worth trying again."""
        now = self._clock()
        left, seen = self._left.get(key, (self._most, now))
        left = min(self._most, left + (now - seen) * self._each)
        waits = (1 - left) / self._each if left < 1 else 0.0
        self._left[key] = (left if waits else left - 1, now)
        self._left.move_to_end(key)
        if len(self._left) > _MOST_KEYS:
            self._left.popitem(last=False)
        return waits


class Guard:
    """An ASGI application in front of another."""

    def __init__(self, app: ASGIApp, calls_per_minute: float, body_seconds: float = _BODY_SECONDS) -> None:
        self._app = app
        self._body_seconds = body_seconds
        self._callers = CallRate(calls_per_minute * _PER_CALLER)
        self._addresses = CallRate(calls_per_minute * _PER_ADDRESS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        values = {b"authorization": b"", b"content-length": b"", b"origin": b""}
        for name, value in scope["headers"]:
            if name in values:
                values[name] = value
        if values[b"origin"] and not _from_here(values[b"origin"]):
            await _refuse(send, 403, WorkflowError(ErrorCode.FORBIDDEN, "web pages of others are not served"))
            return
        if values[b"content-length"].isdigit() and int(values[b"content-length"][:20]) > LARGEST_BODY:
            error = WorkflowError(
                ErrorCode.LIMIT, f"the request is larger than {LARGEST_BODY:,} bytes", hint="say it shorter"
            )
            await _drained(_in_time(receive, self._body_seconds))
            await _refuse(send, _TOO_LARGE, error)
            return
        waits = self._waits(scope, values[b"authorization"])
        if waits:
            error = WorkflowError(
                ErrorCode.LIMIT, "too many requests", hint=f"try again in {waits:.0f} seconds", action="wait"
            )
            await _refuse(send, 429, error, retry_after=max(1, round(waits)))
            return
        await self._app(scope, _in_time(receive, self._body_seconds), send)

    def _waits(self, scope: Scope, secret: bytes) -> float:
        """Who runs away with one secret is stopped by that, before it takes what others of its address have left."""
        waits = self._callers.wait(hash(secret)) if secret else 0.0
        client = scope.get("client")
        return waits or self._addresses.wait(client[0] if client else "")


def _from_here(origin: bytes) -> bool:
    """A page of this machine may ask; a browser that was sent here by another page may not."""
    try:
        return urlsplit(origin.decode("latin-1")).hostname in LOOPBACK
    except ValueError:
        return False


def _in_time(receive: Receive, seconds: float) -> Receive:
    """Who does not send its request within a while has hung up: it holds no connection that others could have."""
    over = time.monotonic() + seconds
    whole = False

    async def timed() -> Message:
        nonlocal whole
        if whole:
            return await receive()
        try:
            async with asyncio.timeout(max(0.0, over - time.monotonic())):
                message = await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return timed


async def _drained(receive: Receive) -> None:
    """Let a client finish what it sends, within reason: else it sees a broken connection, and not why."""
    left = _MOST_DRAINED
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b"")) or 1
        if message["type"] != "http.request" or not message.get("more_body", False):
            return


async def _refuse(send: Send, status: int, error: WorkflowError, retry_after: int = 0) -> None:
    values = {"code": _INVALID_REQUEST, "message": error.message, "data": error.as_dict()}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": values})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == _TOO_LARGE:
        headers.append((b"connection", b"close"))
    if retry_after:
        headers.append((b"retry-after", str(retry_after).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
