"""The messages of the blackboard as one run sees them."""

import asyncio

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow import messages
from genba.domain.workflow.actions import Message


class BlackboardInbox:
    """Reads and writes in a thread, so that nothing waits for the database but the caller."""

    def __init__(self, board: Blackboard) -> None:
        self.store = board.store

    async def open(self, run: str) -> tuple[Message, ...]:
        return await asyncio.to_thread(self.store.read, lambda tx: messages.open_messages(tx, run))

    async def deliver(self, run: str, last: int) -> None:
        await asyncio.to_thread(self.store.write, lambda tx: messages.deliver(tx, run, last))
