"""Genba's errors for the refusals of GitHub."""

import email.utils
import json
import time
from collections.abc import Mapping
from typing import Any

from genba.domain.errors import (
    AccessRefusedError,
    GenbaError,
    NotAllowedError,
    NotFoundError,
    RateLimited,
    RemoteUnavailable,
    UnrecoverableError,
)

LEAST_PAUSE_SECONDS = 60.0
"""How long to wait where GitHub names no time."""
_LONGEST_PAUSE_SECONDS = 24 * 3600.0
_WORDS = 500

_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TIMEOUT, _GONE, _TOO_MANY = 401, 403, 404, 408, 410, 429
_SERVER_FAULTS = range(500, 600)
_HEAVY = (502, 504)
_FOR_GOOD = ("locked", "archived", "read-only", "read only")


class Refused(UnrecoverableError):
    """GitHub understood, and says no. `words` are its own."""

    def __init__(self, message: str, *, status: int, words: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.words = words


class TooHeavy(RemoteUnavailable):
    """The server gave up on the question, or its answer is too large: asking for less may help."""


def refusal(asked: str, status: int, headers: Mapping[str, str], body: bytes) -> GenbaError:
    """The error for an answer to `asked`, such as `GET issues/12`."""
    words = words_of(body)
    output = f"{status}: {words}" if words else str(status)
    if status == _UNAUTHORIZED:
        return AccessRefusedError(
            f"GitHub does not take the credentials ({output})",
            unchanged="nothing was changed on GitHub; what is still to be sent stays in the outbox.",
            hint="set GENBA_GITHUB_TOKEN to a token that is good, or: gh auth login",
        )
    if status in (_FORBIDDEN, _TOO_MANY) and (pause := _pause(status, headers, words)) is not None:
        return RateLimited(f"GitHub takes no more requests for now ({output})", retry_after=pause)
    if status == _FORBIDDEN and not any(word in words.lower() for word in _FOR_GOOD):
        return NotAllowedError(
            f"the credentials do not allow {asked} ({output})",
            unchanged="nothing was changed on GitHub; what is still to be sent stays in the outbox.",
            hint="give the token access to issues, pull requests and contents of the repository",
        )
    if status in (_NOT_FOUND, _GONE):
        return NotFoundError(
            f"GitHub does not find what {asked} asks for, or hides it from this token ({output})",
            hint="check tracker.github.repository, and what the token may see",
        )
    if status in _HEAVY:
        return TooHeavy(f"GitHub did not come to an answer to {asked} ({output})", retry_after=_after(headers))
    if status in _SERVER_FAULTS or status == _TIMEOUT:
        return RemoteUnavailable(f"GitHub failed at {asked} ({output})", retry_after=_after(headers))
    return Refused(f"GitHub refuses {asked} ({output})", status=status, words=words)


def pause_of(headers: Mapping[str, str]) -> float:
    """How long to wait after a refusal that is a limit, however GitHub says so."""
    named = _after(headers)
    return named if named is not None else _until_reset(headers) or LEAST_PAUSE_SECONDS


def words_of(body: bytes) -> str:
    """What GitHub says in an answer that is no success: one line, bounded, and safe to print."""
    try:
        result: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(result, dict):
        return ""
    found = [str(result.get("message") or "")]
    errors = result.get("errors")
    for error in errors if isinstance(errors, list) else ():
        if isinstance(error, str):
            found.append(error)
        elif isinstance(error, dict):
            named = " ".join(str(error[key]) for key in ("field", "code") if error.get(key))
            found.append(str(error.get("message") or named))
    return plain("; ".join(dict.fromkeys(text.strip() for text in found if text.strip())))


def plain(text: str, limit: int = _WORDS) -> str:
    """One line without anything that a terminal would act on."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    line = " ".join(line.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _pause(status: int, headers: Mapping[str, str], words: str) -> float | None:
    named = _after(headers)
    if named is not None:
        return named
    if headers.get("x-ratelimit-remaining") == "0":
        return _until_reset(headers) or LEAST_PAUSE_SECONDS
    lower = words.lower()
    if status == _TOO_MANY or "rate limit" in lower or "abuse detection" in lower:
        return LEAST_PAUSE_SECONDS
    return None


def _after(headers: Mapping[str, str]) -> float | None:
    """The header `retry-after`: seconds, or a date."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value), _LONGEST_PAUSE_SECONDS)
    moment = _moment(value)
    if moment is None:
        return LEAST_PAUSE_SECONDS
    return min(max(moment - _now(headers), 1.0), _LONGEST_PAUSE_SECONDS)


def _until_reset(headers: Mapping[str, str]) -> float | None:
    value = headers.get("x-ratelimit-reset", "")
    if not (value.isascii() and value.isdigit()):
        return None
    return min(max(float(value) - _now(headers), 0.0) + 1.0, _LONGEST_PAUSE_SECONDS)


def _now(headers: Mapping[str, str]) -> float:
    """The time of the server, where it says it: its clock and ours may differ."""
    return _moment(headers.get("date", "")) or time.time()


def _moment(value: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
