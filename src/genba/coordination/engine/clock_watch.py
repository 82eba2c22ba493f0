"""Detects that the wall clock was set, by a person or because the machine slept.

Elapsed time is measured with a monotonic clock. Leases and pauses end at wall-clock times, which other
hosts can read; after the clock was set they no longer say how long is left, and are written again.
"""

import asyncio

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.workflow.rate_limits import Clocks, SystemClocks
from genba.domain.timestamps import later, parse_time

_A_LOT_SECONDS = 60.0
"""A clock that is put right by less is no trouble to anybody."""


class ClockWatch:
    """Compares the two clocks. Call it before a wall-clock time ends a lease or a pause."""

    def __init__(self, board: FleetBoard, lease_seconds: float, times: Clocks | None = None) -> None:
        self.board = board
        self.lease_seconds = lease_seconds
        self._times = times or SystemClocks()
        self._apart = self._gap()

    async def look(self) -> None:
        """When the clock was set since the last call, renew leases; when it was set back, end provider pauses too."""
        apart = self._gap()
        moved = apart - self._apart
        if abs(moved) >= _A_LOT_SECONDS:
            lease_until = later(self._times.now(), self.lease_seconds)
            await asyncio.to_thread(self.board.clock_was_set, lease_until, moved < 0)
        self._apart = apart  # not before: one that could not be written down is seen again

    def _gap(self) -> float:
        at = parse_time(self._times.now())
        return (at.timestamp() if at is not None else 0.0) - self._times.elapsed()
