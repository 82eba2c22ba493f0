"""What ended here and could not be written down begins again, and nothing else does."""

from genba.coordination.engine.stalled_workflows import StalledWorkflows


def test_what_ended_long_ago_and_is_still_held_for_being_carried_out_begins_again() -> None:
    unwritten = StalledWorkflows()
    unwritten.ended("part", 10.0)

    assert unwritten.due({"part"}, (), 11.0, 11.0) == [], "its outcome is being written"
    assert unwritten.due({"part"}, (), 14.0, 14.0) == ["part"]


def test_what_was_written_down_or_runs_again_is_forgotten() -> None:
    unwritten = StalledWorkflows()
    for name in ("written", "running"):
        unwritten.ended(name, 10.0)

    assert unwritten.due({"running"}, {"running"}, 14.0, 14.0) == []
    assert not unwritten


def test_what_ended_while_a_slow_database_was_asked_is_not_forgotten() -> None:
    unwritten = StalledWorkflows()
    unwritten.ended("held when it was asked", 12.0)
    unwritten.ended("begun and ended since", 12.0)

    assert unwritten.due({"held when it was asked"}, (), 10.0, 20.0) == []

    both = {"held when it was asked", "begun and ended since"}
    assert sorted(unwritten.due(both, (), 20.0, 20.0)) == sorted(both)


def test_what_was_taken_and_never_began_begins_again_after_a_while() -> None:
    unwritten = StalledWorkflows()
    unwritten.not_begun({"taken", "on its way"}, 10.0)
    unwritten.not_begun({"taken"}, 19.0)

    assert unwritten.due({"taken", "on its way"}, {"on its way"}, 15.0, 15.0) == []
    assert unwritten.due({"taken"}, (), 21.0, 21.0) == ["taken"]


def test_what_was_given_to_the_engine_again_is_not_given_twice_while_it_begins() -> None:
    unwritten = StalledWorkflows()
    unwritten.ended("part", 10.0)
    assert unwritten.due({"part"}, (), 14.0, 14.0) == ["part"]

    unwritten.begun_again(["part"], 14.0)

    assert unwritten.due({"part"}, (), 14.5, 14.5) == []
    assert unwritten.due({"part"}, (), 25.0, 25.0) == ["part"], "it has not begun for long"
