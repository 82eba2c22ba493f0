"""Errors of a model's provider, as tools tell them: which kind each is, and when it is worth asking again."""

import re
from datetime import datetime

from genba.connections.agents.one_shot import with_detail
from genba.domain.errors import AgentUnavailable, GenbaError, RateLimited, UnrecoverableError

MAX_SHOWN = 300
"""Characters of a text of the tool that are shown."""
_NO_KEY, _TOO_MANY = (401, 403), 429
_REFUSED, _BROKEN, _PASSING = 400, 500, (408, 409, 425)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_WAIT = re.compile(
    r"(?:try again|retry|resets?) (?:after|in) ((?:\d+(?:\.\d+)? ?[a-z]+[ ,]*(?:and )?)+)", re.IGNORECASE
)
_PIECE = re.compile(r"(\d+(?:\.\d+)?) ?(ms|[smhd])", re.IGNORECASE)
_MOMENT = re.compile(
    r"try again at (?:(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2})(?:st|nd|rd|th), (?P<year>\d{4}) )?"
    r"(?P<time>\d{1,2}:\d{2} [AP]M)"
)


class ConversationLost(AgentUnavailable):
    """The conversation cannot go on; another one can begin."""


def provider_error(status: int | None, message: str, key_variable: str, retry_after: float | None = None) -> GenbaError:
    """The error that fits a status of the provider; None is a provider that gave none, or was not reached."""
    message = one_line(message)
    if status == _TOO_MANY:
        return RateLimited(with_detail("the rate limit of the model is reached", message), retry_after=retry_after)
    if status in _NO_KEY:
        return UnrecoverableError(
            with_detail("the model's provider refused the key", message), hint=f"check {key_variable}"
        )
    if status is not None and _REFUSED <= status < _BROKEN and status not in _PASSING:
        return UnrecoverableError(
            with_detail(f"the model's provider refused the question ({status})", message), hint="check the model's name"
        )
    return AgentUnavailable(with_detail("the model cannot be reached", message))


def wait_in_text(text: str, now: datetime) -> float | None:
    """The seconds until the provider wants to be asked again, where its text names them."""
    if wait := _WAIT.search(text):
        return sum(float(number) * _SECONDS[unit.lower()] for number, unit in _PIECE.findall(wait[1])) or None
    moment = _MOMENT.search(text)
    try:
        return max(1.0, (_reset_time(moment, now) - now).total_seconds()) if moment else None
    except ValueError:
        return None


def _reset_time(message: re.Match[str], now: datetime) -> datetime:
    """A moment in the time of this place; without a day it is today's."""
    day = now.date()
    if message["month"]:
        day = datetime.strptime(f"{message['month']} {message['day']} {message['year']}", "%b %d %Y").date()
    return datetime.combine(day, datetime.strptime(message["time"], "%I:%M %p").time(), now.tzinfo)


def one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_SHOWN]
