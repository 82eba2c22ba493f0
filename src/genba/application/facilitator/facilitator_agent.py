"""`genba run facilitator`: the steps of its definition, each answered by what was seen of the field."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.facilitator.facilitator import facilitator, fresh_copy, say, scope_of
from genba.coordination.facilitator.facilitator import unready, unready_for
from genba.domain.errors import UnrecoverableError, UsageError
from genba.domain.facilitation import FieldReport, Freshness, IssueState

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.coordination.facilitator.facilitator import TriageResult
    from genba.execution.run_values import RunPlan

ACTION = "facilitate-action"
"""Agents that declare this get the facts of the field, whatever their name is."""
STEPS = ("discover", "statuscheck", "blockercheck", "stalecheck", "facilitate", "report", "recheck", "complete")
"""The steps that code has an answer to. At any other step of such an agent, its own reply counts."""


class FieldAnswers:
    """One look for a whole run, repeated where a step asks for that.

    Raises UsageError for parameters that do not go together, before the run begins.
    """

    def __init__(self, context: ProjectContext, plan: RunPlan) -> None:
        given = plan.parameters
        if given.get("apply") and given.get("dryRun"):
            raise UsageError("--apply does it and --dry-run only shows it", hint="genba run facilitator --apply")
        self.context = context
        self.issue = plan.issue
        self.scope = scope_of(context, given.get("label"), given.get("project"), given.get("projectOwner"))
        self.applies, self.offline = bool(given.get("apply")), bool(given.get("offline"))
        self.look: TriageResult | None = None
        """The newest result, and what was written about it."""
        self._looking = asyncio.Lock()

    def knows(self, step: str) -> bool:
        return step in STEPS

    async def answer(self, step: str) -> dict[str, Any]:
        async with self._looking:
            if self.look is None or step == "recheck":
                self.look = await self._take()
        report = self.look.report
        if step == "complete" and (missing := self._missing(self.look)):
            raise UnrecoverableError(f"the field is not ready: {'; '.join(missing)}")
        way = "closing" if step == "complete" else "next"
        return {**_reply(step, report), "next_action": {"action": way}}

    def _missing(self, look: TriageResult) -> tuple[str, ...]:
        """What keeps the run from its end. As the stage of a task it ends by the issue of that task, not by others."""
        if self.issue is not None:
            return unready_for(look, self.issue)
        return look.report.incomplete if self.applies else unready(look.report)

    async def settle(self, step: str, answered: dict[str, Any]) -> None:
        """Say what was proposed, in the words that were found for it."""
        if step != "facilitate" or not self.applies or self.look is None:
            return
        if os.environ.get("GENBA_RUN"):
            raise UnrecoverableError("an agent may not speak for the facilitator")
        words = {(each["action"], each["issue"]): str(each["body"]) for each in answered["actions"]}
        self.look = await say(self.context, self.look, words, offline=self.offline)

    async def _take(self) -> TriageResult:
        scope, notes = await fresh_copy(self.context, self.scope, self.offline)
        return await (await facilitator(self.context)).look(scope, notes)


def _reply(step: str, report: FieldReport) -> dict[str, Any]:
    match step:
        case "discover":
            return {"agents": msgspec.to_builtins(report.agents), "discoveredAt": report.looked_at}
        case "statuscheck" | "recheck":
            return {"assessments": msgspec.to_builtins(report.assessments)}
        case "blockercheck":
            blocked = [each for each in report.assessments if each.state is IssueState.BLOCKED]
            found = [{"issue": each.issue, "blocker": blocker.detail} for each in blocked for blocker in each.blockers]
            return {"blockers": found}
        case "stalecheck":
            left = [each for each in report.assessments if not each.closed and each.freshness is Freshness.STALE]
            return {"stale": [{"issue": each.issue, "since": each.last_at} for each in left]}
        case "facilitate":
            return {"actions": msgspec.to_builtins(report.actions)}
        case "report":
            best = report.recommendation.suggestions[:1]
            priority = {"priority": best[0].priority} if best else {}
            return {"recommendations": [{**msgspec.to_builtins(report.recommendation), **priority}]}
    return {}
