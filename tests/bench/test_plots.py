"""The pictures of the page of numbers: drawn from the ledgers, and readable by everybody."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import ledgers, plots
from bench.plots import Line, Picture, apart, draw, megabytes, seconds

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = Picture("part", "series", "Tea & <biscuits>", "guests", "cups", str, "twice the guests, twice the cups")
LINES = [Line("green", ((1, 1.0), (10, 10.0), (100, 100.0))), Line("black", ((1, 5.0), (10, 5.0), (100, 5.0)))]


def drawn(*lines: Line) -> ElementTree.Element:
    return ElementTree.fromstring(draw(PICTURE, lines or LINES, "How much tea is drunk."))


def test_the_pictures_show_what_the_ledgers_hold() -> None:
    found = plots.pictures(ledgers.read())
    there = {file.name: file.read_text(encoding="utf-8") for file in plots.IMAGES.glob("numbers-*.svg")}

    assert there == found, "python -m bench.plots draws them anew"


def test_a_picture_is_told_in_words_too() -> None:
    picture = drawn()

    assert picture.get("role") == "img"
    assert picture.findtext(f"{SVG}title") == "Tea & <biscuits>"
    assert picture.findtext(f"{SVG}desc") == "How much tea is drunk."
    assert {each.get("id") for each in picture} >= set(str(picture.get("aria-labelledby")).split())


def test_every_point_has_its_place_and_every_line_its_name() -> None:
    picture = drawn()
    circles, squares = picture.findall(f"{SVG}circle"), picture.findall(f"{SVG}rect[@class='m1']")
    words = [text.text for text in picture.findall(f"{SVG}text")]

    assert len(circles) == len(squares) == 3
    assert {"green", "black", "guests", "cups", "1", "10", "100"} <= set(words)
    ups = [float(str(circle.get("cy"))) for circle in circles]
    assert ups[0] - ups[1] == pytest.approx(ups[1] - ups[2], abs=0.2), "a power law is a straight line"
    assert len({square.get("y") for square in squares}) == 1, "what does not grow is level"


def test_it_has_colours_for_the_light_and_for_the_dark() -> None:
    text = draw(PICTURE, LINES, "told")

    assert "prefers-color-scheme: dark" in text
    assert re.search(r"\.c0 \{ stroke: #2f5f97; \}.*\.c0 \{ stroke: #7fb0e6; \}", text, re.DOTALL)


def test_nothing_is_drawn_outside_of_the_picture() -> None:
    lines = [Line(f"line {number}", ((10, 10.0**-number), (10_000, 3 * 10.0**-number))) for number in range(8)]
    for text in drawn(*lines).findall(f"{SVG}text"):
        x, y = float(text.get("x", "0")), float(text.get("y", "0"))
        assert 0 < x < plots.WIDTH
        assert 0 < y < plots.HEIGHT


def test_names_that_would_lie_upon_each_other_are_moved_apart() -> None:
    placed = apart([100.0, 101.0, 99.0, 300.0], 17, 0, 400)

    assert placed == [116.0, 133.0, 99.0, 300.0]
    assert apart([390.0, 400.0], 17, 0, 400) == [383.0, 400.0], "the last one stays inside"


def test_a_ledger_without_figures_for_a_picture_has_none(tmp_path: Path) -> None:
    ledgers.write("growth", "a thing", "make thing", [], folder=tmp_path, machine={})
    plots.write(tmp_path, tmp_path)

    assert not list(tmp_path.glob("*.svg"))


def test_a_picture_is_drawn_from_its_ledger(tmp_path: Path) -> None:
    kept = {"a look": {"tasks": [10, 100], "value": [0.001, 0.01]}}
    words = {"numbers-growth.svg": "how it grows"}
    ledgers.write("growth", "a thing", "make thing", [], folder=tmp_path, machine={}, series=kept, pictures=words)
    plots.write(tmp_path, tmp_path)
    text = (tmp_path / "numbers-growth.svg").read_text(encoding="utf-8")

    assert "how it grows" in text
    assert "a look" in text
    assert "10 ms" in text


def test_values_are_read_as_people_say_them() -> None:
    assert [seconds(0.0001), seconds(0.02), seconds(1.0)] == ["0.1 ms", "20 ms", "1 s"]
    assert megabytes(2000.0) == "2,000 MB"
