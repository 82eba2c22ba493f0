"""The blackboard as one segment of a fleet session sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genba.domain.fleet.records import Review
    from genba.domain.goals.verification import Verification
    from genba.domain.ports import TaskLedger
    from genba.domain.sessions.session import Briefing, Died, SessionEnd, SessionStart
    from genba.domain.tasks.task import StatusChange, Task


class SegmentLedger:
    """The blackboard as one segment sees it. The executor writes down how the segment ended."""

    def __init__(self, ledger: TaskLedger) -> None:
        self.ledger = ledger

    async def look(self, number: int) -> Task:
        return await self.ledger.look(number)

    async def begin(self, number: int, session: SessionStart, died: Died | None = None) -> Briefing:
        return await self.ledger.begin(number, session, died)

    async def record(self, number: int, run: str, verification: Verification) -> None:
        await self.ledger.record(number, run, verification)

    async def move(self, number: int, change: StatusChange) -> Task:
        return await self.ledger.move(number, change)

    async def ask_review(self, number: int, commit: str, run: str, rounds: int) -> Review:
        return await self.ledger.ask_review(number, commit, run, rounds)

    async def end(self, session: SessionEnd) -> None:
        """See the class."""
