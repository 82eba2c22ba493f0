"""What the work on an issue must satisfy, and what of it held when it was verified last."""

from collections.abc import Sequence

from genba.domain.facilitation import CompletionCondition
from genba.domain.goals.descriptions import looked_at
from genba.domain.goals.goal import GUARDS, FrozenGoal, goal_type
from genba.domain.goals.verification import ArtifactType, Verification
from genba.domain.sessions.evidence import CheckStatus

_BUILT_IN = frozenset(goal_type(guard) for guard in GUARDS)
_HOLDS = {CheckStatus.PASSED: True, CheckStatus.FAILED: False}


def completion_conditions(
    goals: Sequence[FrozenGoal], artifacts: Sequence[ArtifactType], last: Verification | None
) -> tuple[CompletionCondition, ...]:
    """The artifacts and the required goals, in order. A built-in check is named only where it failed."""
    results = last.results if last is not None else ()
    found = [
        CompletionCondition(text=str(kind), holds=None if last is None else kind not in last.missing)
        for kind in artifacts
    ]
    for frozen in goals:
        status = next((each.result.status for each in results if each.goal.goal == frozen.goal), None)
        if not frozen.goal.required or (frozen.type in _BUILT_IN and status is not CheckStatus.FAILED):
            continue
        message = f"{frozen.type}: {looked_at(frozen.goal)}".rstrip(": ")
        found.append(
            CompletionCondition(text=message, holds=_HOLDS.get(status) if status is not None else None, goal=True)
        )
    return tuple(found)
