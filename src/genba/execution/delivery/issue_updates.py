"""What a run reads of its issue, and what it does to it. Each change is recorded first and safe to repeat."""

import msgspec

from genba.definitions.agent.completion import ExternalState, walk
from genba.definitions.agent.definition import AgentDefinition
from genba.domain.errors import StateConflictError
from genba.domain.events import EffectDone, EffectPlanned, Notice
from genba.domain.sessions.loop_state import ClosureChoice
from genba.domain.sessions.outcomes import ClosureAction, Outcome
from genba.domain.tracker.issues import Issue, IssueChange
from genba.execution.session_context import SessionContext
from genba.judgement.loop.closure import change_on_block, change_on_completion, change_on_start, change_on_stop


class IssueKeeper:
    """Keeps the issue of one run; without an issue it does nothing."""

    def __init__(self, definition: AgentDefinition, context: SessionContext, number: int | None) -> None:
        self.settings = definition.file.runner.integrations.github
        self.language = definition.language
        self.context = context
        self.number = number
        follows = any(isinstance(part, ExternalState) for part in walk(definition.completion))
        self.needs_tracker = self.settings.enabled or follows

    async def read(self, resumed: bool) -> tuple[Issue | None, tuple[Issue, ...]]:
        """The issue, and the issues that hold the requirements. Raises NotFoundError for an unknown one."""
        if self.number is None:
            return None, ()
        issue = await self.context.tracker.tracker.read(self.number)
        if issue.closed and self.needs_tracker and not resumed:
            raise StateConflictError(f"issue #{self.number} is closed", hint="open it again, then start the run")
        label = self.settings.labels.requirements
        return issue, await self.context.tracker.tracker.labelled(label) if label else ()

    @property
    def starts(self) -> bool:
        """Whether anything is done to the issue when the work on it begins."""
        return self.number is not None and not change_on_start(self.settings).empty

    async def start(self) -> None:
        await self._change(change_on_start(self.settings), "start")

    async def end(self, outcome: Outcome, reason: str) -> None:
        """A run that did not complete works on its issue no more; a blocked one says so."""
        if outcome is Outcome.BLOCKED:
            await self._change(change_on_block(self.settings, reason, self.language), "blocked")
        elif outcome is not Outcome.COMPLETED:
            await self._change(change_on_stop(self.settings), "stopped")

    async def complete(
        self, choice: ClosureChoice, arrived: bool, branch: str, action: ClosureAction | None = None
    ) -> None:
        """Carry out the closure; an issue whose work did not arrive on the base stays open."""
        change = change_on_completion(self.settings, choice, action)
        if change.close and not arrived:
            message = f"issue #{self.number} stays open: its work is on {branch} and not merged yet"
            self.context.journal.emit(Notice(message=message))
            return
        await self._change(change, "closure")

    async def _change(self, change: IssueChange, why: str) -> None:
        if change.empty or self.number is None:
            return
        detail = {"issue": self.number, "why": why, **msgspec.to_builtins(change)}
        self.context.journal.emit(EffectPlanned(effect="issue", detail=detail))
        await self.context.tracker.tracker.change(self.number, change)
        self.context.journal.emit(EffectDone(effect="issue", detail=detail))
