"""Budgets are checked before every iteration. Reaching one is never success."""

import msgspec

from genba.definitions.agent.agent_json import Limits
from genba.definitions.agent.completion import IterationBudget
from genba.definitions.agent.definition import AgentDefinition
from genba.domain.sessions.loop_state import LoopState


class Exhausted(msgspec.Struct, frozen=True):
    """A budget that is used up, and the setting that would raise it."""

    reason: str
    setting: str


def exhausted(state: LoopState, definition: AgentDefinition) -> Exhausted | None:
    limits = definition.file.runner.limits
    cap = definition.iteration_cap
    used = state.iterations - state.iterations_before
    if used >= cap:
        message = f"{used} of {cap} iterations are used"
        return Exhausted(message, f"{_iteration_setting(definition)}={cap * 2}")
    if time_left(state, limits) <= 0:
        return _out_of_time(state, limits)
    if limits.tokens is not None and state.usage.tokens >= limits.tokens:
        spent = state.usage.tokens
        return Exhausted(f"{spent} of {limits.tokens} tokens are used", f"runner.limits.tokens={spent * 2}")
    if limits.cost_usd is not None and state.usage.cost_usd >= limits.cost_usd:
        spent_usd = state.usage.cost_usd
        message = f"${spent_usd:.4g} of ${limits.cost_usd:.4g} are used"
        return Exhausted(message, f"runner.limits.costUsd={spent_usd * 2:.4g}")
    return None


def raised_limit(state: LoopState, definition: AgentDefinition) -> str:
    """The setting that lets an exhausted run go on."""
    found = exhausted(state, definition) or _out_of_time(state, definition.file.runner.limits)
    return found.setting


def time_left(state: LoopState, limits: Limits) -> float:
    return max(0.0, limits.wall_time_seconds - (state.seconds - state.seconds_before))


def _iteration_setting(definition: AgentDefinition) -> str:
    if isinstance(definition.completion, IterationBudget):
        return "runner.completion.config.maxIterations"
    return "runner.limits.maxIterations"


def _out_of_time(state: LoopState, limits: Limits) -> Exhausted:
    message = f"{state.seconds - state.seconds_before:.0f} of {limits.wall_time_seconds:.0f} seconds are used"
    return Exhausted(message, f"runner.limits.wallTimeSeconds={limits.wall_time_seconds * 2:g}")
