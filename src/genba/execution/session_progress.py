"""How far a session is: written by the session, read by the fleet and by the calls of its agent while it runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from genba.domain.errors import StateConflictError
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.workspaces import Workspace
from genba.execution.loop.prompts import gap_section, handover_section
from genba.execution.run_values import RunPlan

if TYPE_CHECKING:
    from genba.execution.verification.session_verification import Proof, Proved


class RunningLoop(Protocol):
    """A loop whose agent works now."""

    def spent_so_far(self, state: LoopState) -> LoopState:
        """The state with what the iteration that is under way has cost."""
        ...

    async def is_over(self) -> bool:
        """True when the session has a result, however its instance ends."""
        ...


class SessionProgress:
    """How far a session is."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.state = plan.state or LoopState(step=plan.definition.entry_step(plan.mode))
        self.workspace: Workspace | None = None
        """Where it works; its base may have moved. None until it is open."""
        self.proof: Proof | None = None
        """Verifies the work, where a task or the Definition of Done asks for it."""
        self.conflicts = plan.conflicts
        """Paths that were in conflict: work that still has the markers in them is not done."""
        self.loop: RunningLoop | None = None
        self.stopped = False
        """True when a person stopped it, and it can be resumed."""
        self.handed_over = False
        """True when its work is verified, and the merge queue brings it to its base."""
        self.claiming = asyncio.Lock()
        """Held while a claim is verified: an agent may claim to be done while it lives."""

    @property
    def kept_workspace(self) -> Workspace | None:
        """The workspace of this session, or the one that an earlier process opened for it."""
        return self.workspace or self.plan.workspace

    def reached(self, state: LoopState) -> None:
        self.state = state

    def spent_so_far(self) -> LoopState:
        return self.state if self.loop is None else self.loop.spent_so_far(self.state)

    async def is_over(self) -> bool:
        return self.loop is not None and await self.loop.is_over()

    async def claim(self) -> Proved:
        """Verify the work as it is now, for an agent that claims to be done. Safe to repeat."""
        if self.workspace is None or self.proof is None:
            raise StateConflictError("there is nothing that could be verified yet")
        return await self.proof.prove(self.workspace, self.conflicts)

    def notes(self) -> str:
        """What an agent must know first: what was tried before, and what the work came back with."""
        language, handover = self.plan.definition.language, self.plan.handover
        sections = [handover_section(handover, language)] if handover else []
        sections += [gap_section(self.state.gap, language)] if self.state.gap is not None else []
        return "\n\n".join(sections)
