"""The verdict on one iteration: claim and evidence together."""

import re
from enum import StrEnum
from typing import Any

import msgspec

from genba.definitions.completion import (
    CheckBudget,
    Custom,
    ExternalState,
    IterationBudget,
    StepMachine,
    walk,
)
from genba.definitions.definition import AgentDefinition
from genba.domain.evidence import CheckResult, TreeFacts
from genba.domain.loop_state import Failure, Gap, LoopState
from genba.domain.outcomes import FORWARD_INTENTS, Outcome, StepKind
from genba.judgement.claims import Claim, ClaimKind
from genba.judgement.completion import Handlers, SchemaFit, Snapshot, judge_completion
from genba.judgement.transitions import Move, ungated_move

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
    gap: Gap | None = None
    failure: Failure | None = None


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a reply said, as far as judgement is concerned."""

    text: str
    structured: dict[str, Any] | None
    claim: Claim
    signalled: bool
    """An action block signalled completion."""
    blocked: str
    """Why the instance cannot go on; empty when it can."""
    move: Move | None
    """The way on that the gate found; None for a step without a gate."""
    unfit: str = ""
    """Why no reply fitted its gate, when the fallback intent was taken."""

    @property
    def claimed(self) -> bool:
        return self.claim.kind is ClaimKind.COMPLETE or self.signalled


class Judge:
    """Judges the iterations of one definition. It holds no state between them."""

    def __init__(self, definition: AgentDefinition, handlers: Handlers, fits: SchemaFit) -> None:
        self.definition = definition
        self.handlers = handlers
        self.fits = fits
        self.parts = walk(definition.completion)

    def move(self, state: LoopState, heard: Heard) -> Move:
        """The way on: the gate's, or for a step without a gate the one that its work suggests."""
        if heard.move is not None:
            return heard.move
        forward = heard.structured is None or heard.claimed
        return ungated_move(state.step, self.definition.step(state.step), forward)

    def checks_due(self, state: LoopState, heard: Heard, issue_closed: bool) -> tuple[str, ...]:
        """The checks to run now, in order: those of the step, then those of the completion."""
        observes = any(isinstance(part, CheckBudget | Custom) for part in self.parts)
        if not (observes or self._leaving(state, heard) or self._ready(state, heard, issue_closed)):
            return ()
        step = [condition.validator for condition in self.definition.step(state.step).completion_conditions]
        return tuple(dict.fromkeys([*step, *self._validators(state, heard, issue_closed)]))

    def judge(
        self,
        state: LoopState,
        heard: Heard,
        results: tuple[CheckResult, ...],
        facts: TreeFacts,
        issue_closed: bool,
    ) -> Verdict:
        if heard.blocked:
            return self._stop(state, Outcome.BLOCKED, heard.blocked)
        move = self.move(state, heard)
        passed = {result.name: result.passed or self.skips(state.step, result.name) for result in results}
        failed = next((result for result in results if not passed[result.name]), None)
        gating = self._leaving(state, heard) or self._ready(state, heard, issue_closed)
        if failed is not None and gating:
            return self.failed(state, heard.claim.text if heard.claimed else "", failed, facts)
        finding = judge_completion(
            self.definition.completion,
            self._snapshot(state, heard, move, passed, issue_closed),
            self.handlers,
            self.fits,
        )
        if finding.complete:
            return Verdict(kind=VerdictKind.COMPLETE, reason=finding.reason, step=state.step, outcome=Outcome.COMPLETED)
        if move.intent == "escalate" and move.ends:
            return self._stop(state, Outcome.BLOCKED, heard.claim.text or "the agent escalated to a human")
        target = state.step if move.target is None else move.target
        if heard.unfit:
            return self._unfit(state, heard.unfit, target, facts)
        return Verdict(kind=VerdictKind.CONTINUE, reason=finding.reason, step=target)

    def final_checks(self, step_id: str) -> tuple[str, ...]:
        """The checks that what leaves the working tree must pass: those of the last step, and of the completion."""
        own = [condition.validator for condition in self.definition.step(step_id).completion_conditions]
        needed = [name for part in self.parts if isinstance(part, ExternalState) for name in part.validators]
        observed = any(isinstance(part, CheckBudget) for part in self.parts)
        kept = [] if observed else [name for name in own if not self.skips(step_id, name)]
        return tuple(dict.fromkeys([*kept, *needed]))

    def _unfit(self, state: LoopState, reason: str, target: str, facts: TreeFacts) -> Verdict:
        """Replies that never fit cost money; twice on the same tree is enough."""
        failure = Failure("the form of the reply", facts.tree)
        if failure == state.last_failure:
            told = f"no progress: no reply fits ({reason}), and nothing changed in the tree"
            return self._stop(state, Outcome.INCOMPLETE, told)
        return Verdict(kind=VerdictKind.CONTINUE, reason=reason, step=target, failure=failure)

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

    def _leaving(self, state: LoopState, heard: Heard) -> bool:
        """Whether the step says that its own work is done."""
        move = self.move(state, heard)
        if heard.move is not None:
            return move.intent in FORWARD_INTENTS
        by_steps = any(isinstance(part, StepMachine) for part in self.parts)
        return by_steps and move.intent in FORWARD_INTENTS

    def _ready(self, state: LoopState, heard: Heard, issue_closed: bool) -> bool:
        """Whether the agent would be done if every check held."""
        snapshot = self._snapshot(state, heard, self.move(state, heard), None, issue_closed)
        return judge_completion(self.definition.completion, snapshot, self.handlers, self.fits).complete

    def _validators(self, state: LoopState, heard: Heard, issue_closed: bool) -> list[str]:
        if not self._ready(state, heard, issue_closed):
            return []
        return [name for part in self.parts if isinstance(part, ExternalState) for name in part.validators]

    def _snapshot(
        self, state: LoopState, heard: Heard, move: Move, passed: dict[str, bool] | None, issue_closed: bool
    ) -> Snapshot:
        return Snapshot(
            iterations=state.iterations + 1,
            checks=state.checks + self.counts_as_check(state.step),
            text=heard.text,
            structured=heard.structured,
            claimed=heard.claimed,
            flow_ended=move.ends and move.intent in FORWARD_INTENTS,
            issue_closed=issue_closed,
            passed=passed,
        )

    def failed(self, state: LoopState, claim: str, failed: CheckResult, facts: TreeFacts) -> Verdict:
        """The verdict on a check that does not hold: another attempt, or the end."""
        on_failure = self.definition.step(state.step).on_failure
        said = f"{failed.name}: {failed.detail}"
        if on_failure.action == "abort":
            return self._stop(state, Outcome.ABORTED, said)
        failure = Failure(failed.name, facts.tree)
        if failure == state.last_failure:
            return self._stop(state, Outcome.INCOMPLETE, f"no progress: {said}, again, and nothing changed in the tree")
        attempt = state.attempts.get(state.step, 0) + 1
        if attempt >= on_failure.max_attempts:
            return self._stop(state, Outcome.INCOMPLETE, f"{said} ({attempt} of {on_failure.max_attempts} attempts)")
        completion = self.definition.completion
        if isinstance(completion, IterationBudget) and state.iterations + 1 >= completion.max_iterations:
            return self._stop(state, Outcome.INCOMPLETE, f"the iterations are done, and {said}")
        gap = Gap(
            check=failed.name,
            detail=failed.detail,
            output=failed.output[-_OUTPUT_IN_PROMPT:],
            claim=claim,
            attempt=attempt,
            max_attempts=on_failure.max_attempts,
            pattern=self._pattern(failed),
        )
        return Verdict(kind=VerdictKind.RETRY, reason=said, step=state.step, gap=gap, failure=failure)

    def _pattern(self, failed: CheckResult) -> str | None:
        """The failure pattern: the check's own, else the first whose expression fits what the check said."""
        named = self.definition.check(failed.name).failure_pattern
        if named is not None:
            return named
        said = f"{failed.detail}\n{failed.output}"
        for name, pattern in self.definition.registry.failure_patterns.items():
            if pattern.match is not None and re.search(pattern.match, said, re.MULTILINE):
                return name
        return None

    def _stop(self, state: LoopState, outcome: Outcome, reason: str) -> Verdict:
        return Verdict(kind=VerdictKind.STOP, reason=reason, step=state.step, outcome=outcome)
