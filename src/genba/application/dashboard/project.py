"""The field, as the dashboard looks at it: the facilitator's report, and what is at work beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from genba.application.facilitator.facilitator import as_kept, facilitator, report_of
from genba.coordination.facilitator.facilitator import Scope
from genba.domain.facilitation import IssueAssessment, IssueState
from genba.domain.fleet.progress import DecisionView, command_for
from genba.domain.views.project import IssueLine, ProjectView, StateRow

if TYPE_CHECKING:
    from genba.application.dashboard.queries import DashboardQueries
    from genba.coordination.facilitator.facilitator import TriageResult
    from genba.judgement.views.status_reasons import TaskStatusReason

_NAMED = 8
_SHOWN = 20
_ORDER = (
    IssueState.BLOCKED,
    IssueState.UNKNOWN,
    IssueState.IN_PROGRESS,
    IssueState.REVIEW_PENDING,
    IssueState.INCOMPLETE,
    IssueState.DONE,
)


class FieldWindow:
    """Looks at the field at most once for each change of the blackboard, however many ask."""

    def __init__(self, queries: DashboardQueries) -> None:
        self.queries = queries
        self._lock = asyncio.Lock()
        self._seen: tuple[int, TriageResult] | None = None

    async def look(self) -> TriageResult:
        """What the facilitator sees. It asks no tracker, and says nothing there."""
        async with self._lock:
            stamp = await asyncio.to_thread(self.queries.stamp)
            if self._seen is None or self._seen[0] != stamp:
                context = self.queries.context
                scope = await asyncio.to_thread(as_kept, context, Scope())
                look = await (await facilitator(context)).look(scope)
                # It is as new as its beginning: what is written meanwhile is seen by the next look. What the look
                # itself keeps makes one look too many, and that one has nothing to keep.
                self._seen = (stamp, look)
            return self._seen[1]

    async def report(self) -> dict[str, Any]:
        """The whole report for a program, as `genba status --json` prints it."""
        look = await self.look()
        return await asyncio.to_thread(report_of, look)

    async def picture(self) -> ProjectView:
        look = await self.look()
        report = await asyncio.to_thread(lambda: look.report)
        standing = await asyncio.to_thread(self.queries.standing)
        titles = {each.issue: each.title for each in report.assessments}
        working = [standing.card(task) for task in standing.field.tasks.values()]
        return ProjectView(
            looked_at=report.looked_at,
            total=len(report.assessments),
            health=report.health,
            needs=tuple(_needs(standing, titles)),
            working=tuple(card for card in working if card.alive)[:_SHOWN],
            suggestions=report.recommendation.suggestions[:_NAMED],
            reason=report.recommendation.reason,
            states=tuple(_states(report.assessments, standing)),
            orphaned=report.orphaned[:_SHOWN],
            notes=(*report.notes, *(f"the agent {name} is left out: {why}" for name, why in report.broken.items())),
        )


def _needs(standing: TaskStatusReason, titles: Mapping[int, str]) -> Iterable[DecisionView]:
    for each in list(standing.asked.values())[:_SHOWN]:
        task = standing.field.tasks.get(each.task)
        yield DecisionView(
            task=each.task,
            kind=each.kind,
            question=each.question,
            command=command_for(each.kind, each.task),
            title=task.title if task is not None else titles.get(each.task, ""),
            since=each.created_at,
        )


def _states(assessments: Iterable[IssueAssessment], standing: TaskStatusReason) -> Iterable[StateRow]:
    by_state: dict[IssueState, list[IssueAssessment]] = {}
    for each in assessments:
        by_state.setdefault(each.state, []).append(each)
    for state in _ORDER:
        found = by_state.get(state, [])
        if found:
            # Of what is done the newest are worth a name; of the rest, those that have waited longest come first.
            named = sorted(found, key=lambda each: each.issue, reverse=state is IssueState.DONE)[:_NAMED]
            yield StateRow(state=state, total=len(found), issues=tuple(_line(each, standing) for each in named))


def _line(each: IssueAssessment, standing: TaskStatusReason) -> IssueLine:
    return IssueLine(
        number=each.issue,
        title=each.title,
        evidence=each.evidence[0] if each.evidence else "",
        blocker=each.blockers[0] if each.blockers else None,
        has_task=each.issue in standing.field.tasks or each.closed,
    )
