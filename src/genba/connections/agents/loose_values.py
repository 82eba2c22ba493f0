"""Values out of JSON that anybody may have written: each is what it should be, or nothing."""

from typing import Any

_MOST = 10**15
"""More of anything than an agent can have used."""


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return 0.0
    return float(value)


def as_count(value: object) -> int:
    return int(as_number(value))
