"""The verdict on one iteration: claim and evidence together."""

import re
from enum import StrEnum
from typing import Any

import msgspec

from genba.definitions.agent.completion import (
    CheckBudget,
    Custom,
    ExternalState,
    IterationBudget,
    KeywordSignal,
    StepMachine,
    StructuredSignal,
    walk,
)
from genba.definitions.agent.definition import AgentDefinition
from genba.domain.sessions.evidence import CheckResult, TreeFacts
from genba.domain.sessions.loop_state import Failure, Feedback, LoopState
from genba.domain.sessions.outcomes import FORWARD_INTENTS, Outcome, StepKind
from genba.domain.text_limits import cut
from genba.judgement.language.sentences import in_language
from genba.judgement.loop.claims import Claim, ClaimKind, explanation
from genba.judgement.loop.completion import Handlers, SchemaFit, Snapshot, judge_completion
from genba.judgement.loop.transitions import StepTransition, ungated_move

_OUTPUT_IN_PROMPT = 4000


class VerdictKind(StrEnum):
    COMPLETE = "complete"
    CONTINUE = "continue"
    RETRY = "retry"
    STOP = "stop"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement with its reason. The caller carries it out."""

    kind: VerdictKind
    reason: str
    step: str
    outcome: Outcome | None = None
    gap: Feedback | None = None
    failure: Failure | None = None


class ParsedReply(msgspec.Struct, frozen=True, kw_only=True):
    """What judgement needs of a reply."""

    text: str
    structured: dict[str, Any] | None
    claim: Claim
    signalled: bool
    """An action block signalled completion."""
    blocked: str
    """Why the instance cannot go on; empty when it can."""
    move: StepTransition | None
    """The way on that the gate found; None for a step without a gate."""
    unfit: str = ""
    """Why no reply fitted its gate, when the fallback intent was taken."""
    denied: tuple[str, ...] = ()
    """Tools that the instance wanted to use, and was not allowed to."""

    @property
    def claimed(self) -> bool:
        return self.claim.kind is ClaimKind.COMPLETE or self.signalled


class Weighing(msgspec.Struct, frozen=True):
    """What a reply amounts to before any check has run."""

    move: StepTransition
    gating: bool
    """Whether a failed check counts: the step is being left, or the agent would be done."""
    due: tuple[str, ...]
    """The checks to run, in order: those of the step, then those of the completion."""
    issue_closed: bool


class Judge:
    """Judges the iterations of one definition. It holds no state between them."""

    def __init__(self, definition: AgentDefinition, handlers: Handlers, fits: SchemaFit) -> None:
        self.definition = definition
        self.handlers = handlers
        self.fits = fits
        self.parts = walk(definition.completion)

    def move(self, state: LoopState, reply: ParsedReply) -> StepTransition:
        """The way on: the gate's, or for a step without a gate the one that its work suggests."""
        if reply.move is not None:
            return reply.move
        forward = reply.structured is None or reply.claimed
        return ungated_move(state.step, self.definition.step(state.step), forward)

    def judges_by_work(self, state: LoopState) -> bool:
        """Whether checks alone can bring a session on at this step, with no structured output at all."""
        silent = ParsedReply(
            text="", structured=None, claim=Claim(ClaimKind.NONE), signalled=False, blocked="", move=None
        )
        if any(isinstance(part, StructuredSignal | KeywordSignal) for part in self.parts):
            supposed = self._snapshot(state, silent, self.move(state, silent), None, issue_closed=False)
            return judge_completion(self.definition.completion, supposed, self.handlers, self.fits).complete
        if any(isinstance(part, ExternalState) for part in self.parts):
            return True
        has_checks = bool(self.definition.step(state.step).completion_conditions)
        return has_checks and any(isinstance(part, StepMachine) for part in self.parts)

    def weigh(self, state: LoopState, reply: ParsedReply, issue_closed: bool) -> Weighing:
        """What a reply amounts to before any check has run: where it leads, and which checks are due."""
        move = self.move(state, reply)
        supposed = self._snapshot(state, reply, move, None, issue_closed)
        ready = judge_completion(self.definition.completion, supposed, self.handlers, self.fits).complete
        gated = reply.move is not None or any(isinstance(part, StepMachine) for part in self.parts)
        leaving = gated and move.intent in FORWARD_INTENTS
        observes = any(isinstance(part, CheckBudget | Custom) for part in self.parts)
        due: list[str] = []
        if observes or leaving or ready:
            due += [condition.validator for condition in self.definition.step(state.step).completion_conditions]
        if ready:
            due += [name for part in self.parts if isinstance(part, ExternalState) for name in part.validators]
        return Weighing(move, leaving or ready, tuple(dict.fromkeys(due)), issue_closed)

    def judge(
        self,
        state: LoopState,
        reply: ParsedReply,
        weighing: Weighing,
        results: tuple[CheckResult, ...],
        facts: TreeFacts,
    ) -> Verdict:
        """The verdict, with the results of the checks."""
        if reply.blocked:
            return self._stop(state, Outcome.BLOCKED, reply.blocked)
        move = weighing.move
        passed = {result.name: result.passed or self.skips(state.step, result.name) for result in results}
        failed = next((result for result in results if not passed[result.name]), None)
        if failed is not None and weighing.gating and self._passes_on(state, reply, failed):
            return Verdict(kind=VerdictKind.CONTINUE, reason=_summary(failed), step=move.target or state.step)
        if failed is not None and weighing.gating:
            return self.failed(state, reply.claim.text if reply.claimed else "", failed, facts, reply.denied)
        finding = judge_completion(
            self.definition.completion,
            self._snapshot(state, reply, move, passed, weighing.issue_closed),
            self.handlers,
            self.fits,
        )
        if finding.complete:
            return Verdict(kind=VerdictKind.COMPLETE, reason=finding.reason, step=state.step, outcome=Outcome.COMPLETED)
        if move.intent == "escalate" and move.ends:
            why = explanation(reply.structured or {})
            return self._stop(state, Outcome.BLOCKED, why or "the agent escalated to a human")
        target = state.step if move.target is None else move.target
        if reply.unfit:
            return self._unfit(state, reply.unfit, target, facts)
        return Verdict(kind=VerdictKind.CONTINUE, reason=finding.reason, step=target)

    def _passes_on(self, state: LoopState, reply: ParsedReply, failed: CheckResult) -> bool:
        """Whether a step is left without words while the work is not done: its own checks hold, and a step follows."""
        step = self.definition.step(state.step)
        silent = reply.structured is None and reply.move is None
        gated = step.structured_gate is not None or state.step in self.definition.schemas
        own = [condition.validator for condition in step.completion_conditions]
        target = self.move(state, reply).target
        return silent and gated and failed.name not in own and target not in (None, state.step)

    def final_checks(self, step_id: str) -> tuple[str, ...]:
        """The checks that what leaves the working tree must pass: those of the last step, and of the completion."""
        own = [condition.validator for condition in self.definition.step(step_id).completion_conditions]
        needed = [name for part in self.parts if isinstance(part, ExternalState) for name in part.validators]
        return tuple(dict.fromkeys([*(name for name in own if not self.skips(step_id, name)), *needed]))

    def _unfit(self, state: LoopState, reason: str, target: str, facts: TreeFacts) -> Verdict:
        """Replies that never fit cost money; twice on the same tree is enough."""
        failure = Failure("the form of the reply", facts.tree)
        if failure == state.last_failure:
            message = f"no progress: no reply fits ({reason}), and nothing changed in the tree"
            return self._stop(state, Outcome.INCOMPLETE, message)
        return Verdict(kind=VerdictKind.RETRY, reason=reason, step=target, failure=failure)

    def skips(self, step_id: str, check: str) -> bool:
        """Whether the step goes on when this condition of its own fails. What completes the agent is never skipped."""
        step = self.definition.step(step_id)
        own = any(condition.validator == check for condition in step.completion_conditions)
        needed = any(isinstance(part, ExternalState) and check in part.validators for part in self.parts)
        return own and not needed and step.on_failure.action == "skip"

    def counts_as_check(self, step_id: str) -> bool:
        """Whether an iteration at this step is a status check."""
        steps = self.definition.registry.steps
        checking = {
            name
            for name, step in steps.items()
            if step.step_kind is StepKind.VERIFICATION or step.completion_conditions
        }
        return step_id in checking or not checking

    def _snapshot(
        self,
        state: LoopState,
        reply: ParsedReply,
        move: StepTransition,
        passed: dict[str, bool] | None,
        issue_closed: bool,
    ) -> Snapshot:
        return Snapshot(
            iterations=state.iterations + 1,
            checks=state.checks + self.counts_as_check(state.step),
            text=reply.text,
            structured=reply.structured,
            claimed=reply.claimed,
            flow_ended=move.ends and move.intent in FORWARD_INTENTS,
            issue_closed=issue_closed,
            passed=passed,
        )

    def failed(
        self, state: LoopState, claim: str, failed: CheckResult, facts: TreeFacts, denied: tuple[str, ...] = ()
    ) -> Verdict:
        """The verdict on a check that does not hold: another attempt, or the end.

        An instance that did nothing because it was not allowed to would do nothing again.
        """
        on_failure = self.definition.step(state.step).on_failure
        output = _summary(failed)
        if denied and not facts.commits and not facts.dirty:
            tools = ", ".join(dict.fromkeys(denied))
            return self._stop(
                state, Outcome.BLOCKED, f"the agent was not allowed to use {tools}, and did nothing; {output}"
            )
        if on_failure.action == "abort":
            return self._stop(state, Outcome.ABORTED, output)
        failure = Failure(failed.name, facts.tree)
        if failure == state.last_failure:
            return self._stop(
                state, Outcome.INCOMPLETE, f"no progress: {output}, again, and nothing changed in the tree"
            )
        attempt = state.attempts.get(state.step, 0) + 1
        if attempt >= on_failure.max_attempts:
            return self._stop(state, Outcome.INCOMPLETE, f"{output} ({attempt} of {on_failure.max_attempts} attempts)")
        completion = self.definition.completion
        used = state.iterations - state.iterations_before
        if isinstance(completion, IterationBudget) and used + 1 >= completion.max_iterations:
            return self._stop(state, Outcome.INCOMPLETE, f"the iterations are done, and {output}")
        gap = Feedback(
            check=failed.name,
            detail=failed.detail,
            output=failed.output[-_OUTPUT_IN_PROMPT:],
            claim=claim,
            attempt=attempt,
            max_attempts=on_failure.max_attempts,
            pattern=self._pattern(failed),
        )
        return Verdict(kind=VerdictKind.RETRY, reason=output, step=state.step, gap=gap, failure=failure)

    def _pattern(self, failed: CheckResult) -> str | None:
        """The failure pattern: the check's own, else the first whose expression fits the output of the check."""
        check = self.definition.find_check(failed.name)
        if check is not None and check.failure_pattern is not None:
            return check.failure_pattern
        output = f"{failed.detail}\n{failed.output}"
        for name, pattern in self.definition.registry.failure_patterns.items():
            if pattern.match is not None and re.search(pattern.match, output, re.MULTILINE):
                return name
        return None

    def _stop(self, state: LoopState, outcome: Outcome, reason: str) -> Verdict:
        reason = in_language(self.definition.language, cut(reason))
        return Verdict(kind=VerdictKind.STOP, reason=reason, step=state.step, outcome=outcome)


def _summary(failed: CheckResult) -> str:
    return f"{failed.name}: {failed.detail}"
