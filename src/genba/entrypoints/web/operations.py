"""What programs may ask for over HTTP: a table, from which come both the routes and their description.

Law: an operation is described by the types that it takes and gives. What is not described is refused.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from genba.entrypoints.web.site import Site

Number = Annotated[int, Meta(ge=1, le=2**63 - 1, description="The number of a task.")]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Words = Annotated[str, Meta(min_length=1, max_length=100_000)]


MOST_ROWS = 1000
Limit = Annotated[int, Meta(ge=1, le=MOST_ROWS, description="No more than so many.")]
AfterId = Annotated[
    int, Meta(ge=0, le=2**63 - 1, description="Only what follows this id: the last one of the page before.")
]
AfterLines = Annotated[int, Meta(ge=0, le=2**53, description="How many of the first to leave out.")]


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No parameters."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, what was left unchanged, and the next command: the same as with --json."""

    kind: str
    message: str
    problems: tuple[Any, ...] = ()
    unchanged: str = ""
    hint: str = ""
    exit_code: int = 1


class FailureAnswer(msgspec.Struct, frozen=True, kw_only=True):
    error: Failure


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What came with a request, checked against the types of its operation."""

    path: Mapping[str, Any]
    query: Any
    body: Any


Call = Callable[[Site, Given], Awaitable[Any]]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be asked for."""

    method: str
    path: str
    """With its parameters in braces, such as `/api/tasks/{number}`."""
    name: str
    summary: str
    call: Call
    answer: Any
    """The type of what is given back."""
    parameters: Mapping[str, Any] = {}
    """By name of a parameter of the path, its type."""
    query: type[msgspec.Struct] = Nothing
    body: type[msgspec.Struct] | None = None
    group: str = "field"
    command: str = ""
    """The command that prints the same."""

    @property
    def changes(self) -> bool:
        return self.method != "GET"
