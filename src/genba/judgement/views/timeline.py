"""Who did what when: parts of sessions become stretches of time, and those become lanes. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from genba.domain.views.workers import Lane, SegmentMark, SpanFacts, WorkSpan

ALONE = "genba run"
"""The lane of the runs that no fleet carried out."""


def stretches(
    spans: Iterable[SpanFacts], marks: Iterable[SegmentMark], since: str, absent: frozenset[str] = frozenset()
) -> list[WorkSpan]:
    """The times in which each session was worked on. What began before `since` begins with it.

    Times are compared as text: the blackboard writes all of them alike.
    """
    by_run: dict[str, list[SegmentMark]] = {}
    for mark in marks:
        by_run.setdefault(mark.run, []).append(mark)
    found: list[WorkSpan] = []
    for span in spans:
        found += _of_parts(span, by_run.get(span.run, ()), since, absent) if span.in_parts else _whole(span, since)
    return found


def _whole(span: SpanFacts, since: str) -> list[WorkSpan]:
    """A run of its own: one stretch from its beginning to its end."""
    began = max(span.started_at, since)
    if span.status == "ended":
        return [_stretch(span, span.executor, span.part, began, span.ended_at, span.outcome)]
    if span.status == "waiting":
        return [_stretch(span, span.executor, span.part, began, span.heartbeat_at, "waiting")]
    return [_stretch(span, span.executor, span.part, began, "", "running")]


def _of_parts(span: SpanFacts, marks: Sequence[SegmentMark], since: str, absent: frozenset[str]) -> list[WorkSpan]:
    found: list[WorkSpan] = []
    begun: SegmentMark | None = None
    for mark in marks:
        if mark.began:
            if begun is not None:  # it went on elsewhere, and the end of this one was not recorded
                found.append(_stretch(span, begun.executor, begun.part, begun.at, mark.at, "suspended"))
            begun = mark
        elif begun is not None:
            found.append(_stretch(span, begun.executor, begun.part, begun.at, mark.at, mark.outcome))
            begun = None
        elif not found and span.started_at < since:
            found.append(_stretch(span, mark.executor, mark.part, since, mark.at, mark.outcome))
    if span.status == "running":
        began = begun.at if begun is not None else max(span.started_at, since)
        gone = span.executor in absent
        ended, outcome = (max(span.heartbeat_at, began), "suspended") if gone else ("", "running")
        found.append(_stretch(span, span.executor, span.part, began, ended, outcome))
    elif begun is not None:
        ended = max(span.ended_at or span.heartbeat_at, begun.at)
        found.append(_stretch(span, begun.executor, begun.part, begun.at, ended, span.outcome or span.status))
    return found


def _stretch(span: SpanFacts, executor: str, part: int, began: str, ended: str, outcome: str) -> WorkSpan:
    return WorkSpan(
        run=span.run,
        task=span.task,
        title=span.title,
        agent=span.agent,
        executor=executor or ALONE,
        purpose=span.purpose,
        part=part,
        began=began,
        ended=ended,
        outcome=outcome or "ended",
        cost_usd=span.cost_usd,
    )


def lanes(found: Iterable[WorkSpan], by: str, until: str) -> tuple[Lane, ...]:
    """By worker or by agent: its stretches, in as few rows as it had at one time."""
    named: dict[str, list[WorkSpan]] = {}
    for each in found:
        named.setdefault(each.agent if by == "agent" else each.executor, []).append(each)
    return tuple(_lane(name, named[name], until) for name in sorted(named, key=lambda name: (name == ALONE, name)))


def _lane(name: str, found: list[WorkSpan], until: str) -> Lane:
    free: list[str] = []
    placed: list[WorkSpan] = []
    for each in sorted(found, key=lambda stretch: (stretch.began, stretch.run, stretch.part)):
        ended = each.ended or until
        row = next((at for at, last in enumerate(free) if last <= each.began), len(free))
        free[row : row + 1] = [max(ended, each.began)]
        placed.append(msgspec.structs.replace(each, row=row))
    return Lane(name=name, rows=len(free), stretches=tuple(placed))
