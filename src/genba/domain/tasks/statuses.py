"""The one table of status changes: from, to, by whom. What else must hold is looked up by the gateway.

The blackboard's gateway is the only place that changes a status; CLI, MCP, web and orchestrator all go through it.
"""

import msgspec

from genba.domain.tasks.task import ActorKind, TaskStatus

_S, _A = TaskStatus, ActorKind
_AGENTS = frozenset({_A.WORKER, _A.MANAGER, _A.REVIEWER})


class Rule(msgspec.Struct, frozen=True):
    """A way from one status to another."""

    start: TaskStatus
    to: TaskStatus
    by: frozenset[ActorKind]
    only_if: str = ""
    """What must hold besides, in words for people."""


_STEP = "it is a step of a plan, and its own goals hold"
_APPROVED = "the reviews approve that commit and it was finalized"
_CLOSED = "it was closed on its tracker"
_FOLLOW = "children follow"
_CANCELLABLE = tuple(status for status in TaskStatus if not status.ended)

RULES: tuple[Rule, ...] = (
    Rule(_S.BACKLOG, _S.OPEN, frozenset({_A.HUMAN, _A.MANAGER})),
    Rule(_S.OPEN, _S.IN_PROGRESS, frozenset({_A.ORCHESTRATOR, _A.WORKER}), "its dependencies are done"),
    Rule(_S.IN_PROGRESS, _S.REVIEW, frozenset({_A.ORCHESTRATOR}), "that commit was verified"),
    Rule(_S.IN_PROGRESS, _S.OPEN, frozenset({_A.ORCHESTRATOR}), "its session ended without a result"),
    Rule(_S.IN_PROGRESS, _S.DONE, frozenset({_A.WORKER, _A.TRACKER}), f"{_STEP}, or {_CLOSED}"),
    Rule(_S.IN_PROGRESS, _S.BLOCKED, frozenset({_A.ORCHESTRATOR, _A.HUMAN}) | _AGENTS, "a blocker is named"),
    Rule(_S.OPEN, _S.BLOCKED, frozenset({_A.ORCHESTRATOR, _A.HUMAN, _A.MANAGER}), "a blocker is named"),
    Rule(_S.REVIEW, _S.DONE, frozenset({_A.ORCHESTRATOR, _A.TRACKER}), f"{_APPROVED}, or {_CLOSED}"),
    *(Rule(status, _S.DONE, frozenset({_A.TRACKER}), _CLOSED) for status in (_S.BACKLOG, _S.OPEN, _S.BLOCKED)),
    Rule(_S.REVIEW, _S.IN_PROGRESS, frozenset({_A.REVIEWER, _A.ORCHESTRATOR}), "changes are wanted"),
    Rule(_S.REVIEW, _S.OPEN, frozenset({_A.ORCHESTRATOR}), f"{_APPROVED}: a phase is complete"),
    Rule(_S.BLOCKED, _S.OPEN, frozenset({_A.ORCHESTRATOR, _A.HUMAN, _A.MANAGER}), "its blocker is cleared"),
    *(Rule(status, _S.CANCELLED, frozenset({_A.HUMAN, _A.MANAGER, _A.TRACKER}), _FOLLOW) for status in _CANCELLABLE),
    Rule(_S.DONE, _S.OPEN, frozenset({_A.HUMAN, _A.TRACKER}), "it is reopened"),
    Rule(_S.CANCELLED, _S.OPEN, frozenset({_A.HUMAN, _A.TRACKER}), "it is reopened"),
)

_TABLE = {(rule.start, rule.to): rule for rule in RULES}


def refusal(start: TaskStatus, to: TaskStatus, actor: ActorKind) -> str:
    """Why this actor may not make this change; an empty string when the table allows it."""
    rule = _TABLE.get((start, to))
    if rule is None:
        ways = [str(way.to) for way in RULES if way.start is start and actor in way.by]
        onward = f"; from there the actor {actor} can go to: {', '.join(ways)}" if ways else ""
        return f"there is no way from {start} to {to}{onward}"
    if actor not in rule.by:
        allowed = ", ".join(sorted(rule.by))
        return f"the actor {actor} may not move a task from {start} to {to}; allowed: {allowed}"
    return ""
