"""What the dialects have in common: a request is understood, an answer or an error is worded."""

import json
import time
from datetime import UTC, datetime
from itertools import count
from typing import Any, Protocol

from tests.standins.model_server.conversations import Asked, Piece
from tests.standins.model_server.turns import Fail, Tokens

Body = dict[str, Any]
_numbers = count(1)


class Dialect(Protocol):
    """One provider's way to say all this."""

    name: str

    def asked(self, path: str, body: Body) -> Asked: ...

    def events(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> list[bytes]:
        """The answer as server-sent events."""
        ...

    def whole(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> Body:
        """The answer in one piece."""
        ...

    def error(self, fail: Fail) -> tuple[dict[str, str], Body]:
        """The headers and the body of an error."""
        ...

    def broken(self, asked: Asked, fail: Fail) -> list[bytes]:
        """A stream that begins well and tells of an error."""
        ...


def fresh(prefix: str) -> str:
    """An id that was not given before."""
    return f"{prefix}{next(_numbers):08d}"


def sse(data: Any, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def halves(text: str) -> tuple[str, ...]:
    """The text in two deltas, so that a stream has a middle."""
    middle = (len(text) + 1) // 2
    return tuple(filter(None, (text[:middle], text[middle:])))


def until(fail: Fail) -> datetime:
    """When the limit is lifted."""
    return datetime.fromtimestamp(time.time() + (fail.retry_after or 0), UTC).replace(microsecond=0)


def retry_headers(fail: Fail) -> dict[str, str]:
    return {} if fail.retry_after is None else {"retry-after": f"{fail.retry_after:g}"}
