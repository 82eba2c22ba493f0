"""Text of agents and files, safe to show: a terminal obeys what it is sent, so nothing but text is sent to it."""

import re

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # strings for the terminal itself
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and newline, marks that turn the direction of text, and what is no character."""


def printable(text: str) -> str:
    """The text without anything that a terminal would obey. Tabs and newlines stay."""
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


def in_one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(printable(text).split("\n"))
