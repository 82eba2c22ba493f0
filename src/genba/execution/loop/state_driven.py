"""Agents that ask for their next action: one iteration is one instance, from its first call to its end.

Law: what the instance writes is not read at all. When it has ended, the blackboard says how far it came; who ended
without a result has failed, whatever its exit code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import DiskFullError, GenbaError
from genba.domain.events import IterationFinished, IterationStarted
from genba.domain.ports import AgentInstance, Steps, Workflow
from genba.domain.sessions.evidence import TreeFacts
from genba.domain.sessions.loop_state import Failure, LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.sessions.trailers import trailers
from genba.domain.sessions.workspaces import Workspace
from genba.domain.workflow.actions import Message, SessionResult
from genba.execution.loop.ask import Asking, OutOfTime
from genba.execution.loop.messages import Delivery
from genba.execution.loop.prompts import Prompts, ResolvedPrompt
from genba.execution.session_context import SessionContext
from genba.judgement.language.sentences import in_language
from genba.judgement.language.wording import say
from genba.judgement.loop.budgets import exhausted
from genba.judgement.workflow.instructions import control_prompt

if TYPE_CHECKING:
    from genba.execution.session_progress import SessionProgress

_RESULT = "result"
"""The check of an instance that ended without one."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance needs to know of itself to ask."""

    language: str
    agent_id: str
    project_id: str


class WorkflowContext(msgspec.Struct, frozen=True, kw_only=True):
    """Answers the agent of a session that asks for its next action."""

    runs: Workflow
    control: Control

    def loop(
        self,
        context: SessionContext,
        progress: SessionProgress,
        workspace: Workspace,
        prompts: Prompts,
        instance: AgentInstance,
    ) -> StateDrivenLoop:
        return StateDrivenLoop(self, context, progress, workspace, prompts, instance)


class StateDrivenLoop:
    """The instances of one session, one after the other."""

    def __init__(
        self,
        workflow: WorkflowContext,
        context: SessionContext,
        progress: SessionProgress,
        workspace: Workspace,
        prompts: Prompts,
        instance: AgentInstance,
    ) -> None:
        self.definition = progress.plan.definition
        self.workflow = workflow
        self.context = context
        self.workspace = workspace
        self.prompts = prompts
        self.asking = Asking(self.definition, context, instance, progress.plan.issue, is_over=self.is_over)
        self.claiming = progress.claiming
        """Held while a claim is verified: the result of the session is read after it."""
        self.proof = progress.proof
        """Verifies its claims; a manager has none."""
        self.delivery = Delivery(context.inbox, workspace.run)

    async def run(self, state: LoopState, steps: Steps, reached: Callable[[LoopState], None]) -> LoopState:
        """Iterate until the end; `reached` is called with each state."""
        while not state.ended:
            state = await steps.run("iterate", partial(self.advance, state), LoopState)
            reached(state)
        return state

    async def advance(self, state: LoopState) -> LoopState:
        """One instance."""
        spent = exhausted(state, self.definition)
        if spent is not None:
            return state.end(Outcome.BUDGET_EXHAUSTED, spent.reason)
        began = self.context.clock.elapsed()
        asks, failed = 1, None
        try:
            messages = await self.delivery.due(state)
            prompt = self._prompt(state, messages)
            self._announce(state, prompt)
            await self.delivery.delivered(state, messages)  # each instance gets all of them
            asks = (await self.asking.put(state, prompt)).asks
        except OutOfTime as finding:
            failed = (Outcome.BUDGET_EXHAUSTED, str(finding), "")
        except DiskFullError:
            raise
        except GenbaError as error:
            failed = (Outcome.FAILED, error.message, error.hint)
        standing = await self._standing()
        facts = await self._left_behind(state, standing)
        seconds = self.context.clock.elapsed() - began
        after = self._after(state, asks, seconds)
        after = self._judged(after, standing, facts, failed)
        self._settle(after, facts, seconds)
        return after

    def spent_so_far(self, state: LoopState) -> LoopState:
        """The same state with what the life that is under way has cost."""
        usage, seconds = state.usage.plus(self.asking.spent), state.seconds + self.asking.elapsed()
        return msgspec.structs.replace(state, usage=usage, seconds=seconds)

    def _prompt(self, state: LoopState, messages: tuple[Message, ...]) -> ResolvedPrompt:
        """How to ask, and who it is; the rest is in the answers."""
        control = self.workflow.control
        system, sections = self.prompts.for_workflow(state, messages)
        text = control_prompt(control.language, control.agent_id, control.project_id, system)
        if state.previous_summary:
            sections = (
                *sections,
                f"{say(control.language, 'stopped_before')}\n\n{in_language(control.language, state.previous_summary)}",
            )
        source = self.definition.system_prompt.source
        return ResolvedPrompt(source, "\n\n".join((text.rstrip(), *sections)) + "\n", "", "")

    async def is_over(self) -> bool:
        """True when the session has a result, however its instance ends."""
        async with self.claiming:
            standing = await self._known()
        return _has_result(standing)

    async def _standing(self) -> SessionResult:
        async with self.claiming:
            await self.workflow.runs.leave(self.workspace.run, "its instance has ended")
            return await self._known()

    async def _known(self) -> SessionResult:
        """The result on the blackboard; a verified claim counts before it is written there."""
        standing = await self.workflow.runs.standing(self.workspace.run)
        if self.proof is None or _has_result(standing) or await self.proof.known(self.workspace) is None:
            return standing
        return msgspec.structs.replace(standing, completed=True)

    async def _left_behind(self, state: LoopState, standing: SessionResult) -> TreeFacts:
        """What is seen of the work. What it left is committed where the adapter asks for it, but for verified work."""
        if self.context.agent.commits_for_it and not standing.completed and not self.definition.manages:
            author = f"{self.definition.file.title} <{self.definition.name}@agents.invalid>"
            message = f"{self.definition.file.title}: life {state.iterations + 1}\n\n"
            message += trailers(self.asking.issue, self.definition.name, self.workspace.run)
            await self.context.git.trees.commit(self.workspace, message, author)
        return await self.context.git.trees.observe(self.workspace)

    def _judged(
        self, after: LoopState, standing: SessionResult, facts: TreeFacts, failed: tuple[Outcome, str, str] | None
    ) -> LoopState:
        redact = self.context.redact
        if standing.completed:
            return msgspec.structs.replace(after.end(Outcome.COMPLETED, "its report was verified"), judged=facts.tree)
        if standing.blocked:
            return after.end(Outcome.BLOCKED, redact(standing.blocked))
        if standing.suspended:
            reason = redact(standing.suspended)
            suspended = msgspec.structs.replace(after, suspended=reason, waits_for_subtasks=True)
            return suspended.end(Outcome.INCOMPLETE, reason)
        if standing.paused:
            return msgspec.structs.replace(after, suspended=standing.paused).end(Outcome.INCOMPLETE, standing.paused)
        if standing.refused:
            return after.end(Outcome.FAILED, f"it was asked to stop: {redact(standing.refused)}")
        if failed is not None:
            outcome, reason, hint = failed
            return after.end(outcome, redact(reason), hint)
        return self._without_result(after, standing, facts)

    def _without_result(self, after: LoopState, standing: SessionResult, facts: TreeFacts) -> LoopState:
        """The instance ended without a result. It is started again with that in its prompt, while something changes."""
        result = _stopped_at(standing)
        failure = Failure(f"{_RESULT}: {standing.last_action}", facts.tree)
        if failure == after.last_failure and not self.definition.manages:
            why = f"no progress: {result}, again, and nothing changed in the tree"
            return after.end(Outcome.INCOMPLETE, in_language(self.definition.language, why))
        again = {"attempts": after.with_failed_attempt(), "last_failure": failure}
        return msgspec.structs.replace(after, previous_summary=result, reason=result, **again)

    def _after(self, state: LoopState, asks: int, seconds: float) -> LoopState:
        """Each instance starts a new conversation: the blackboard and the branch have what the last one knew."""
        step = state.step
        return msgspec.structs.replace(
            state,
            iterations=state.iterations + 1,
            asks=state.asks + asks,
            asks_by_step=state.asks_by_step | {step: state.asks_by_step.get(step, 0) + asks},
            session_id=None,
            usage=state.usage.plus(self.asking.spent),
            seconds=state.seconds + seconds,
            previous_summary="",
            output=None,
        )

    def _announce(self, state: LoopState, prompt: ResolvedPrompt) -> None:
        self.context.journal.emit(
            IterationStarted(
                step=state.step,
                iteration=state.iterations + 1,
                model=self.definition.model_for(state.step),
                prompt_from=prompt.source,
                prompt=prompt.text,
            )
        )

    def _settle(self, after: LoopState, facts: TreeFacts, seconds: float) -> None:
        spent: Usage = self.asking.spent
        verdict = "retry" if after.outcome is None else "complete" if after.outcome is Outcome.COMPLETED else "stop"
        self.context.journal.emit(
            IterationFinished(
                step=after.step,
                iteration=after.iterations,
                intent="repeat" if after.outcome is None else "",
                verdict=verdict,
                reason=after.reason,
                usage=spent,
                seconds=round(seconds, 3),
                commits=facts.commits,
                files=len(facts.changed_files),
                state=msgspec.to_builtins(after),
            )
        )


def _has_result(standing: SessionResult) -> bool:
    return bool(standing.completed or standing.blocked or standing.suspended or standing.paused or standing.refused)


def _stopped_at(standing: SessionResult) -> str:
    if not standing.connected:
        return "the instance ended, and had never authenticated"
    last = standing.last_action or "get_next_action"
    return f"the instance ended without a result, after {standing.calls} calls; its last action was: {last}"
