"""What a person is asked, with everything needed to decide it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from genba.domain.fleet import EntryStatus, Escalation, EscalationKind, FleetSession, MergeEntry, Plan, Review, Spent
from genba.domain.tasks import Blocker, BlockerKind, Task, TaskStatus
from genba.judgement.attempts import tried
from genba.judgement.moves import Escalate
from genba.judgement.paths import some
from genba.judgement.situation import Situation
from genba.judgement.spending import Budget

_BLOCKABLE = (TaskStatus.OPEN, TaskStatus.IN_PROGRESS)


def question(at: Situation, task: Task, session: FleetSession) -> Escalate:
    asked = session.reason or "it asks, and does not say what"
    return _escalate(
        at, task, EscalationKind.QUESTION, asked, BlockerKind.NEEDS_INPUT, session, evidence={"part": session.part}
    )


def attempts(at: Situation, task: Task, why: str, failures: Sequence[FleetSession]) -> Escalate:
    asked = f"{why}. Shall it be tried again?"
    last = failures[-1] if failures else None
    told: dict[str, Any] = {"tried": tried(failures)}
    if last is not None:
        told |= {"last_reason": last.reason, "last_outcome": last.outcome}
    return _escalate(at, task, EscalationKind.ATTEMPTS, asked, BlockerKind.FAILED, last, evidence=told)


def merge(at: Situation, task: Task, session: FleetSession, entry: MergeEntry, kind: EscalationKind) -> Escalate:
    if entry.status is EntryStatus.WITHDRAWN:
        what, blocker = f"was taken out of the merge queue of {entry.target} ({entry.detail})", BlockerKind.FAILED
    elif kind is EscalationKind.CONFLICT:
        what, blocker = f"conflicts with {entry.target} in {some(entry.paths)}", BlockerKind.CONFLICT
    else:
        what, blocker = f"fails on {entry.target} after the merge", BlockerKind.FAILED
    asked = f"The work {what}, after {session.rounds} rounds. Shall its author try once more?"
    told = {
        "round": session.rounds,
        "target": entry.target,
        "paths": list(entry.paths),
        "detail": entry.detail,
        "over": entry.over,
    }
    return _escalate(at, task, kind, asked, blocker, session, commit=entry.commit, evidence=told)


def proposal(at: Situation, task: Task, session: FleetSession, why: str, kind: EscalationKind) -> Escalate:
    blocker = BlockerKind.CONFLICT if kind is EscalationKind.CONFLICT else BlockerKind.FAILED
    asked = f"{why}, after {session.rounds} rounds. Shall its author try once more?"
    return _escalate(at, task, kind, asked, blocker, session, evidence={"round": session.rounds})


def closure(at: Situation, task: Task, session: FleetSession, target: str, landed: str) -> Escalate:
    asked = (
        f"The work is on {target} as {landed[:7]}, and its closure failed: {session.reason}. "
        "Approve to try once more, or reject to call it done as it is."
    )
    told = {"landed": landed, "part": session.part, "target": target, "last_reason": session.reason}
    return _escalate(at, task, EscalationKind.ATTEMPTS, asked, None, session, evidence=told)


def review(
    at: Situation, task: Task, session: FleetSession | None, commit: str, why: str, last: Review | None = None
) -> Escalate:
    told: dict[str, Any] = {"round": session.reviews if session else 0}
    if last is not None:
        told |= {"review": last.task, "findings": list(last.findings), "reviewer": last.reviewer}
    return _escalate(at, task, EscalationKind.REVIEW, why, None, session, commit=commit, evidence=told)


def budget(at: Situation, task: Task, session: FleetSession | None, found: Budget) -> Escalate:
    asked = f"{found.what}. Approve to spend as much again, or raise it:  {found.setting}"
    told = {"scope": found.scope, "spent_usd": found.spent, "limit_usd": found.limit}
    return _escalate(at, task, EscalationKind.BUDGET, asked, BlockerKind.RESOURCE, session, evidence=told)


def plan(at: Situation, task: Task, proposed: Plan) -> Escalate:
    asked = f"Shall it be done in these {len(proposed.subtasks)} parts?"
    told = {
        "plan": proposed.id,
        "summary": proposed.summary,
        "subtasks": [msgspec.to_builtins(subtask) for subtask in proposed.subtasks],
    }
    made = _escalate(at, task, EscalationKind.PLAN, asked, None, None, evidence=told)
    return Escalate(escalation=msgspec.structs.replace(made.escalation, run=proposed.run))


def stopped(at: Situation, task: Task, why: str, blocks: bool, **evidence: Any) -> Escalate:
    blocker = BlockerKind.DEPENDENCY if blocks else None
    return _escalate(at, task, EscalationKind.STOPPED, why, blocker, None, evidence=evidence)


def _escalate(
    at: Situation,
    task: Task,
    kind: EscalationKind,
    asked: str,
    blocks_as: BlockerKind | None,
    session: FleetSession | None,
    *,
    commit: str = "",
    evidence: dict[str, Any],
) -> Escalate:
    """A task that is in review cannot be blocked: it stays there, and waits for the person."""
    spent = at.field.ledger.by_task.get(task.number, Spent())
    told: dict[str, Any] = {"cost_usd": spent.cost_usd, "tokens": spent.tokens}
    if session is not None:
        told |= {"branch": session.branch, "agent": session.agent}
    escalation = Escalation(
        task=task.number,
        kind=kind,
        question=asked,
        run=session.run if session else "",
        commit=commit or (session.verified if session else ""),
        evidence=told | evidence,
    )
    blocks = blocks_as is not None and task.status in _BLOCKABLE
    return Escalate(escalation=escalation, blocker=Blocker(blocks_as, asked) if blocks and blocks_as else None)
