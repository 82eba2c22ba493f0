"""Ends a session: its closure, its issue, its task, its last events and its result."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import DiskFullError, GenbaError
from genba.domain.events import LoopEnded, RunEnded
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.workspaces import MergeStatus, Workspace
from genba.execution.delivery.finalize import Finalized
from genba.execution.delivery.issue_updates import IssueKeeper
from genba.execution.delivery.session_delivery import closure_action
from genba.execution.run_values import RunPlan, RunResult
from genba.execution.session_context import SessionContext
from genba.judgement.loop.budgets import exhausted, raised_limit
from genba.judgement.loop.closure import ends_task

if TYPE_CHECKING:
    from genba.execution.delivery.task_updates import TaskKeeper
    from genba.execution.verification.session_verification import Proof


class SessionEnding:
    """Ends one session."""

    def __init__(
        self,
        plan: RunPlan,
        context: SessionContext,
        issues: IssueKeeper,
        tasks: TaskKeeper | None,
        proof: Proof | None,
    ) -> None:
        self.plan = plan
        self.context = context
        self.definition = plan.definition
        self.settings = plan.definition.file.runner
        self.issues = issues
        self.tasks = tasks
        self.proof = proof

    async def end(self, state: LoopState, finalized: Finalized, workspace: Workspace, began: float) -> RunResult:
        """Carry out the closure and let go of issue and task. Safe to repeat."""
        outcome, reason = state.outcome or Outcome.FAILED, state.reason
        self.context.journal.emit(
            LoopEnded(outcome=outcome, reason=reason, usage=state.usage, seconds=round(state.seconds, 3))
        )
        if outcome is Outcome.COMPLETED and finalized.done:
            finalized = await self._close(state, finalized, workspace)
        hint = self._hint(state, outcome)
        if outcome is Outcome.COMPLETED and not finalized.done:
            stuck = finalized.merge is MergeStatus.CONFLICT or (finalized.waits and not self.context.uses_merge_queue)
            outcome = Outcome.BLOCKED if stuck else Outcome.INCOMPLETE
            reason, hint = self.context.redact(finalized.reason), finalized.hint
        if not (finalized.waits or finalized.handed_over):
            await self.issues.end(outcome, reason)
        if self.tasks is not None:
            conflict = finalized.merge is MergeStatus.CONFLICT
            verified = state.outcome is Outcome.COMPLETED and not conflict
            if outcome is not Outcome.COMPLETED and not verified:  # verified work stays in review until it lands
                await self.tasks.stop(outcome, reason, conflict)
            await self.tasks.end(outcome, reason, state, self._lands_on(workspace))
        merged = finalized.commit if finalized.merge is MergeStatus.MERGED else self.plan.merged
        seconds = round(self.context.clock.elapsed() - began, 3)
        self.context.journal.emit(
            RunEnded(
                outcome=outcome,
                reason=reason,
                usage=state.usage,
                iterations=state.iterations,
                seconds=seconds,
                merged=merged,
            )
        )
        proof = self.proof
        return RunResult(
            run=self.plan.run,
            agent=self.definition.name,
            outcome=outcome,
            reason=reason,
            hint=hint,
            iterations=state.iterations,
            seconds=seconds,
            usage=state.usage,
            branch=workspace.branch,
            workdir=workspace.path,
            sandbox=self.context.agent.sandbox.kind,
            merged=merged,
            merge=finalized.merge,
            conflicts=finalized.paths,
            pull_request=finalized.pull_request,
            issue=self.plan.issue,
            verified=proof.held if proof is not None and proof.done else "",
            verdict=proof.verdict if proof is not None else "",
            output=state.output,
            review=finalized.review,
        )

    def _lands_on(self, workspace: Workspace) -> str:
        """The branch that a merge alone brings the work to; empty where something else delivers or closes it."""
        finalize = self.settings.execution.finalize
        merges = finalize.auto_merge and workspace.isolated and not (finalize.push or finalize.create_pr)
        own = self.tasks is not None and self.tasks.own
        return workspace.base_branch if merges and own else ""

    async def _close(self, state: LoopState, finalized: Finalized, workspace: Workspace) -> Finalized:
        try:
            action = closure_action(self.plan, self.context, self.tasks, state.closure)
            carry_out = partial(self.issues.complete, state.closure, finalized.arrived, workspace.branch, action)
            awaited = self.tasks is not None and self.tasks.moves_on and not finalized.arrived
            if not ends_task(action) and not awaited:  # the next agent on the task finds its labels
                await carry_out()
            if self.tasks is not None:
                await self.tasks.complete(finalized, action)
            if ends_task(action):
                await carry_out()
        except DiskFullError:
            raise  # it is closed when there is room
        except GenbaError as error:
            reason = f"the issue could not be closed: {error.message}"
            again = f"genba run --resume {self.plan.run}"
            return msgspec.structs.replace(finalized, done=False, reason=reason, hint=again)
        return finalized

    def _hint(self, state: LoopState, outcome: Outcome) -> str:
        """The next command, for a session that did not complete."""
        again = f"genba run --resume {self.plan.run}"
        match outcome:
            case Outcome.COMPLETED:
                return ""
            case Outcome.BUDGET_EXHAUSTED:
                return f"{again} --set {raised_limit(state, self.definition)}"
        spent = exhausted(state, self.definition)
        if spent is not None and not (outcome is Outcome.FAILED and state.hint):  # an error has its own hint
            return f"{again} --set {spent.setting}"
        hint = state.hint
        if outcome is Outcome.BLOCKED and state.denied:
            hint = "runner.boundaries.allowedTools and permissionMode say what the agent may use"
        return f"{hint}\n{again}" if hint and again not in hint else again
