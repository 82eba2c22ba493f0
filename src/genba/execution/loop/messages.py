"""Messages of other agents, on their way into a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.domain.ports import Inbox
from genba.domain.sessions.loop_state import LoopState

if TYPE_CHECKING:
    from genba.domain.workflow.actions import Message


class Delivery:
    """The messages of other agents for the next prompt. A conversation that is resumed gets each of them once."""

    def __init__(self, inbox: Inbox | None, run: str) -> None:
        self._inbox = inbox
        self._run = run

    async def due(self, state: LoopState) -> tuple[Message, ...]:
        if self._inbox is None:
            return ()
        found = await self._inbox.open(self._run)
        return found if is_new(state) else tuple(one for one in found if one.status == "pending")

    async def delivered(self, state: LoopState, messages: tuple[Message, ...]) -> None:
        """Record that the agent has them and the handovers of its task. Until then it gets them again."""
        news = state.iterations == 0 or any(one.status == "pending" for one in messages)
        if self._inbox is not None and news:
            await self._inbox.deliver(self._run, messages[-1].id if messages else 0)


def is_new(state: LoopState) -> bool:
    """True for the first question of a conversation."""
    return state.iterations == 0 or state.session_id is None
