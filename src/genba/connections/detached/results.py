"""What a question came to, as a file: a reply, an error of the house, or the word that the agent was suspended."""

import time
from typing import Any

import msgspec

from genba.domain import errors
from genba.domain.errors import (
    ConfigurationError,
    DiskFullError,
    GenbaError,
    RecoverableError,
    UnexpectedError,
    is_disk_full,
)
from genba.domain.problems import Problem
from genba.domain.sessions.replies import Reply

_SOONEST_SECONDS = 0.001


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error of the house, with all that it tells."""

    kind: str
    message: str
    unchanged: str = ""
    hint: str = ""
    retry_after: float | None = None
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """An unexpected error, by its kind and its message."""
        if isinstance(error, OSError) and is_disk_full(error):
            return cls(kind=DiskFullError.__name__, message=f"the disk is full: {error.strerror}")
        if not isinstance(error, GenbaError):
            return cls(kind=UnexpectedError.__name__, message=f"{type(error).__name__}: {error}")
        return cls(
            kind=_known_kind(type(error)),
            message=error.message,
            unchanged=error.unchanged,
            hint=error.hint,
            retry_after=error.retry_after if isinstance(error, RecoverableError) else None,
            problems=error.problems if isinstance(error, ConfigurationError) else (),
        )

    def error(self, seconds_ago: float = 0.0) -> GenbaError:
        """The same error again. The time to come back that it names has gone on passing."""
        kind = _KINDS.get(self.kind, UnexpectedError)
        if issubclass(kind, ConfigurationError):
            return kind(self.problems, hint=self.hint)
        if issubclass(kind, RecoverableError):
            left = self.retry_after
            if left is not None and left > 0:
                left = max(left - seconds_ago, _SOONEST_SECONDS)
            return kind(self.message, retry_after=left, hint=self.hint)
        return kind(self.message, unchanged=self.unchanged, hint=self.hint)


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exactly one of the three is set."""

    reply: Reply | None = None
    failure: Failure | None = None
    suspended: str = ""
    """Why the agent was ended before it had answered."""
    at: float = msgspec.field(default_factory=time.time)

    def encoded(self) -> bytes:
        """As JSON; what is no text, such as half a character, is replaced."""
        try:
            return msgspec.json.encode(self)
        except UnicodeEncodeError:
            return msgspec.json.encode(whole_text(msgspec.to_builtins(self)))

    def taken(self, replayed: bool) -> Reply:
        """The reply, or the error that it came to. `replayed`: it was there before anybody asked for it now."""
        if self.reply is not None:
            return self.reply
        failure = self.failure or Failure(kind=UnexpectedError.__name__, message="the question came to nothing")
        raise failure.error(max(time.time() - self.at, 0.0) if replayed else 0.0)


def whole_text(value: Any) -> Any:
    """The same value without characters that no encoding has."""
    if isinstance(value, str):
        return value.encode("utf-8", errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {whole_text(key): whole_text(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [whole_text(inner) for inner in value]
    return value


_KINDS: dict[str, type[GenbaError]] = {
    name: found for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, GenbaError)
}


def _known_kind(kind: type[GenbaError]) -> str:
    """The nearest class of the house: an adapter of another package may have a finer one."""
    return next(each.__name__ for each in kind.__mro__ if _KINDS.get(each.__name__) is each)
