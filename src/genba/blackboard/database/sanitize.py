"""Texts as both databases can keep them, and the time as they keep it."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from genba.domain.errors import UsageError
from genba.domain.tasks.task import Actor
from genba.domain.text_limits import LONGEST, cut
from genba.domain.timestamps import format_time

LARGEST = 2**63 - 1
"""The largest whole number that both databases can keep."""


def now() -> str:
    return format_time(datetime.now(UTC))


def most(limit: int | None) -> int:
    """How many rows at most, as a database takes it."""
    return LARGEST if limit is None else max(0, min(limit, LARGEST))


def storable(value: str, what: str, empty: bool = True) -> str:
    """The same text, or a refusal: PostgreSQL keeps no NUL, and neither keeps what is no character."""
    if not empty and not value.strip():
        raise UsageError(f"{what} is empty", unchanged="nothing was changed.")
    if "\0" in value:
        raise UsageError(f"{what} contains a NUL character", unchanged="nothing was changed.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{what} contains what is no character, at {error.start}", unchanged="nothing was changed."
        ) from error
    return value


def seen(value: str) -> str:
    """A text from the outside, which is never refused: what cannot be kept is replaced."""
    return value.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def bounded(value: str, most: int = LONGEST) -> str:
    """A text that an agent may have written, as it is kept: never refused, and never longer than a page."""
    return cut(seen(value), most)


def bounded_through(value: Any) -> Any:
    """The same value, with every text in it bounded."""
    match value:
        case str():
            return bounded(value)
        case dict():
            return {bounded(str(key)): bounded_through(inner) for key, inner in value.items()}
        case list() | tuple():
            return [bounded_through(inner) for inner in value]
    return value


def named(actor: Actor) -> Actor:
    """The same actor. Raises UsageError for an actor without a name."""
    if not actor.name.strip():
        raise UsageError("a change of a task needs the name of its actor", unchanged="nothing was changed.")
    storable(actor.name, "the actor's name")
    return actor


def as_json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_seen_through(msgspec.to_builtins(value))).decode()


def _seen_through(value: Any) -> Any:
    match value:
        case str():
            return seen(value)
        case dict():
            return {seen(key): _seen_through(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_seen_through(inner) for inner in value]
    return value
