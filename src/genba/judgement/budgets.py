"""Budgets are checked before every iteration. Reaching one is never success."""

from genba.definitions.agent_file import Limits
from genba.domain.loop_state import LoopState


def exhausted(state: LoopState, limits: Limits) -> str:
    """Which budget is used up, or an empty string."""
    if state.iterations >= limits.max_iterations:
        return f"{state.iterations} of {limits.max_iterations} iterations are used"
    if state.seconds >= limits.wall_time_seconds:
        return f"{state.seconds:.0f} of {limits.wall_time_seconds:.0f} seconds are used"
    if limits.tokens is not None and state.usage.tokens >= limits.tokens:
        return f"{state.usage.tokens} of {limits.tokens} tokens are used"
    if limits.cost_usd is not None and state.usage.cost_usd >= limits.cost_usd:
        return f"${state.usage.cost_usd:.2f} of ${limits.cost_usd:.2f} are used"
    return ""


def time_left(state: LoopState, limits: Limits) -> float:
    return max(0.0, limits.wall_time_seconds - state.seconds)
