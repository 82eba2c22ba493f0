"""What the dashboard looks at of what waits for people: each with everything that is needed to decide it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.blackboard.fleet.session_segments import sessions as sessions_of
from genba.blackboard.tasks.task_rows import task_with_rows
from genba.blackboard.views import task_views
from genba.domain.decoding import fitted
from genba.domain.fleet.records import Escalation, EscalationKind, Plan, Subtask
from genba.domain.views.task import DecisionDetails, DecisionsView
from genba.judgement.views.task_actions import ways_of

if TYPE_CHECKING:
    from genba.application.dashboard.queries import DashboardQueries
    from genba.blackboard.database.store import Transaction
    from genba.domain.fleet.records import FleetSnapshot

MOST_OPEN = 100


class ApprovalsWindow:
    """Looks at what only people can decide."""

    def __init__(self, queries: DashboardQueries) -> None:
        self.queries = queries

    def picture(self) -> DecisionsView:
        """What is open, newest first, and what was decided last."""
        field = self.queries.field()
        waiting = [each for each in field.escalations if each.status == "open"]
        newest = {each.task: each.id for each in waiting}

        def read(tx: Transaction) -> DecisionsView:
            found = tuple(
                _approval(tx, each, field, newest[each.task] == each.id) for each in reversed(waiting[-MOST_OPEN:])
            )
            decided, titles = task_views.decided(tx)
            return DecisionsView(open=found, decided=decided, titles=titles)

        return self.queries.fleet.store.read(read)


def _approval(tx: Transaction, escalation: Escalation, field: FleetSnapshot, is_next: bool) -> DecisionDetails:
    task = task_with_rows(tx, escalation.task).task
    sessions = tuple(sessions_of(tx, task.number))
    verdicts = task_views.verdicts(tx, task.id, 1)
    entries = task_views.entries(tx, task.id, 1)
    plan = next((each for each in reversed(field.plans) if each.task == task.number), None)
    return DecisionDetails(
        escalation=escalation,
        task=task,
        ways=ways_of(escalation.kind),
        next=is_next,
        sessions=sessions,
        verification=task_views.verdict(tx, task.id, verdicts[0].id) if verdicts else None,
        plan=(proposed(escalation) or plan) if escalation.kind is EscalationKind.PLAN else None,
        entry=entries[0] if entries else None,
        cost_usd=sum(each.cost_usd for each in sessions),
        tokens=sum(each.tokens for each in sessions),
    )


def proposed(escalation: Escalation) -> Plan | None:
    """The plan as it was when the question was asked."""
    result = escalation.evidence
    try:
        parts = fitted(result.get("subtasks"), tuple[Subtask, ...])
    except msgspec.ValidationError:
        return None
    return Plan(task=escalation.task, subtasks=parts, summary=str(result.get("summary", "")))
