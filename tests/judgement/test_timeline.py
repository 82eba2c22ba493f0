"""Who did what when: parts of sessions as stretches of time, in lanes."""

import msgspec

from genba.domain.fleet.records import Purpose
from genba.domain.views.workers import SegmentMark, SpanFacts, WorkSpan
from genba.judgement.views.timeline import ALONE, lanes, stretches

SINCE = "2026-03-01T10:00:00Z"


def span(run: str = "r1", **more: object) -> SpanFacts:
    facts = {
        "run": run,
        "task": 1,
        "title": "Make tea",
        "agent": "worker",
        "purpose": Purpose.WORK,
        "status": "ended",
        "executor": "laptop",
        "host": "h",
        "outcome": "completed",
        "started_at": "2026-03-01T11:00:00Z",
        "heartbeat_at": "2026-03-01T11:30:00Z",
        "ended_at": "2026-03-01T12:00:00Z",
        "part": 1,
        "in_parts": True,
        **more,
    }
    return msgspec.convert(facts, SpanFacts)


def mark(
    at: str, began: bool, part: int = 1, run: str = "r1", executor: str = "laptop", outcome: str = ""
) -> SegmentMark:
    time = f"2026-03-01T{at}:00Z"
    return SegmentMark(run=run, part=part, began=began, executor=executor, at=time, outcome=outcome)


def times(found: list[WorkSpan]) -> list[tuple[str, str, str, str]]:
    return [(each.executor, each.began[11:16], each.ended[11:16], each.outcome) for each in found]


def test_a_session_that_waits_holds_no_worker_in_between() -> None:
    marks = [
        mark("11:00", True),
        mark("11:10", False, outcome="waiting"),
        mark("11:50", True, 2),
        mark("12:00", False, 2, outcome="completed"),
    ]
    found = stretches([span(part=2)], marks, SINCE)
    assert times(found) == [("laptop", "11:00", "11:10", "waiting"), ("laptop", "11:50", "12:00", "completed")]


def test_what_began_before_the_picture_begins_with_it() -> None:
    old = span(started_at="2026-03-01T08:00:00Z")
    assert times(stretches([old], [mark("11:10", False, outcome="failed")], SINCE)) == [
        ("laptop", "10:00", "11:10", "failed")
    ]
    running = span(started_at="2026-03-01T08:00:00Z", status="running", outcome="", ended_at="")
    assert times(stretches([running], [], SINCE)) == [("laptop", "10:00", "", "running")]


def test_a_part_whose_executor_is_gone_ends_with_its_last_sign_of_life() -> None:
    lost = span(status="running", outcome="", ended_at="")
    found = stretches([lost], [mark("11:00", True)], SINCE, frozenset({"laptop"}))
    assert times(found) == [("laptop", "11:00", "11:30", "suspended")]


def test_a_part_that_went_on_elsewhere_is_two_stretches() -> None:
    marks = [
        mark("11:00", True),
        mark("11:20", True, 2, executor="build"),
        mark("11:40", False, 2, outcome="completed"),
    ]
    found = stretches([span(part=2)], marks, SINCE)
    assert times(found) == [("laptop", "11:00", "11:20", "suspended"), ("build", "11:20", "11:40", "completed")]


def test_a_run_of_its_own_is_one_stretch() -> None:
    alone = span(executor="", in_parts=False, outcome="failed")
    assert times(stretches([alone], [], SINCE)) == [(ALONE, "11:00", "12:00", "failed")]


def test_a_lane_has_as_many_rows_as_there_was_work_at_one_time() -> None:
    marks = [
        mark("11:00", True),
        mark("11:10", True, run="r2"),
        mark("11:20", False, outcome="completed"),
        mark("11:20", True, run="r3"),
        mark("11:30", False, run="r2", outcome="failed"),
        mark("11:40", False, run="r3", outcome="completed"),
    ]
    found = stretches([span(), span("r2", agent="other"), span("r3")], marks, SINCE)
    (lane,) = lanes(found, "worker", "2026-03-01T13:00:00Z")
    assert (lane.name, lane.rows) == ("laptop", 2)
    assert [(each.run, each.row) for each in lane.stretches] == [("r1", 0), ("r2", 1), ("r3", 0)]
    assert [lane.name for lane in lanes(found, "agent", "2026-03-01T13:00:00Z")] == ["other", "worker"]
