"""The colours of the pages: whatever is written can be read, in light and in dark."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page

from genba.entrypoints import web
from tests.project import Project
from tests.web.looking import Looker
from tests.web.serving import dashboard

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
    """The palette in light and in dark, which stand beside each other."""
    css = (Path(web.__file__).parent / "static" / "genba.css").read_text("utf-8")
    found = re.findall(r"--([a-z-]+):\s*light-dark\((#[0-9a-fA-F]{6}), (#[0-9a-fA-F]{6})\)", css)
    return [{name: light for name, light, _ in found}, {name: dark for name, _, dark in found}]


def test_words_can_be_read_in_light_and_in_dark() -> None:
    poor = [
        (number, word, ground, round(contrast(theme[word], theme[ground]), 2))
        for number, theme in enumerate(themes())
        for word, ground in _PAIRS
        if contrast(theme[word], theme[ground]) < _LEAST
    ]
    assert not poor


def test_the_pages_are_as_dark_as_the_system_until_the_user_chooses(project: Project, chromium: Browser) -> None:
    light, dark = themes()
    with dashboard(project) as served, Looker.opened(chromium, served) as looker:
        for system, other in ((light, dark), (dark, light)):
            looker.page.emulate_media(color_scheme="light" if system is light else "dark")
            page = looker.go("/")
            assert ground(page) == system["ground"]
            page.get_by_role("button", name="Light or dark").click()
            assert ground(page) == other["ground"]
            looker.go("/cost")
            assert ground(page) == other["ground"], "the choice is kept"
            assert hexed(page.evaluate("colourNow('--bad')")) == other["bad"]
            page.evaluate("localStorage.clear()")


def ground(page: Page) -> str:
    return hexed(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))


def hexed(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])
