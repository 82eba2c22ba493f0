"""What a look at a large field costs: counted in calls, which no busy machine changes."""

import sys
from types import FrameType

from genba.domain.fleet.records import FleetSnapshot, ProviderPause
from genba.judgement.scheduling.actions import Wait
from tests.judgement.fleets import decide, field, none, started, task

LATER = "2026-03-01T12:05:00.000000Z"


def _calls(here: FleetSnapshot) -> int:
    """The calls of one look."""
    made = 0

    def count(_frame: FrameType, event: str, _about: object) -> None:
        nonlocal made
        made += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        decide(here)
    finally:
        sys.setprofile(before)
    return made


def _asked_to_wait(count: int) -> FleetSnapshot:
    pause = ProviderPause(provider="north", until=LATER, reason="429")
    return field(*(task(number) for number in range(1, count + 1)), pauses=(pause,))


def test_twice_the_tasks_are_twice_the_work_of_a_look() -> None:
    assert _calls(_asked_to_wait(800)) < 2.1 * _calls(_asked_to_wait(400))


def test_a_task_that_must_wait_is_not_compared_with_all_others_first() -> None:
    more = _calls(_asked_to_wait(800)) - _calls(_asked_to_wait(400))
    assert more / 400 < 110


def test_a_task_whose_provider_is_paused_stands_in_the_way_of_no_other() -> None:
    pause = ProviderPause(provider="north", until=LATER, reason="429")
    waiting = [task(number, scope=("src/**",)) for number in range(1, 101)]
    here = field(*waiting, task(101, assignee="reviewer", scope=("src/**",)), pauses=(pause,))
    found = decide(here)
    assert started(found) == [101]
    assert sum(isinstance(move, Wait) and move.task in range(1, 101) for move in found) == 100
    assert not none(Wait, found)
