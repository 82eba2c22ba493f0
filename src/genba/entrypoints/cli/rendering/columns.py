"""Text in columns: how wide it is on a screen, cut and filled so that no title can break a table."""

import unicodedata
from collections.abc import Sequence

from genba.entrypoints.cli.rendering.printable import printable

_UNSEEN = frozenset(("Mn", "Me", "Cf"))
"""Marks over the letter before them, and characters that only tell others how to look."""


def cell(text: str) -> str:
    """The text as one plain word after the other: no line ends, no tabs, nothing that a terminal obeys or hides."""
    plain = "".join(letter for letter in printable(text) if unicodedata.category(letter) != "Cf")
    return " ".join(plain.split())


def width(text: str) -> int:
    """How many columns it takes."""
    return len(text) if text.isascii() else sum(_columns(letter) for letter in text)


def cut(text: str, most: int) -> str:
    """At most so many columns; what was left out is shown by one."""
    if width(text) <= most:
        return text
    kept, taken = [], 0
    for letter in text:
        taken += _columns(letter)
        if taken >= most:
            break
        kept.append(letter)
    return "".join(kept).rstrip() + "…" if most > 0 else ""


def wrapped(text: str, columns: int, most: int) -> list[str]:
    """A text of words in at most so many lines; what has no room in the last one is cut."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if width(longer) <= columns or len(lines) == most or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return [cut(line, columns) for line in lines]


def fit(text: str, columns: int) -> str:
    """Exactly so many columns."""
    shown = cut(text, columns)
    return shown + " " * (columns - width(shown))


def rows_of(rows: Sequence[Sequence[str]], most: Sequence[int], gap: str = "  ") -> list[str]:
    """Rows with columns that line up, each as wide as its content and no wider than it may be; the last one is free."""
    kept = [tuple(cell(each) for each in row) for row in rows]
    widths = [min(limit, max((width(row[at]) for row in kept), default=0)) for at, limit in enumerate(most)]
    lines = []
    for row in kept:
        filled = [fit(row[at], columns) for at, columns in enumerate(widths) if columns]
        lines.append(gap.join([*filled, row[-1]]).rstrip())
    return lines


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in _UNSEEN:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1
