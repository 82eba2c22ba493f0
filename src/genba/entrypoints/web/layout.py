"""Where things stand on a drawing: bars on a line of time, and the steps of an agent with the ways between them.

Widths of time are parts of a hundred, so that a drawing is as wide as its page. The steps have places in pixels.
"""

from datetime import UTC, datetime, timedelta

import msgspec

from genba.domain.timestamps import parse_time
from genba.domain.views.agents import AgentView
from genba.domain.views.workers import Lane, Timeline, WorkSpan

ROW = 22
_LEAST_WIDTH = 0.45
_WIDE_ENOUGH = 4.0
"""So many hundredths a bar has to have for a word to be in it."""
_TICKS = (
    (timedelta(hours=1), timedelta(minutes=10), "%H:%M"),
    (timedelta(hours=24), timedelta(hours=3), "%H:%M"),
    (timedelta(days=7), timedelta(days=1), "%b %d"),
)
MARKS = {"completed": "●", "failed": "✗", "aborted": "✗", "running": "▶", "waiting": "…", "suspended": "■"}
_BOX = (168, 46)
_STRIDE = (250, 96)
_MARGIN = 18
_END_SIZE = 14


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    x: float
    label: str


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of a session."""

    stretch: WorkSpan
    x: float
    width: float
    y: int
    seconds: float
    mark: str
    wide: bool
    """Whether a word fits into it."""


class DrawnLane(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    height: int
    bars: tuple[Bar, ...]


def ticks(timeline: Timeline) -> tuple[Tick, ...]:
    since, until = _ends(timeline)
    size = until - since
    step, form = next(((step, form) for reach, step, form in _TICKS if size <= reach * 1.01), _TICKS[-1][1:])
    seconds = step.total_seconds()
    at = datetime.fromtimestamp((since.timestamp() // seconds + 1) * seconds, UTC)
    found = []
    while at < until:
        found.append(Tick(x=round(100 * ((at - since) / size), 3), label=at.strftime(form)))
        at += step
    return tuple(found)


def drawn(timeline: Timeline) -> tuple[DrawnLane, ...]:
    return tuple(_lane(lane, *_ends(timeline)) for lane in timeline.lanes)


def _lane(lane: Lane, since: datetime, until: datetime) -> DrawnLane:
    size = (until - since).total_seconds()
    bars = []
    for stretch in lane.stretches:
        began = max(parse_time(stretch.began) or since, since)
        ended = min(parse_time(stretch.ended) or until, until)
        seconds = max(0.0, (ended - began).total_seconds())
        width = max(100 * seconds / size, _LEAST_WIDTH)
        x = min(100 * (began - since).total_seconds() / size, 100 - _LEAST_WIDTH)
        bars.append(
            Bar(
                stretch=stretch,
                x=round(x, 3),
                width=round(min(width, 100 - x), 3),
                y=stretch.row * ROW + 2,
                seconds=seconds,
                mark=MARKS.get(stretch.outcome, "○"),
                wide=width >= _WIDE_ENOUGH,
            )
        )
    return DrawnLane(name=lane.name, height=lane.rows * ROW + 2, bars=tuple(bars))


def _ends(timeline: Timeline) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(timeline.since), datetime.fromisoformat(timeline.until)


class DrawnStep(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: str
    entry: bool
    repeats: bool
    x: int
    y: int


class DrawnWay(msgspec.Struct, frozen=True, kw_only=True):
    """An arrow, and the intents that take it."""

    path: str
    words: str
    x: float
    y: float
    back: bool


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """The step graph of an agent."""

    width: int
    height: int
    box: tuple[int, int] = _BOX
    steps: tuple[DrawnStep, ...] = ()
    ways: tuple[DrawnWay, ...] = ()
    end: tuple[int, int] | None = None


def flow(picture: AgentView) -> Flow | None:
    """What is drawn of the steps; ways that lead back go below the boxes."""
    if not picture.steps:
        return None
    at = {step.id: (_MARGIN + step.x * _STRIDE[0], _MARGIN + step.y * _STRIDE[1]) for step in picture.steps}
    end = None
    if picture.end is not None:
        end = (_MARGIN + picture.end[0] * _STRIDE[0] + _END_SIZE, _MARGIN + picture.end[1] * _STRIDE[1] + _BOX[1] // 2)
    lowest = max(y for _, y in at.values()) + _BOX[1]
    ways: list[DrawnWay] = []
    below = 0
    for step in picture.steps:
        for way in step.ways:
            if way.target == step.id or (way.target and way.target not in at):
                continue
            goal = at[way.target] if way.target else None
            words = ", ".join(way.intents)
            if goal is None and end is not None:
                ways.append(_forward(at[step.id], (end[0] - _END_SIZE, end[1]), words))
            elif goal is not None and goal[0] > at[step.id][0]:
                ways.append(_forward(at[step.id], (goal[0], goal[1] + _BOX[1] // 2), words))
            elif goal is not None:
                below += 1
                ways.append(_back(at[step.id], goal, lowest + 20 * below, words))
    steps = tuple(
        DrawnStep(
            id=step.id,
            kind=step.kind,
            entry=step.entry,
            repeats=any(way.target == step.id for way in step.ways),
            x=at[step.id][0],
            y=at[step.id][1],
        )
        for step in picture.steps
    )
    rightmost = max([x + _BOX[0] for x, _ in at.values()] + ([end[0] + _END_SIZE] if end else []))
    height = lowest + 20 * below + (30 if below else _MARGIN)
    return Flow(width=rightmost + _MARGIN, height=height, steps=steps, ways=tuple(ways), end=end)


def _forward(start: tuple[int, int], goal: tuple[int, int], words: str) -> DrawnWay:
    x1, y1 = start[0] + _BOX[0], start[1] + _BOX[1] // 2
    x2, y2 = goal[0] - 3, goal[1]
    bend = max(24, (x2 - x1) // 2)
    return DrawnWay(
        path=f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}",
        words=words,
        x=(x1 + x2) / 2,
        y=(y1 + y2) / 2 - 6,
        back=False,
    )


def _back(start: tuple[int, int], goal: tuple[int, int], depth: int, words: str) -> DrawnWay:
    """From the bottom of a box down, along, and up to the bottom of an earlier one."""
    x1, y1 = start[0] + _BOX[0] // 2 - 14, start[1] + _BOX[1]
    x2, y2 = goal[0] + _BOX[0] // 2 + 14, goal[1] + _BOX[1] + 3
    return DrawnWay(
        path=f"M{x1} {y1}C{x1} {depth + 8} {x2} {depth + 8} {x2} {y2}",
        words=words,
        x=(x1 + x2) / 2,
        y=depth + 2,
        back=True,
    )
