"""From a reply's intent to the next step."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from genba.definitions.steps.steps_registry import Step
from genba.domain.sessions.outcomes import LEAVING_INTENTS, Intent, StepKind
from genba.judgement.language.wording import say
from genba.judgement.loop.structured_output import field


class Refusal(msgspec.Struct, frozen=True):
    """Why a reply names no way on. It is shown to the instance when it is asked again."""

    reason: str


class StepTransition(msgspec.Struct, frozen=True):
    """Where the flow goes. No target means its end."""

    intent: Intent
    target: str | None

    @property
    def ends(self) -> bool:
        return self.target is None


def gate_move(
    step_id: str, step: Step, structured: dict[str, Any] | None, language: str = "en"
) -> StepTransition | Refusal:
    """The way on that a gated reply names, if it may."""
    gate = step.structured_gate
    assert gate is not None  # noqa: S101  (callers ask only for gated steps)
    if structured is None:
        return Refusal(say(language, "no_json"))
    named = field(structured, gate.intent_field)
    allowed = ", ".join(gate.allowed_intents)
    if named not in [str(intent) for intent in gate.allowed_intents]:
        key = "intent_not_allowed" if named is not None else "intent_missing"
        return Refusal(say(language, key, field=gate.intent_field, named=named, allowed=allowed))
    intent = Intent(named)
    for wanted in gate.handoff_fields if intent in LEAVING_INTENTS else ():
        if field(structured, wanted) is None:
            return Refusal(say(language, "field_missing", field=wanted))
    return follow(step_id, step, intent, field(structured, gate.target_field), language)


def follow(
    step_id: str, step: Step, intent: Intent, chosen: Any = None, language: str = "en"
) -> StepTransition | Refusal:
    """Where an intent leads from a step."""
    transition = step.transition(intent)
    if transition is None:
        return StepTransition(intent, step_id)
    if intent is Intent.JUMP and transition.targets:
        if chosen not in transition.targets:
            allowed = ", ".join(transition.targets)
            return Refusal(say(language, "target_not_allowed", chosen=chosen, allowed=allowed))
        return StepTransition(intent, str(chosen))
    return StepTransition(intent, transition.target)


def ungated_move(step_id: str, step: Step, forward: bool) -> StepTransition:
    """A step without a gate goes on when its work seems done, and stays otherwise."""
    if not forward:
        return StepTransition(Intent.REPEAT, step_id)
    intent = Intent.CLOSING if step.step_kind is StepKind.CLOSURE else Intent.NEXT
    found = follow(step_id, step, intent)
    return found if isinstance(found, StepTransition) else StepTransition(Intent.REPEAT, step_id)


def working_step(steps: Mapping[str, Step], at: str, been: Collection[str]) -> str:
    """The step at which work that came back goes on.

    The run was judged complete at `at`. The step there may only plan: where it leads to a step of work at which the
    run has not been, that one goes on. From a step of another kind it is the last step of work.
    """
    if steps[at].step_kind is not StepKind.WORK:
        worked = [step for step in been if steps[step].step_kind is StepKind.WORK]
        return worked[-1] if worked else at
    following = ungated_move(at, steps[at], forward=True).target
    leads_on = following is not None and following not in been and steps[following].step_kind is StepKind.WORK
    return following if following is not None and leads_on else at
