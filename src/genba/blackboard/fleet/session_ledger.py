"""The blackboard as one run sees it."""

import asyncio
from collections.abc import Callable

from genba.blackboard.tasks.board import Blackboard
from genba.domain.fleet.records import Review
from genba.domain.goals.verification import Verification
from genba.domain.sessions.session import Briefing, Died, SessionEnd, SessionStart
from genba.domain.tasks.task import StatusChange, Task


class SessionRecorder:
    """Writes to the blackboard in a thread, so that nothing waits for the database but the caller."""

    def __init__(self, board: Blackboard, words: Callable[[str], str] = str) -> None:
        self.board = board
        self.words = words
        """Puts a sentence of Genba into the language of the project."""

    async def look(self, number: int) -> Task:
        return await asyncio.to_thread(self.board.get, number)

    async def begin(self, number: int, session: SessionStart, died: Died | None = None) -> Briefing:
        return await asyncio.to_thread(self.board.begin_session, number, session, died)

    async def record(self, number: int, run: str, verification: Verification) -> None:
        await asyncio.to_thread(self.board.record_verification, number, run, verification)

    async def move(self, number: int, change: StatusChange) -> Task:
        return await asyncio.to_thread(self.board.change_status, number, change)

    async def ask_review(self, number: int, commit: str, run: str, rounds: int) -> Review:
        return await asyncio.to_thread(self.board.ask_review, number, commit, run, rounds, self.words)

    async def end(self, session: SessionEnd) -> None:
        await asyncio.to_thread(self.board.end_session, session)
