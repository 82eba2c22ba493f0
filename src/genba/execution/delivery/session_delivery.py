"""Delivers the verified work of a session: to the merge queue, to a reviewer, to its base, or to a forge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import StateConflictError
from genba.domain.sessions.evidence import CheckResult
from genba.domain.sessions.loop_state import ClosureChoice, LoopState
from genba.domain.sessions.outcomes import ClosureAction
from genba.domain.sessions.trailers import trailers
from genba.domain.sessions.workspaces import MergeStatus, Workspace
from genba.domain.text_limits import subject_of
from genba.domain.tracker.issues import Issue
from genba.execution.delivery.finalize import Delivery, Finalized, Finalizer
from genba.execution.loop.observation import Observing
from genba.execution.run_values import RunPlan
from genba.execution.session_context import SessionContext
from genba.judgement.loop.closure import action_in_fleet, chosen_action
from genba.judgement.loop.verdicts import Judge

if TYPE_CHECKING:
    from genba.execution.delivery.task_updates import TaskKeeper
    from genba.execution.verification.session_verification import Proof


class FinishedWork(msgspec.Struct, frozen=True, kw_only=True):
    """What a loop that completed has come to."""

    state: LoopState
    workspace: Workspace
    issue: Issue | None
    proof: Proof | None


class SessionDelivery:
    """Delivers what one session has come to."""

    def __init__(self, plan: RunPlan, context: SessionContext, tasks: TaskKeeper | None, judge: Judge) -> None:
        self.plan = plan
        self.context = context
        self.tasks = tasks
        self.judge = judge
        self.definition = plan.definition
        self.settings = plan.definition.file.runner.execution.finalize

    @property
    def uses_merge_queue(self) -> bool:
        """True when the merge queue brings the work to its base."""
        lands = self.settings.auto_merge and not self.settings.create_pr
        return self.context.uses_merge_queue and self.tasks is not None and lands

    async def hand_over(self, work: FinishedWork) -> Finalized:
        """Leave verified work to the merge queue."""
        assert self.tasks is not None  # noqa: S101  (see uses_merge_queue)
        await self.tasks.reach_review()
        message = f"{self.tasks.verified[:7]} is verified, and waits to land on {work.workspace.base_branch}"
        return Finalized(done=False, handed_over=True, reason=message)

    async def deliver(self, work: FinishedWork, observing: Observing) -> Finalized:
        """Merge, push or propose the work; or say what it waits for."""
        await self.context.sharing.share(work.workspace)
        if self.context.answer is not None and self.context.answer.deliver is not None:
            return await self.context.answer.deliver(work.state.output, work.workspace)
        waits = await self._may_land(self.tasks) if self.tasks is not None else ""
        if waits and self.tasks is not None:
            asked = "" if self.context.uses_merge_queue else await self.tasks.ask_review()
            hint = f"{asked}\ngenba run --resume {self.plan.run}".strip()
            return Finalized(done=False, waits=True, reason=waits, hint=hint)
        self._check_bound(work)
        checks = self.judge.final_checks(work.state.step)

        async def verify() -> CheckResult | None:
            return await observing.first_failure(work.state, checks)

        finalizer = Finalizer(
            self.context,
            work.workspace,
            self.settings,
            self.plan.run,
            verify if checks else None,
            self.definition.only_reads,
            work.proof,
        )
        return await finalizer.finalize(self._delivery(work))

    async def clean_up(self, work: FinishedWork) -> Finalized:
        """Remove what is left of a session whose work has landed already."""
        if self.context.answer is not None and self.context.answer.deliver is not None:
            return await self.context.answer.deliver(work.state.output, work.workspace)
        if self.plan.merged and self.context.uses_merge_queue:
            finalizer = Finalizer(self.context, work.workspace, self.settings, self.plan.run)
            return await finalizer.send_landed(self._delivery(work), self.plan.merged)
        await self.context.git.trees.close(work.workspace)
        merge = MergeStatus.MERGED if self.plan.merged else None
        return Finalized(done=True, merge=merge, commit=self.plan.merged)

    def _check_bound(self, work: FinishedWork) -> None:
        """Refuse to deliver for a session that names a task whose goals did not judge the work."""
        settings, workspace = self.settings, work.workspace
        leaves = (workspace.isolated and settings.auto_merge) or settings.push or settings.create_pr
        if self.plan.issue is None or not leaves or self.context.task is None:
            return
        if self.tasks is None or work.proof is None or work.proof.tasks is not self.tasks:
            raise StateConflictError(
                f"the work on {workspace.branch} names task #{self.plan.issue} and was not held to its goals",
                unchanged="nothing was merged, pushed or closed.",
                hint=f"genba verify {self.plan.issue}",
            )

    async def _may_land(self, tasks: TaskKeeper) -> str:
        """Why the work stays here for now; a pull request that Genba follows is reviewed on its forge."""
        tracker = self.context.tracker
        if tracker.refresh is not None and self.plan.issue is not None:
            await tracker.refresh(self.plan.issue)
        return await tasks.may_land(self.settings.create_pr and tracker.follows_pull_requests)

    def _delivery(self, work: FinishedWork) -> Delivery:
        issue = work.issue
        subject, body = subject_of(issue.title, issue.number) if issue else ("", "")
        lines = body + trailers(issue.number if issue else None, self.definition.name, self.plan.run)
        delivery = Delivery(subject=subject or work.workspace.branch, trailers=lines, judged=work.state.judged)
        if not self.settings.create_pr:
            return delivery
        from genba.execution.delivery.pull_request import proposed  # noqa: PLC0415  (only with a pull request)

        action = closure_action(self.plan, self.context, self.tasks, work.state.closure)
        return proposed(self.plan, self.context, self.tasks, work, delivery, action)


def closure_action(
    plan: RunPlan, context: SessionContext, tasks: TaskKeeper | None, choice: ClosureChoice
) -> ClosureAction | None:
    """What becomes of the task in the end; None where its issue on GitHub stays open.

    The integration only controls writes to GitHub: a local task ends by its verified work either way.
    """
    settings = plan.definition.file.runner.integrations.github
    moves_on = tasks is not None and tasks.moves_on
    if context.uses_merge_queue or moves_on:
        return action_in_fleet(settings, choice, moves_on)
    own = tasks is not None and tasks.own
    return chosen_action(settings, choice) if settings.enabled or own else None
