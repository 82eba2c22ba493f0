"""What was asked of the server: one row for each request, and the whole exchange for who watches."""

from typing import Any

import msgspec


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A request. `status` is 0 where it got no answer."""

    method: str
    path: str
    query: dict[str, str] = {}
    operation: str = ""
    """The name of a GraphQL operation."""
    mutation: bool = False
    """Whether it was to change something: a REST method other than GET, a GraphQL mutation, a push."""
    status: int = 0
    login: str = ""
    at: float = 0.0
    """Seconds on a clock that never goes back."""
    moment: float = 0.0
    """Seconds on the clock of the server, which tests may set."""
    body: Any = None
    struck: bool = False
    """A fault made the answer."""

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}" + (f" {self.operation}" if self.operation else "")


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its answer, as they went over the wire."""

    method: str
    target: str
    """The path with its query, as it stood in the request."""
    sent: bytes
    status: int
    answered: bytes
    content_type: str
    agent: str
    struck: bool = False
    """A fault made the answer: it proves nothing about the server."""
