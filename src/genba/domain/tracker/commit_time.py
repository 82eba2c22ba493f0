"""The times of commits, in the one form in which times compare as texts."""

import functools
from datetime import date, timedelta

_LONGEST_TIME = 20
_EPOCH = date(1970, 1, 1)
WITHIN = tuple(f"{minute:02d}:{second:02d}.000000Z" for minute in range(60) for second in range(60))


def commit_time(text: bytes | str) -> str:
    """In the one form in which times compare as texts. A commit whose time git cannot tell is from the beginning."""
    hour, rest = divmod(int(text) if text.isdigit() and len(text) <= _LONGEST_TIME else 0, 3600)
    return _hour(hour) + WITHIN[rest]


def _hour(hour: int) -> str:
    days, rest = divmod(hour, 24)
    return f"{_day(days)}T{rest:02d}:"


class Hours(dict[int, str]):
    """Each hour is written once."""

    def __missing__(self, hour: int) -> str:
        result = self[hour] = _hour(hour)
        return result


@functools.lru_cache(maxsize=20_000)
def _day(days: int) -> str:
    try:
        return (_EPOCH + timedelta(days=days)).isoformat()
    except OverflowError:
        return "9999-12-31" if days > 0 else "0001-01-01"
