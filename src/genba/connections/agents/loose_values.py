"""Values out of JSON that anybody may have written: each is what it should be, or nothing."""

import re
from typing import Any

from genba.domain.convert import too_deep

_ID = re.compile(r"[A-Za-z0-9_][\w.:@/+=-]{0,199}", re.ASCII)
_MOST = 10**15
"""More of anything than an agent can have used."""


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_id(value: object) -> str:
    """A name that a tool gives a conversation, and that can stand in a command line later."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def as_structured(value: object) -> dict[str, Any] | None:
    """An object of a reply; one without bottom is none."""
    return value if isinstance(value, dict) and not too_deep(value) else None


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return 0.0
    return float(value)


def as_count(value: object) -> int:
    return int(as_number(value))
