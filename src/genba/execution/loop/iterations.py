"""The loop: resolve → ask → observe → judge, a function from state to state."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from genba.definitions.agent.definition import AgentDefinition
from genba.domain.errors import DiskFullError, GenbaError
from genba.domain.events import IterationFinished, IterationStarted, Notice
from genba.domain.ports import AgentInstance, Steps
from genba.domain.sessions.evidence import CheckResult, TreeFacts
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.trailers import trailers
from genba.domain.sessions.workspaces import Workspace
from genba.execution.loop.action_handlers import Signals, handle_actions
from genba.execution.loop.ask import Answer, Asking, OutOfTime
from genba.execution.loop.messages import Delivery
from genba.execution.loop.observation import Observing
from genba.execution.loop.prompts import Prompts, ResolvedPrompt
from genba.execution.session_context import SessionContext
from genba.judgement.loop.budgets import exhausted
from genba.judgement.loop.claims import read_claim, read_closure
from genba.judgement.loop.structured_output import field
from genba.judgement.loop.verdicts import Judge, ParsedReply, Verdict, VerdictKind

_SUMMARY_LENGTH = 600


class Work:
    """What git shows of the work while an iteration asks."""

    def __init__(self, judge: Judge, observing: Observing, context: SessionContext) -> None:
        self.judge = judge
        self.observing = observing
        self.context = context

    def judges(self, state: LoopState) -> bool:
        return not state.structured and self.judge.judges_by_work(state)

    async def moved(self, state: LoopState) -> bool:
        return _moved(state, await self.observing.facts())

    async def delivered(self, state: LoopState) -> bool:
        facts = await self.observing.facts()
        return _moved(state, facts) and bool(facts.commits or (facts.dirty and self.context.agent.commits_for_it))


class Loop:
    """One agent, one loop. State only moves forward."""

    def __init__(
        self,
        definition: AgentDefinition,
        context: SessionContext,
        workspace: Workspace,
        judge: Judge,
        prompts: Prompts,
        instance: AgentInstance,
        observing: Observing,
    ) -> None:
        self.definition = definition
        self.context = context
        self.workspace = workspace
        self.judge = judge
        self.prompts = prompts
        self.observing = observing
        work = Work(judge, observing, context)
        self.asking = Asking(definition, context, instance, observing.issue, work=work)
        self.delivery = Delivery(context.inbox, workspace.run)

    async def run(self, state: LoopState, steps: Steps, reached: Callable[[LoopState], None]) -> LoopState:
        """Iterate until the end; `reached` is called with each state, so that a stop knows where it was."""
        while not state.ended:
            state = await steps.run("iterate", partial(self.advance, state), LoopState)
            reached(state)
        return state

    async def is_over(self) -> bool:
        return False

    async def advance(self, state: LoopState) -> LoopState:
        """One iteration."""
        spent = exhausted(state, self.definition)
        if spent is not None:
            return state.end(Outcome.BUDGET_EXHAUSTED, spent.reason)
        began = self.context.clock.elapsed()
        try:
            messages = await self.delivery.due(state)
            prompt = self.prompts.resolve(state, messages)
            self._announce(state, prompt)
            answer = await self.asking.put(state, prompt)
            await self.delivery.delivered(state, messages)
            signals = await handle_actions(answer.reply.text, self.definition.file.runner.actions, self.context, state)
            await self._commit(state)
            parsed = _parsed(answer, signals)
            closed = await self.observing.issue_closed()
            weighing = self.judge.weigh(state, parsed, closed)
            facts, results = await self.observing.gather(state, weighing.due)
            verdict = self.judge.judge(state, parsed, weighing, results, facts)
        except OutOfTime as finding:
            return self._cut_off(state, Outcome.BUDGET_EXHAUSTED, str(finding))
        except DiskFullError:
            raise
        except GenbaError as error:
            return self._cut_off(state, Outcome.FAILED, error.message, error.hint)
        seconds = self.context.clock.elapsed() - began
        after = self._after(state, answer, signals, verdict, facts, seconds)
        self._settle(state, after, answer, parsed, verdict, facts, results, seconds)
        return after

    def _cut_off(self, state: LoopState, outcome: Outcome, reason: str, hint: str = "") -> LoopState:
        """The end of an iteration without a verdict. What it cost still counts."""
        return self.spent_so_far(state).end(outcome, self.context.redact(reason), hint)

    def spent_so_far(self, state: LoopState) -> LoopState:
        """The same state with what the iteration that is under way has cost."""
        usage, seconds = state.usage.plus(self.asking.spent), state.seconds + self.asking.elapsed()
        return msgspec.structs.replace(state, usage=usage, seconds=seconds)

    def _after(
        self, state: LoopState, answer: Answer, signals: Signals, verdict: Verdict, facts: TreeFacts, seconds: float
    ) -> LoopState:
        """The state that the verdict leads to."""
        step = state.step
        choice = signals.closure or read_closure(answer.structured)
        if choice.unknown:
            message = f'"{self.context.redact(choice.unknown)}" is no closure action, and the default applies'
            self.context.journal.emit(Notice(message=message))
        return msgspec.structs.replace(
            state,
            step=verdict.step,
            iterations=state.iterations + 1,
            checks=state.checks + self.judge.counts_as_check(step),
            asks=state.asks + answer.asks,
            asks_by_step=state.asks_by_step | {step: state.asks_by_step.get(step, 0) + answer.asks},
            attempts=_attempts(state, verdict),
            context=state.context | self._handed_over(step, answer),
            seen=facts.mark,
            structured=state.structured or answer.structured is not None,
            session_id=answer.reply.session_id or state.session_id,
            usage=state.usage.plus(answer.usage),
            seconds=state.seconds + seconds,
            gap=verdict.gap.bounded() if verdict.gap is not None else None,
            denied=answer.reply.tools_denied,
            last_failure=verdict.failure or state.last_failure,
            judged="" if facts.dirty or facts.strayed else facts.tree,
            previous_summary=self.context.redact(_summary(answer)),
            output=_each_text(answer.structured, self.context.redact),
            closure=choice if choice.action or choice.add_labels or choice.remove_labels else state.closure,
            outcome=verdict.outcome,
            reason=self.context.redact(verdict.reason),
        )

    def _handed_over(self, step: str, answer: Answer) -> dict[str, dict[str, object]]:
        """The declared output of the step, for the steps after it."""
        fields = self.definition.outputs_of(step)
        if fields is None or answer.structured is None:
            return {}
        return {step: {name.replace(".", "_"): field(answer.structured, name) for name in fields}}

    async def _commit(self, state: LoopState) -> None:
        if self.context.agent.commits_for_it:
            author = f"{self.definition.file.title} <{self.definition.name}@agents.invalid>"
            message = f"{self.definition.file.title}: {state.step}, iteration {state.iterations + 1}\n\n"
            message += trailers(self.asking.issue, self.definition.name, self.workspace.run)
            await self.context.git.trees.commit(self.workspace, message, author)

    def _announce(self, state: LoopState, prompt: ResolvedPrompt) -> None:
        if prompt.notice:
            self.context.journal.emit(Notice(step=state.step, message=prompt.notice))
        self.context.journal.emit(
            IterationStarted(
                step=state.step,
                iteration=state.iterations + 1,
                model=self.definition.model_for(state.step),
                prompt_from=prompt.source,
                prompt=prompt.text,
            )
        )

    def _settle(
        self,
        before: LoopState,
        after: LoopState,
        answer: Answer,
        parsed: ParsedReply,
        verdict: Verdict,
        facts: TreeFacts,
        results: tuple[CheckResult, ...],
        seconds: float,
    ) -> None:
        skipped = [r.name for r in results if not r.passed and self.judge.skips(before.step, r.name)]
        for name in skipped:
            self.context.journal.emit(Notice(step=before.step, message=f"{name} failed and is skipped"))
        again = verdict.gap is not None
        intent = "" if verdict.kind is VerdictKind.STOP else str(self.judge.move(before, parsed).intent)
        self.context.journal.emit(
            IterationFinished(
                step=before.step,
                iteration=after.iterations,
                intent="repeat" if again else intent,
                verdict=str(verdict.kind),
                reason=verdict.reason,
                usage=answer.usage,
                seconds=round(seconds, 3),
                commits=facts.commits,
                files=len(facts.changed_files),
                state=msgspec.to_builtins(after),
            )
        )


def _moved(state: LoopState, facts: TreeFacts) -> bool:
    return facts.mark != state.seen if state.seen else bool(facts.commits or facts.dirty)


def _parsed(answer: Answer, signals: Signals) -> ParsedReply:
    claim = read_claim(answer.structured)
    return ParsedReply(
        text=answer.reply.text,
        structured=answer.structured,
        claim=claim,
        signalled=signals.complete,
        blocked=signals.blocked or (claim.text if claim.kind == "blocked" else ""),
        move=answer.move,
        unfit=answer.unfit,
        denied=answer.reply.tools_denied,
    )


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The same JSON value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _each_text(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_each_text(inner, change) for inner in value]
    return value


def _attempts(state: LoopState, verdict: Verdict) -> dict[str, int]:
    """Failed attempts count per visit: they start at zero when the flow comes back to a step."""
    if verdict.gap is not None:
        return state.with_failed_attempt()
    if verdict.step != state.step:
        return {step: count for step, count in state.attempts.items() if step != state.step}
    return state.attempts


def _summary(answer: Answer) -> str:
    result = field(answer.structured, "summary") if answer.structured else None
    return str(result or answer.reply.text).strip()[-_SUMMARY_LENGTH:]
