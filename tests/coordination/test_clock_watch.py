"""A clock on the wall that was set is noticed, and not forgotten before that is written down."""

from typing import Any, cast

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.engine.clock_watch import ClockWatch
from genba.domain.errors import UnavailableError


class Wound:
    """A clock on the wall that the test sets, and one that stands."""

    def __init__(self) -> None:
        self.hour = 10

    def now(self) -> str:
        return f"2026-03-01T{self.hour:02}:00:00.000000Z"

    def elapsed(self) -> float:
        return 100.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


class Written:
    """A board that is out of reach at first."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.away = True

    def clock_was_set(self, *reported: Any) -> None:
        if self.away:
            raise UnavailableError("the database cannot be reached")
        self.calls.append(reported)


async def test_a_jump_that_could_not_be_written_down_is_seen_again() -> None:
    board, times = Written(), Wound()
    watch = ClockWatch(cast(FleetBoard, board), 20, times)
    await watch.look()
    times.hour = 13

    with pytest.raises(UnavailableError):
        await watch.look()
    board.away = False
    await watch.look()
    await watch.look()

    assert board.calls == [("2026-03-01T13:00:20.000000Z", False)]
