"""What a durable step came to, as JSON text.

Law: nothing is pickled. A value is what msgspec writes and reads; an error of the house is kept by its class and its
words, and raised again as the same; a full disk is one of them; an unexpected error becomes an
UnexpectedError, the first time as every other time.
"""

from typing import Any, TypeVar

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from genba.domain import errors
from genba.domain.decoding import fitted, reader
from genba.domain.errors import ConfigurationError, GenbaError, RecoverableError, UnexpectedError, is_disk_full
from genba.domain.problems import Problem

T = TypeVar("T")

_CLASSES: dict[str, type[GenbaError]] = {
    name: found for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, GenbaError)
}


class StoredError(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error of the house, as it is written down."""

    kind: str
    message: str
    unchanged: str = ""
    hint: str = ""
    retry_after: float | None = None
    problems: tuple[Problem, ...] = ()


class _StepResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a step came to: a value, or an error."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    error: StoredError | None = None


def write_value(value: Any) -> str:
    """The text of a value. One that cannot be written is a fault of the step that made it."""
    try:
        return msgspec.json.encode(_StepResult(value=msgspec.Raw(msgspec.json.encode(value)))).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return write_error(UnexpectedError(f"a step came to what cannot be written down: {error}"))


def write_error(error: BaseException) -> str:
    return msgspec.json.encode(_StepResult(error=keep(error))).decode()


def read(text: str, kind: type[T]) -> T:
    """The value of a step; its error is raised."""
    came = reader(_StepResult).decode(text)
    if came.error is not None:
        raise raised(came.error)
    return reader(kind).decode(came.value)


def keep(error: BaseException) -> StoredError:
    """An error by the nearest class that the house knows."""
    if not isinstance(error, GenbaError):
        output = " ".join(str(error).split())
        if is_disk_full(error):
            return StoredError("DiskFullError", _plain(f"the disk is full: {output}"), hint="free some space")
        return StoredError(
            "UnexpectedError", _plain(f"{type(error).__name__}: {output}" if output else type(error).__name__)
        )
    kind = next(known.__name__ for known in type(error).__mro__ if _CLASSES.get(known.__name__) is known)
    return StoredError(
        kind,
        _plain(error.message),
        _plain(error.unchanged),
        _plain(error.hint),
        error.retry_after if isinstance(error, RecoverableError) else None,
        error.problems if isinstance(error, ConfigurationError) else (),
    )


def raised(kept: StoredError) -> GenbaError:
    """The error again. One of a newer Genba that this one does not know is an UnrecoverableError."""
    found = _CLASSES.get(kept.kind, errors.UnrecoverableError)
    error = found.__new__(found)
    GenbaError.__init__(error, kept.message, unchanged=kept.unchanged, hint=kept.hint)
    if isinstance(error, RecoverableError):
        error.retry_after = kept.retry_after
    if isinstance(error, ConfigurationError):
        error.problems = kept.problems
    return error


def _plain(text: str) -> str:
    """The text without what no JSON and no database can hold."""
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


class JsonSerializer:
    """How the engine writes inputs, results and errors of workflows: as JSON, never as a pickle."""

    def name(self) -> str:
        return "genba_json"

    def serialize(self, data: Any) -> str:
        if isinstance(data, SQLAlchemyError):
            raise data  # DBOS takes a write that failed for what came of the step: then nothing is written at all
        if isinstance(data, BaseException):
            return msgspec.json.encode({"error": keep(data)}).decode()
        return msgspec.json.encode({"data": data}).decode()

    def deserialize(self, serialized_data: str) -> Any:
        kept = msgspec.json.decode(serialized_data)
        if "error" in kept:
            return raised(fitted(kept["error"], StoredError))
        return kept["data"]
