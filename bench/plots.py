"""The pictures of the page of numbers: lines on two logarithmic axes, as SVG that needs nothing but a browser.

Law: a picture is a function of its ledger and of nothing else, so a test can see that the two agree.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bench.ledgers import FOLDER, ROOT, Ledger, read

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 900, 460
LEFT, RIGHT, TOP, BOTTOM = 78, 316, 70, 56
LABEL_GAP = 17.0
LIGHT = ("#2f5f97", "#ad5009", "#1f7a4d", "#7a4fb0", "#b3261e", "#0b7285", "#7a6400", "#566273")
DARK = ("#7fb0e6", "#f0a35e", "#62c993", "#c0a0ee", "#f58c84", "#5fc9d6", "#d8c95a", "#9aa7b8")
_STYLE = """\
    svg { color-scheme: light dark; font-family: system-ui, -apple-system, "Segoe UI", sans-serif; font-size: 13px; }
    .ground { fill: #ffffff; } .text { fill: #1b2430; } .quiet { fill: #566273; } .grid { stroke: #e4e7ec; }
    .axis { stroke: #98a2b3; } .title { font-size: 16px; font-weight: 600; } .line { fill: none; stroke-width: 2.2; }
    .guide { stroke: #98a2b3; stroke-dasharray: 3 4; fill: none; }
    .lead { stroke-width: 1; opacity: .55; fill: none; }"""
_STYLE_DARK = """\
      .ground { fill: #171e27; } .text { fill: #e6ebf2; } .quiet { fill: #9aa7b8; } .grid { stroke: #252f3b; }
      .axis { stroke: #566273; } .guide { stroke: #66758a; }"""


@dataclass(frozen=True)
class Line:
    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Picture:
    part: str
    """The ledger that it is drawn from,"""
    field: str
    """and the field in it that has the lines."""
    title: str
    across: str
    """What the horizontal axis counts."""
    up: str
    shown: Callable[[float], str]
    """A value of the vertical axis, as it is read."""
    guide: str = ""
    """What a line with the slope of one means; empty: it is not drawn."""


def pictures(found: Mapping[str, Ledger]) -> dict[str, str]:
    """Every picture that the ledgers have the figures for, by the name of its file."""
    drawn = {}
    for name, picture in PICTURES.items():
        more = found[picture.part].more if picture.part in found else {}
        if picture.field in more:
            lines = [_line(label, kept) for label, kept in more[picture.field].items()]
            drawn[name] = draw(picture, lines, more["pictures"][name])
    return drawn


def write(folder: Path = FOLDER, images: Path = IMAGES) -> None:
    """The pictures anew. What is right already is not touched."""
    for name, text in pictures(read(folder)).items():
        images.mkdir(parents=True, exist_ok=True)
        file = images / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def draw(picture: Picture, lines: Sequence[Line], told: str) -> str:
    """The picture; `told` is the same in words, for who does not see it. The first line has the first colour."""
    place = _Place(lines)
    label = escape(picture.title)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title told">',
        f'  <title id="title">{label}</title>',
        f'  <desc id="told">{escape(told)}</desc>',
        f"  <style>\n{_STYLE}\n{_colours(LIGHT)}\n    @media (prefers-color-scheme: dark) {{\n{_STYLE_DARK}\n"
        f"{_colours(DARK)}\n    }}\n  </style>",
        f'  <rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'  <text class="text title" x="20" y="30">{label}</text>',
        f'  <text class="quiet" x="20" y="50">{escape(picture.up)}</text>',
        *_axes(picture, place),
        *_guide(picture.guide, place),
        *_drawn(lines, place),
    ]
    return "\n".join([*parts, "</svg>", ""])


# ── where things are ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Place:
    """Where a point is in the picture."""

    def __init__(self, lines: Sequence[Line]) -> None:
        across = [x for line in lines for x, _ in line.points]
        up = [y for line in lines for _, y in line.points]
        self.columns = sorted(set(across))
        self.left, self.right = min(across), max(across)
        self.low, self.high = _round_below(min(up)), _round_above(max(up))

    def x(self, value: float) -> float:
        share = math.log(value / self.left) / math.log(self.right / self.left)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def rungs(self) -> list[float]:
        """Where the vertical axis is marked: at the powers of ten; where these are few, between them too."""
        powers = range(math.floor(math.log10(self.low)) - 1, math.ceil(math.log10(self.high)) + 1)
        wide = math.log10(self.high / self.low) > 2.5
        found = [step * 10.0**power for power in powers for step in ((1,) if wide else (1, 2, 5))]
        return [value for value in found if self.low * 0.999 <= value <= self.high * 1.001]


def _round_below(value: float) -> float:
    return max(
        step * 10.0**power for power in _around(value) for step in (1, 2, 5) if step * 10.0**power <= value * 1.001
    )


def _round_above(value: float) -> float:
    return min(
        step * 10.0**power for power in _around(value) for step in (1, 2, 5) if step * 10.0**power >= value * 0.999
    )


def _around(value: float) -> range:
    power = math.floor(math.log10(value))
    return range(power - 1, power + 2)


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places as near as can be to the wanted ones, in the same order, none nearer to another than the gap."""
    order = sorted(range(len(wanted)), key=lambda each: wanted[each])
    placed = [0.0] * len(wanted)
    above = low - gap
    for each in order:
        above = placed[each] = max(wanted[each], above + gap)
    below = high + gap
    for each in reversed(order):  # whoever was pushed out at the end comes back
        below = placed[each] = min(placed[each], below - gap)
    return placed


# ── what is drawn ────────────────────────────────────────────────────────────────────────────────────────────────────


def _axes(picture: Picture, place: _Place) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in place.rungs():
        y = place.y(value)
        parts.append(f'  <line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        shown = escape(picture.shown(value))
        parts.append(f'  <text class="quiet" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>')
    for value in place.columns:
        x = place.x(value)
        parts.append(f'  <line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 5}"/>')
        parts.append(f'  <text class="quiet" x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{value:,.0f}</text>')
    middle = (LEFT + right) / 2
    parts.append(f'  <line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    across = escape(picture.across)
    parts.append(f'  <text class="quiet" x="{middle:.1f}" y="{HEIGHT - 14}" text-anchor="middle">{across}</text>')
    return parts


def _guide(words: str, place: _Place) -> list[str]:
    """A line that grows as fast as what is counted, through the middle of the picture."""
    if not words:
        return []
    middle = math.sqrt(place.low * place.high)
    rate = middle / math.sqrt(place.left * place.right)
    start, end = max(place.left, place.low / rate), min(place.right, place.high / rate)
    (x1, y1), (x2, y2) = ((place.x(x), place.y(x * rate)) for x in (start, end))
    right = WIDTH - RIGHT
    return [
        f'  <path class="guide" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>',
        f'  <text class="quiet" x="{right}" y="50" text-anchor="end">┄ {escape(words)}</text>',
    ]


def _drawn(lines: Sequence[Line], place: _Place) -> list[str]:
    parts = []
    ends = [(place.x(line.points[-1][0]), place.y(line.points[-1][1])) for line in lines]
    labels = apart([y for _, y in ends], LABEL_GAP, TOP, HEIGHT - BOTTOM)
    for number, line in enumerate(lines):
        colour = f"c{number % len(LIGHT)}"
        way = "L".join(f"{place.x(x):.1f} {place.y(y):.1f}" for x, y in line.points)
        parts.append(f'  <path class="line {colour}" d="M{way}"/>')
        parts += [f"  {_mark(number, place.x(x), place.y(y), colour)}" for x, y in line.points]
        (x, y), label = ends[number], labels[number]
        parts.append(f'  <path class="lead {colour}" d="M{x + 6:.1f} {y:.1f}L{x + 20:.1f} {label:.1f}"/>')
        name = escape(line.name)
        parts.append(f'  <text class="t{number % len(LIGHT)}" x="{x + 24:.1f}" y="{label + 4.5:.1f}">{name}</text>')
    return parts


def _mark(number: int, x: float, y: float, colour: str) -> str:
    """A shape for each line, so that nobody needs its colour to know it."""
    mark = f'class="m{colour[1:]}"'
    match number % 4:
        case 0:
            return f'<circle {mark} cx="{x:.1f}" cy="{y:.1f}" r="3.6"/>'
        case 1:
            return f'<rect {mark} x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4"/>'
        case 2:
            return f'<path {mark} d="M{x:.1f} {y - 4.4:.1f}l4.2 7.6h-8.4z"/>'
        case _:
            return f'<path {mark} d="M{x:.1f} {y - 4.6:.1f}l4.6 4.6l-4.6 4.6l-4.6 -4.6z"/>'


def _colours(colours: Sequence[str]) -> str:
    return "\n".join(
        f"    .c{number} {{ stroke: {colour}; }} .m{number}, .t{number} {{ fill: {colour}; }}"
        for number, colour in enumerate(colours)
    )


def _line(name: str, kept: Mapping[str, Sequence[float]]) -> Line:
    (across,) = (values for field, values in kept.items() if field != "value")
    return Line(name, tuple(zip(across, kept["value"], strict=True)))


# ── the pictures there are ───────────────────────────────────────────────────────────────────────────────────────────


def seconds(value: float) -> str:
    return f"{value:g} s" if value >= 1 else f"{value * 1000:g} ms"


def megabytes(value: float) -> str:
    return f"{value:,g} MB"


def number(value: float) -> str:
    return f"{value:,g}"


PICTURES = {
    "numbers-growth.svg": Picture(
        part="growth",
        field="series",
        title="From 10 to 10,000 tasks",
        across="tasks on the blackboard",
        up="processor time",
        shown=seconds,
        guide="twice the tasks, twice the cost",
    ),
    "numbers-workers.svg": Picture(
        part="workers",
        field="series",
        title="From 1 to 100 workers, with agents that sleep for a second",
        across="workers",
        up="tasks a second",
        shown=number,
    ),
    "numbers-workers-cost.svg": Picture(
        part="workers",
        field="cost",
        title="What one task costs, from 1 to 100 workers",
        across="workers",
        up="processor time of one task",
        shown=seconds,
    ),
    "numbers-memory.svg": Picture(
        part="memory",
        field="series",
        title="Memory of a fleet, from 1 to 100 agents at work",
        across="agents at work",
        up="memory (PSS)",
        shown=megabytes,
    ),
}
"""By file."""

if __name__ == "__main__":
    write()
