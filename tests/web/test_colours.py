"""The colours of the pages: whatever is written can be read, in light and in dark."""

import re
from pathlib import Path

from genba.entrypoints import web

_WORDS = ("text", "quiet", "accent", "done", "work", "review", "blocked", "bad", "wait")
_PAIRS = [
    *((word, ground) for word in _WORDS for ground in ("ground", "surface", "raised")),
    *((word, f"{word}-soft") for word in ("done", "work", "blocked", "bad")),
    *(("text", f"{word}-soft") for word in ("done", "work", "blocked", "bad")),
    ("on-accent", "accent"),
]
_LEAST = 4.5
"""What WCAG 2.2 asks for at level AA."""


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def themes() -> list[dict[str, str]]:
    css = (Path(web.__file__).parent / "static" / "genba.css").read_text("utf-8")
    blocks = re.findall(r"{([^{}]*--ground:[^{}]*)}", css)
    return [dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-fA-F]{6})\b", block)) for block in blocks]


def test_words_can_be_read_in_light_and_in_dark() -> None:
    found = themes()
    assert len(found) == 3, "light, dark because the system is, dark because somebody wants it"
    poor = [
        (number, word, ground, round(contrast(theme[word], theme[ground]), 2))
        for number, theme in enumerate(found)
        for word, ground in _PAIRS
        if contrast(theme[word], theme[ground]) < _LEAST
    ]
    assert not poor


def test_dark_is_the_same_dark_however_it_was_chosen() -> None:
    _, by_system, by_hand = themes()
    assert by_system == by_hand
