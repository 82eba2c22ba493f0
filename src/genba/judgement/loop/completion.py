"""The eight completion types: pure functions over one snapshot of the evidence."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, assert_never

import msgspec

from genba.definitions.agent.completion import (
    CheckBudget,
    Completion,
    Composite,
    Custom,
    ExternalState,
    IterationBudget,
    KeywordSignal,
    StepMachine,
    StructuredSignal,
)
from genba.judgement.loop.structured_output import strings_in


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What is known at the end of an iteration, that iteration included. Every condition sees the same one."""

    iterations: int
    checks: int
    text: str
    structured: dict[str, Any] | None
    claimed: bool
    """The structured output says complete, or an action signalled it."""
    flow_ended: bool
    issue_closed: bool
    passed: Mapping[str, bool] | None
    """Results by check; None while the checks have not run, which reads as: suppose that they hold."""

    def holds(self, check: str) -> bool:
        return self.passed is None or self.passed.get(check, False)


class Finding(msgspec.Struct, frozen=True):
    complete: bool
    reason: str


class CompletionHandler(Protocol):
    """What a custom factory returns."""

    def judge(self, snapshot: Snapshot) -> "Finding | bool": ...


Handlers = Mapping[str, CompletionHandler]
SchemaFit = Callable[[dict[str, Any], Any], bool]


def judge_completion(completion: Completion, seen: Snapshot, handlers: Handlers, fits: SchemaFit) -> Finding:
    """Whether the agent is done, by its completion type."""
    match completion:
        case ExternalState():
            return _external_state(completion, seen)
        case IterationBudget(max_iterations=most):
            return Finding(seen.iterations >= most, f"{seen.iterations} of {most} iterations are done")
        case CheckBudget(max_checks=most):
            return Finding(seen.checks >= most, f"{seen.checks} of {most} status checks are done")
        case KeywordSignal(completion_keyword=keyword):
            found = seen.structured is not None and keyword in strings_in(seen.structured)
            return Finding(found, f'the structured output {"carries" if found else "does not carry"} "{keyword}"')
        case StructuredSignal(output_schema=schema):
            fit = seen.structured is not None and isinstance(schema, dict) and fits(schema, seen.structured)
            return Finding(fit and seen.claimed, _signal_reason(fit, seen.claimed))
        case StepMachine():
            return Finding(seen.flow_ended, "the flow reached its end" if seen.flow_ended else "the flow goes on")
        case Composite():
            return _composite(completion, seen, handlers, fits)
        case Custom(completion_handler=name):
            return _custom(handlers[completion.key].judge(seen), name)
        case _:
            assert_never(completion)


def _external_state(completion: ExternalState, seen: Snapshot) -> Finding:
    open_checks = [name for name in completion.validators if not seen.holds(name)]
    if open_checks:
        return Finding(False, f"{open_checks[0]} does not hold")
    if seen.issue_closed:
        return Finding(True, "the issue was closed outside and its checks hold")
    if seen.structured is not None and not (seen.claimed or seen.flow_ended):
        return Finding(False, "the agent says that it is still working")
    return Finding(True, "the checks of the issue hold")


def _composite(completion: Composite, seen: Snapshot, handlers: Handlers, fits: SchemaFit) -> Finding:
    found = [judge_completion(part, seen, handlers, fits) for part in completion.completion_conditions]
    decide = all if completion.mode == "all" else any
    complete = decide(finding.complete for finding in found)
    telling = [finding.reason for finding in found if finding.complete == complete]
    return Finding(complete, "; ".join(telling))


def _custom(answer: Finding | bool, name: str) -> Finding:
    if isinstance(answer, Finding):
        return answer
    return Finding(bool(answer), f"{name} says {'complete' if answer else 'not yet'}")


def _signal_reason(fit: bool, claimed: bool) -> str:
    if not fit:
        return "no structured output that fits the schema"
    return "the structured output says complete" if claimed else "the structured output does not say complete"
