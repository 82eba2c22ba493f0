"""Times as the blackboard writes them: UTC, as ISO text."""

from datetime import UTC, datetime, timedelta

SKEW_SECONDS = 300.0
"""By so much the clocks of two hosts may differ."""


def moment(text: str) -> datetime | None:
    """The time that a text names, if it names one."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def written(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def later(text: str, seconds: float) -> str:
    """So many seconds after a time; an empty text stays one."""
    at = moment(text)
    if at is None:
        return ""
    try:
        return written(at + timedelta(seconds=seconds))
    except OverflowError:
        return written(datetime.max.replace(tzinfo=UTC))


def is_before(text: str, other: str) -> bool:
    """Whether the first time is earlier; one that is not there is never earlier."""
    first, second = moment(text), moment(other)
    return first is not None and second is not None and first < second


def holds_off(now: str, since: str, until: str) -> bool:
    """Whether a wait that began and ends at these times goes on.

    One that begins only later was written down before the clock was set back. How long it still is nobody knows, so it
    is over: to try too early costs little.
    """
    return is_before(now, until) and not is_before(later(now, SKEW_SECONDS), since)


def hours_between(text: str, other: str) -> float:
    first, second = moment(text), moment(other)
    return 0.0 if first is None or second is None else (second - first).total_seconds() / 3600


def next_day(text: str) -> str:
    """The first moment of the day after, where budgets of a day begin anew."""
    at = moment(text)
    if at is None:
        return ""
    return written(at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1))
