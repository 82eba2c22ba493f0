"""What a person is asked, with everything needed to decide it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from genba.domain.fleet.records import (
    Cost,
    EntryStatus,
    Escalation,
    EscalationKind,
    FleetSession,
    MergeEntry,
    Plan,
    Review,
)
from genba.domain.tasks.task import Blocker, BlockerKind, Task, TaskStatus
from genba.judgement.language.sentences import in_language, output_in
from genba.judgement.language.wording import say
from genba.judgement.scheduling.actions import Escalate
from genba.judgement.scheduling.attempts import tried
from genba.judgement.scheduling.scheduler_view import SchedulerView
from genba.judgement.scheduling.spending import Budget
from genba.judgement.verification.paths import some

_BLOCKABLE = (TaskStatus.OPEN, TaskStatus.IN_PROGRESS)


def _language(at: SchedulerView) -> str:
    return at.settings.workflow.language


def question(at: SchedulerView, task: Task, session: FleetSession) -> Escalate:
    asked = session.reason or say(_language(at), "ask_nothing")
    return _escalate(
        at, task, EscalationKind.QUESTION, asked, BlockerKind.NEEDS_INPUT, session, evidence={"part": session.part}
    )


def attempts(at: SchedulerView, task: Task, why: str, failures: Sequence[FleetSession]) -> Escalate:
    asked = say(_language(at), "ask_attempts", why=in_language(_language(at), why))
    last = failures[-1] if failures else None
    values: dict[str, Any] = {"tried": tried(failures, _language(at))}
    if last is not None:
        values |= {"last_reason": in_language(_language(at), last.reason), "last_outcome": last.outcome}
    return _escalate(at, task, EscalationKind.ATTEMPTS, asked, BlockerKind.FAILED, last, evidence=values)


def merge(at: SchedulerView, task: Task, session: FleetSession, entry: MergeEntry, kind: EscalationKind) -> Escalate:
    key, blocker = "ask_failed", BlockerKind.FAILED
    if entry.status is EntryStatus.WITHDRAWN:
        key = "ask_withdrawn"
    elif kind is EscalationKind.CONFLICT:
        key, blocker = "ask_conflict", BlockerKind.CONFLICT
    asked = say(
        _language(at),
        key,
        target=entry.target,
        detail=in_language(_language(at), entry.detail),
        paths=some(entry.paths),
        rounds=session.rounds,
    )
    values = {
        "round": session.rounds,
        "target": entry.target,
        "paths": list(entry.paths),
        "detail": output_in(_language(at), "failed", entry.detail),
        "over": entry.over,
    }
    return _escalate(at, task, kind, asked, blocker, session, commit=entry.commit, evidence=values)


def proposal(at: SchedulerView, task: Task, session: FleetSession, why: str, kind: EscalationKind) -> Escalate:
    blocker = BlockerKind.CONFLICT if kind is EscalationKind.CONFLICT else BlockerKind.FAILED
    asked = say(_language(at), "ask_proposal", why=in_language(_language(at), why), rounds=session.rounds)
    return _escalate(at, task, kind, asked, blocker, session, evidence={"round": session.rounds})


def closure(at: SchedulerView, task: Task, session: FleetSession, target: str, landed: str) -> Escalate:
    reason = in_language(_language(at), session.reason)
    asked = say(_language(at), "ask_closure", target=target, landed=landed[:7], reason=reason)
    values = {"landed": landed, "part": session.part, "target": target, "last_reason": reason}
    return _escalate(at, task, EscalationKind.ATTEMPTS, asked, None, session, evidence=values)


def review(
    at: SchedulerView, task: Task, session: FleetSession | None, commit: str, why: str, last: Review | None = None
) -> Escalate:
    values: dict[str, Any] = {"round": session.reviews if session else 0}
    if last is not None:
        values |= {"review": last.task, "findings": list(last.findings), "reviewer": last.reviewer}
    return _escalate(
        at, task, EscalationKind.REVIEW, in_language(_language(at), why), None, session, commit=commit, evidence=values
    )


def budget(at: SchedulerView, task: Task, session: FleetSession | None, found: Budget) -> Escalate:
    asked = say(_language(at), "ask_budget", what=in_language(_language(at), found.what), setting=found.setting)
    values = {"scope": found.scope, "spent_usd": found.spent, "limit_usd": found.limit}
    return _escalate(at, task, EscalationKind.BUDGET, asked, BlockerKind.RESOURCE, session, evidence=values)


def plan(at: SchedulerView, task: Task, proposed: Plan) -> Escalate:
    asked = say(_language(at), "ask_plan", count=len(proposed.subtasks))
    values = {
        "plan": proposed.id,
        "summary": proposed.summary,
        "subtasks": [msgspec.to_builtins(subtask) for subtask in proposed.subtasks],
    }
    made = _escalate(at, task, EscalationKind.PLAN, asked, None, None, evidence=values)
    return Escalate(escalation=msgspec.structs.replace(made.escalation, run=proposed.run))


def stopped(at: SchedulerView, task: Task, why: str, blocks: bool, **evidence: Any) -> Escalate:
    blocker = BlockerKind.DEPENDENCY if blocks else None
    return _escalate(
        at, task, EscalationKind.STOPPED, in_language(_language(at), why), blocker, None, evidence=evidence
    )


def _escalate(
    at: SchedulerView,
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
    spent = at.field.ledger.by_task.get(task.number, Cost())
    values: dict[str, Any] = {"cost_usd": spent.cost_usd, "tokens": spent.tokens}
    if session is not None:
        values |= {"branch": session.branch, "agent": session.agent}
    escalation = Escalation(
        task=task.number,
        kind=kind,
        question=asked,
        run=session.run if session else "",
        commit=commit or (session.verified if session else ""),
        evidence=values | evidence,
    )
    blocks = blocks_as is not None and task.status in _BLOCKABLE
    return Escalate(escalation=escalation, blocker=Blocker(blocks_as, asked) if blocks and blocks_as else None)
