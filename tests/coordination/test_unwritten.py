"""What ended here and could not be written down begins again, and nothing else does."""

from genba.coordination.unwritten import Unwritten


def test_what_ended_long_ago_and_is_still_held_for_being_carried_out_begins_again() -> None:
    unwritten = Unwritten()
    unwritten.ended("part", 10.0)

    assert unwritten.due({"part"}, (), 11.0) == [], "its outcome is being written"
    assert unwritten.due({"part"}, (), 14.0) == ["part"]


def test_what_was_written_down_or_runs_again_is_forgotten() -> None:
    unwritten = Unwritten()
    for name in ("written", "running"):
        unwritten.ended(name, 10.0)

    assert unwritten.due({"running"}, {"running"}, 14.0) == []
    assert not unwritten
