"""Times as the blackboard stores them: UTC, as ISO 8601 text that sorts by time."""

from datetime import UTC, datetime, timedelta

SKEW_SECONDS = 300.0
"""By how much the clocks of two hosts may differ."""


def parse_time(text: str) -> datetime | None:
    """The time in a text, in UTC where it names no zone; None where there is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def format_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def later(text: str, seconds: float) -> str:
    """So many seconds after a time; an empty text stays one."""
    at = parse_time(text)
    if at is None:
        return ""
    try:
        return format_time(at + timedelta(seconds=seconds))
    except OverflowError:
        return format_time(datetime.max.replace(tzinfo=UTC))


def is_before(text: str, other: str) -> bool:
    """Whether the first time is earlier; one that is not there is never earlier."""
    first, second = parse_time(text), parse_time(other)
    return first is not None and second is not None and first < second


def is_backing_off(now: str, since: str, until: str) -> bool:
    """True while backoff is active.

    A start in the future means that the clock was set back: the backoff is over then, as an early attempt costs little.
    """
    return is_before(now, until) and not is_before(later(now, SKEW_SECONDS), since)


def hours_between(text: str, other: str) -> float:
    first, second = parse_time(text), parse_time(other)
    return 0.0 if first is None or second is None else (second - first).total_seconds() / 3600


def next_day(text: str) -> str:
    """The first moment of the day after, where budgets of a day begin again."""
    at = parse_time(text)
    if at is None:
        return ""
    return format_time(at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1))
