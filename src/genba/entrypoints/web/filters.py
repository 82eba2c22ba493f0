"""How values look on a page: times, money, amounts, and the shape of each state."""

import shlex
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

_DAY = 86400
_THOUSAND = 1000
SHAPES = {
    "backlog": '<circle cx="8" cy="8" r="1.8" fill="currentColor"/>',
    "open": '<circle cx="8" cy="8" r="5.2" fill="none" stroke="currentColor" stroke-width="1.8"/>',
    "in_progress": '<circle cx="8" cy="8" r="5.2" fill="none" stroke="currentColor" stroke-width="1.8"/>'
    '<path d="M8 2.8a5.2 5.2 0 0 1 0 10.4z" fill="currentColor"/>',
    "review": '<path d="M8 2.2 13.8 8 8 13.8 2.2 8z" fill="none" stroke="currentColor" stroke-width="1.8"/>',
    "done": '<circle cx="8" cy="8" r="6" fill="currentColor"/>',
    "blocked": '<path d="M8 2.4 14.2 13.4H1.8z" fill="currentColor"/>',
    "cancelled": '<path d="m4 4 8 8m0-8-8 8" stroke="currentColor" stroke-width="1.8" fill="none"/>',
    "unknown": '<path d="M8 2.2 13.8 8 8 13.8 2.2 8z" fill="none" stroke="currentColor" stroke-width="1.8" '
    'stroke-dasharray="2.4 1.6"/>',
    "waiting": '<path d="M4.5 2.5h7M4.5 13.5h7M5.5 2.5c0 4 5 7 5 11M10.5 2.5c0 4-5 7-5 11" fill="none" '
    'stroke="currentColor" stroke-width="1.5"/>',
    "square": '<rect x="3.4" y="3.4" width="9.2" height="9.2" fill="currentColor"/>',
}
_ALIKE = {
    "review_pending": "review",
    "incomplete": "open",
    "running": "in_progress",
    "merging": "in_progress",
    "queued": "waiting",
    "merged": "done",
    "passed": "done",
    "completed": "done",
    "approved": "done",
    "answered": "done",
    "failed": "cancelled",
    "rejected": "cancelled",
    "error": "unknown",
    "conflict": "blocked",
    "stuck": "blocked",
    "aborted": "cancelled",
    "budget_exhausted": "blocked",
    "live": "done",
    "dead": "cancelled",
    "absent": "unknown",
    "withdrawn": "cancelled",
    "suspended": "square",
    "ended": "square",
}


def shape(state: Any) -> Markup:
    """The shape of a state, beside its word: colour is not needed."""
    word = str(state)
    name = word if word in SHAPES else _ALIKE.get(word, "backlog")
    # What is drawn is ours: only the name of the state came from elsewhere, and it chose one of these.
    drawn = f'<svg class="shape" viewBox="0 0 16 16" aria-hidden="true" focusable="false">{SHAPES[name]}</svg>'
    return Markup(drawn)  # noqa: S704  (see above)


def word(state: Any) -> str:
    """A state as it is read: in_progress is `in progress`."""
    return str(state).replace("_", " ")


def ago(text: str | None) -> str:
    """How long ago, in the largest unit that says enough."""
    then = _moment(text)
    if then is None:
        return ""
    seconds = int((datetime.now(UTC) - then).total_seconds())
    for size, unit in ((_DAY, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= size:
            return f"in {-seconds // size} {unit}" if seconds < 0 else f"{seconds // size} {unit} ago"
    return "just now"


def moment(text: str | None) -> str:
    """A time in full, for who points at a short one."""
    then = _moment(text)
    return then.strftime("%Y-%m-%d %H:%M:%S UTC") if then is not None else ""


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004  (a minute)
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02} h" if hours else f"{minutes}:{rest:02} m"


def money(dollars: float | None) -> str:
    return f"${dollars:,.2f}" if dollars else "$0.00"


def amount(count: int | None) -> str:
    """A count in few characters: 41.0k."""
    number = count or 0
    for size, unit in ((_THOUSAND**3, "G"), (_THOUSAND**2, "M"), (_THOUSAND, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def short(commit: str | None) -> str:
    return (commit or "")[:7]


def _moment(text: str | None) -> datetime | None:
    try:
        then = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return then if then.tzinfo else then.replace(tzinfo=UTC)


FILTERS: dict[str, Any] = {
    "ago": ago,
    "amount": amount,
    "duration": duration,
    "moment": moment,
    "money": money,
    "quoted": shlex.quote,
    "shape": shape,
    "short": short,
    "word": word,
}
