"""One session of one agent: set up, loop, verify, deliver, end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import CheckBrokenError, DiskFullError, GenbaError, is_disk_full
from genba.domain.events import WorkSentBack
from genba.domain.ports import Steps
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.loop_state import Feedback, LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.workspaces import Workspace
from genba.execution.delivery.finalize import Finalized
from genba.execution.delivery.issue_updates import IssueKeeper
from genba.execution.delivery.session_delivery import FinishedWork, SessionDelivery
from genba.execution.delivery.session_end import SessionEnding
from genba.execution.loop.iterations import Loop
from genba.execution.loop.observation import Observing
from genba.execution.loop.prompts import Prompts
from genba.execution.run_values import Opened, RunPlan, RunResult
from genba.execution.session_context import SessionContext
from genba.execution.session_progress import SessionProgress
from genba.execution.setup import ReadySession, SessionSetup
from genba.execution.shield import uncut
from genba.judgement.loop.closure import ending_a_phase
from genba.judgement.loop.rework import after_failed_delivery
from genba.judgement.loop.transitions import working_step
from genba.judgement.loop.verdicts import Judge

if TYPE_CHECKING:
    from genba.execution.delivery.task_updates import TaskKeeper
    from genba.execution.loop.state_driven import StateDrivenLoop

_STOPPED = "stopped: it can be resumed from here"


class Session:
    """Drives the loop: from its journal alone, or by durable steps."""

    def __init__(self, plan: RunPlan, context: SessionContext, progress: SessionProgress | None = None) -> None:
        self.plan = plan
        self.context = context
        self.progress = progress or SessionProgress(plan)
        self.definition = plan.definition
        self.judge = Judge(self.definition, context.agent.completion_handlers, context.agent.fits_schema)
        self.issues = IssueKeeper(self.definition, context, plan.issue)
        self.tasks = self._task_keeper()
        self.setup = SessionSetup(plan, context, self.issues, self.tasks, self.progress.claiming)
        self.delivery = SessionDelivery(plan, context, self.tasks, self.judge)

    async def execute(self) -> RunResult:
        """Set up, work until the work is delivered or the session stops, and end."""
        progress = self.progress
        ready = await self.setup.enter()
        progress.proof = ready.proof
        progress.conflicts = tuple(dict.fromkeys((*self.plan.conflicts, *ready.opened.conflicts)))
        await self._take_feedback(ready.opened)
        began = self.context.clock.elapsed()
        finalized = await self._work(ready)
        progress.handed_over = finalized.handed_over or (finalized.waits and self.context.uses_merge_queue)
        workspace = progress.workspace or ready.workspace
        if progress.handed_over:
            await self.context.sharing.hand_over(workspace)  # not a step: a process that dies in it does it again
        ending = SessionEnding(self.plan, self.context, self.issues, self.tasks, ready.proof)
        end = partial(ending.end, progress.state, finalized, workspace, began)
        return await ready.steps.run("end", lambda: uncut(end()), RunResult)

    def _task_keeper(self) -> TaskKeeper | None:
        """The keeper of the task; None for a session without one, or one that only reads it."""
        context, issue = self.context, self.plan.issue
        only_reads = self.definition.only_reads and not self.issues.needs_tracker and not context.uses_merge_queue
        if context.task is None or issue is None or only_reads:
            return None
        return context.task.keeper(context.journal, issue, self.plan.run, self.definition.name)

    async def _take_feedback(self, opened: Opened) -> None:
        """Put feedback into the next prompt; a loop that had ended goes on with it.

        Iterations and time count from zero: who sends work back bounds how often.
        """
        progress, gap, reviewed = self.progress, opened.gap, opened.reviewed
        if self.plan.gap is not None:
            again = progress.state.again(self.plan.gap)
            progress.reached(msgspec.structs.replace(again, step=self._working_step()))
        elif gap is not None and self.plan.state is None:
            progress.reached(msgspec.structs.replace(progress.state, gap=gap.bounded(), reviewed=reviewed))
        elif gap is None or not reviewed or self.context.uses_merge_queue:
            return
        elif reviewed != progress.state.reviewed:
            await self._take_review(gap, reviewed)

    async def _take_review(self, gap: Feedback, reviewed: str) -> None:
        """Go on with the changes that a review requested; a session that is resumed later knows them already."""
        if self.tasks is not None:
            await self.tasks.rework(gap.detail)
        again = self.progress.state.again(gap)
        state = msgspec.structs.replace(again, step=self._working_step(), reviewed=reviewed)
        self.progress.reached(state)
        self.context.journal.emit(WorkSentBack(step=state.step, reason=gap.detail, state=msgspec.to_builtins(state)))

    def _working_step(self) -> str:
        """The step at which work that came back goes on."""
        state = self.progress.state
        return working_step(self.definition.registry.steps, state.step, state.asks_by_step)

    async def _work(self, ready: ReadySession) -> Finalized:
        """Start, loop and deliver. A stop and an error end the loop; the work stays where it is."""
        workspace, progress = ready.workspace, self.progress
        try:
            if self.issues.starts:
                await ready.steps.run("start", self.issues.start, type(None))
            return await self._work_until_delivered(ready)
        except asyncio.CancelledError:
            if self.context.resumes_elsewhere:
                raise
            await self.setup.sweep(self.plan.run)
            progress.stopped = True
            progress.reached(progress.spent_so_far().end(Outcome.INCOMPLETE, _STOPPED))
        except DiskFullError as error:
            error.hint = error.hint or f"free some space, then: genba run --resume {self.plan.run}"
            error.unchanged = f"the work is kept on {workspace.branch}, in {workspace.path}"
            raise
        except GenbaError as error:
            if self.plan.delivered:  # the work has landed, whatever becomes of what is left of it
                return Finalized(done=False, reason=error.message, hint=error.hint)
            progress.reached(progress.state.end(Outcome.FAILED, self.context.redact(error.message), error.hint))
        except OSError as error:
            if not is_disk_full(error):
                raise
            raise DiskFullError(
                f"the disk is full: {error.strerror}",
                unchanged=f"the work is kept on {workspace.branch}, in {workspace.path}",
                hint=f"free some space, then: genba run --resume {self.plan.run}",
            ) from error
        return Finalized(done=False)

    async def _work_until_delivered(self, ready: ReadySession) -> Finalized:
        """Loop, verify, deliver. What fails on the way out goes back into the loop."""
        progress, steps, workspace = self.progress, ready.steps, ready.workspace
        if self.plan.delivered:
            left = self._finished_work(ready, workspace)
            return await steps.run("clean up", partial(self.delivery.clean_up, left), Finalized)
        prompts = self._prompts(ready)
        while True:
            progress.workspace = workspace
            observing = Observing(self.judge, self.context, workspace, self.plan.issue)
            if progress.state.outcome is not Outcome.COMPLETED:
                await self._loop(steps, workspace, prompts, observing)
            if progress.state.outcome is not Outcome.COMPLETED:
                return Finalized(done=False)
            finalized = await self._verify_and_deliver(ready, workspace, observing)
            if finalized.red is None:
                return finalized
            if finalized.red.status is CheckStatus.ERROR:
                raise CheckBrokenError(f"the work could not be verified: {finalized.red.detail}")
            if self.definition.manages:  # it lands what others made, and works on nothing itself
                progress.reached(progress.state.end(Outcome.INCOMPLETE, self.context.redact(finalized.red.detail)))
                return finalized
            workspace = msgspec.structs.replace(workspace, base=finalized.base or workspace.base)
            send_back = partial(self._send_back, finalized.red, workspace)
            progress.reached(await steps.run("send back", send_back, LoopState))

    def _prompts(self, ready: ReadySession) -> Prompts:
        moves_on = self.tasks is not None and self.tasks.moves_on
        return Prompts(
            ending_a_phase(self.definition) if moves_on else self.definition,
            self.plan.run,
            ready.workspace,
            self.plan.parameters,
            ready.opened.issue,
            ready.opened.requirements,
            ready.proof.policy.described(self.definition.language) if ready.proof is not None else "",
            self.plan.handover,
        )

    async def _loop(self, steps: Steps, workspace: Workspace, prompts: Prompts, observing: Observing) -> None:
        agent, progress = self.context.agent, self.progress
        async with agent.open_environment(workspace) as session:
            instance = await agent.adapter.start(session)
            loop: Loop | StateDrivenLoop
            try:
                workflow = self.context.workflow
                if workflow is not None:
                    loop = workflow.loop(self.context, progress, workspace, prompts, instance)
                else:
                    loop = Loop(self.definition, self.context, workspace, self.judge, prompts, instance, observing)
                progress.loop = loop
                await loop.run(progress.state, steps, progress.reached)
                progress.loop = None
            finally:
                await asyncio.shield(agent.adapter.stop(instance))

    async def _verify_and_deliver(self, ready: ReadySession, workspace: Workspace, observing: Observing) -> Finalized:
        red = await self._verify(ready, workspace)
        if red is not None:
            return Finalized(done=False, red=red)
        work = self._finished_work(ready, workspace)
        if self.delivery.uses_merge_queue:
            return await self.delivery.hand_over(work)  # one change of status, which is safe to repeat
        deliver = partial(self.delivery.deliver, work, observing)
        return await ready.steps.run("deliver", deliver, Finalized)

    async def _verify(self, ready: ReadySession, workspace: Workspace) -> CheckResult | None:
        """Returns what stands in the way of the work; None when its goals hold, or there are none."""
        answer = self.context.answer
        problem = answer.problem(self.progress.state.output) if answer is not None else None
        if problem is not None or ready.proof is None:
            return problem
        return await ready.proof.verify(ready.steps, workspace, self.progress.conflicts)

    def _finished_work(self, ready: ReadySession, workspace: Workspace) -> FinishedWork:
        return FinishedWork(state=self.progress.state, workspace=workspace, issue=ready.opened.issue, proof=ready.proof)

    async def _send_back(self, red: CheckResult, workspace: Workspace) -> LoopState:
        """Another attempt with the check that failed on what would have landed, if there is one left."""
        if self.tasks is not None:
            await self.tasks.rework(red.detail)
        facts = await self.context.git.trees.observe(workspace)
        state = msgspec.structs.replace(self.progress.state, step=self._working_step())
        after = after_failed_delivery(self.judge, state, red, facts, self.context.redact)
        self.context.journal.emit(WorkSentBack(step=after.step, reason=after.reason, state=msgspec.to_builtins(after)))
        return after
