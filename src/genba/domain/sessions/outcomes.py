"""How a run can end, and what one iteration may decide."""

from enum import StrEnum


class Outcome(StrEnum):
    """The end of a run. Reaching a cap is never success."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    BLOCKED = "blocked"
    FAILED = "failed"
    ABORTED = "aborted"
    BUDGET_EXHAUSTED = "budget_exhausted"


class Intent(StrEnum):
    """What a reply asks of the flow."""

    NEXT = "next"
    REPEAT = "repeat"
    JUMP = "jump"
    HANDOFF = "handoff"
    ESCALATE = "escalate"
    CLOSING = "closing"


class StepKind(StrEnum):
    WORK = "work"
    VERIFICATION = "verification"
    CLOSURE = "closure"


ALLOWED_INTENTS: dict[StepKind, frozenset[Intent]] = {
    StepKind.WORK: frozenset({Intent.NEXT, Intent.REPEAT, Intent.JUMP, Intent.HANDOFF}),
    StepKind.VERIFICATION: frozenset({Intent.NEXT, Intent.REPEAT, Intent.JUMP, Intent.ESCALATE}),
    StepKind.CLOSURE: frozenset({Intent.CLOSING, Intent.REPEAT}),
}

FORWARD_INTENTS = frozenset({Intent.NEXT, Intent.HANDOFF, Intent.CLOSING})
"""The intents that say a step's own work is done, so that its conditions are due."""


LEAVING_INTENTS = FORWARD_INTENTS | {Intent.JUMP}
"""The intents after which later steps need what this one hands over."""


class PermissionMode(StrEnum):
    """What an instance may do without asking, from narrow to wide."""

    PLAN = "plan"
    ACCEPT_EDITS = "acceptEdits"
    BYPASS_PERMISSIONS = "bypassPermissions"

    @property
    def width(self) -> int:
        return list(PermissionMode).index(self)


class ClosureAction(StrEnum):
    """What is done to the issue when its work is done."""

    CLOSE = "close"
    LABEL_ONLY = "label-only"
    LABEL_AND_CLOSE = "label-and-close"
