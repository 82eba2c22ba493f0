"""One run of one agent, from its workspace to its closure."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import CheckBrokenError, DiskFullError, GenbaError, StateConflictError, is_disk_full
from genba.domain.events import LoopEnded, RunEnded, WorkSentBack
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.loop_state import Feedback, LoopState
from genba.domain.sessions.outcomes import ClosureAction, Outcome
from genba.domain.sessions.trailers import trailers
from genba.domain.sessions.workspaces import MergeStatus, Workspace
from genba.domain.text_limits import subject_of
from genba.domain.tracker.issues import Issue
from genba.execution.delivery.finalize import Delivery, Finalized, Finalizer
from genba.execution.delivery.issue_updates import IssueKeeper
from genba.execution.loop.ask import Asking
from genba.execution.loop.iterations import Loop
from genba.execution.loop.journal_steps import GroundlessSteps
from genba.execution.loop.observation import Observing
from genba.execution.loop.prompts import Prompts, gap_section, handover_section
from genba.execution.run_values import Opened, RunPlan, RunResult
from genba.execution.session_context import SessionContext
from genba.execution.setup import Opening
from genba.execution.shield import uncut
from genba.judgement.language.sentences import detail_in
from genba.judgement.language.wording import say
from genba.judgement.loop.budgets import exhausted, raised_limit
from genba.judgement.loop.claims import ClaimKind, read_claim
from genba.judgement.loop.closure import action_in_fleet, chosen_action, ending_a_phase, ends_task
from genba.judgement.loop.completion import SchemaFit
from genba.judgement.loop.transitions import working_step
from genba.judgement.loop.verdicts import Judge

if TYPE_CHECKING:
    from genba.execution.delivery.task_updates import TaskKeeper
    from genba.execution.loop.state_driven import StateDrivenLoop
    from genba.execution.verification.session_verification import Proof, Proved

__all__ = ["Run", "RunPlan", "RunResult"]

SUSPENDED = "suspended: it was told to stop, and can go on from here"
_OF_ANSWERS = ("plan", "review")
"""Checks of what was answered, not of what was committed."""


class Run:
    """Drives the loop: from its journal alone, or by steps that something durable remembers."""

    def __init__(self, plan: RunPlan, world: SessionContext, fits: SchemaFit) -> None:
        self.plan = plan
        self.world = world
        self.definition = plan.definition
        self.settings = plan.definition.file.runner
        self.state = plan.state or LoopState(step=plan.definition.entry_step(plan.mode))
        self.judge = Judge(self.definition, world.completion_handlers, fits)
        self.issues = IssueKeeper(self.definition, world, plan.issue)
        self.loop: Loop | StateDrivenLoop | None = None
        """The loop while it runs."""
        self.workspace: Workspace | None = None
        """Where it works by now: a base that moved is another one."""
        self.handed_over = False
        """Whether its work is verified, and others review it and bring it to its base."""
        self.tasks = self._keeper()
        self.proof: Proof | None = None
        """Verifies the work, where a task or the Definition of Done asks for it."""
        self.opening = Opening(plan, world, self.issues, self.tasks)
        self.conflicts = plan.conflicts
        """Paths that were in conflict: work that still has the markers in them is not done."""
        self.claiming = asyncio.Lock()
        """Held while the work is looked at, which an agent that asks may claim to be done while it lives."""

    async def execute(self) -> RunResult:
        opened = await self.world.steps.run("open", self.opening.open, Opened)
        workspace = opened.workspace if self.opening.entered else await self.opening.open_again(opened)
        if self.opening.gone is not None:
            steps = GroundlessSteps(self.world.steps, self.opening.gone)
            self.world = msgspec.structs.replace(self.world, steps=steps)
        self.proof = self.opening.proof
        await self._know(opened)
        self.conflicts = tuple(dict.fromkeys((*self.plan.conflicts, *opened.conflicts)))
        began = self.world.clock.elapsed()
        finalized = Finalized(done=False)
        try:
            if self.issues.starts:
                await self.world.steps.run("start", self.issues.start, type(None))
            finalized = await self._work(workspace, opened)
        except asyncio.CancelledError:
            if self.world.durable:
                raise
            await self.opening.sweep(self.plan.run)
            reached = self.state if self.loop is None else self.loop.spent_so_far(self.state)
            self._reached(reached.end(Outcome.INCOMPLETE, SUSPENDED))
        except DiskFullError as error:
            error.hint = error.hint or f"free some space, then: genba run --resume {self.plan.run}"
            error.unchanged = f"the work is kept on {workspace.branch}, in {workspace.path}"
            raise
        except GenbaError as error:
            if self.plan.delivered:  # the work has landed, whatever becomes of what is left of it
                finalized = Finalized(done=False, reason=error.message, hint=error.hint)
            else:
                self._reached(self.state.end(Outcome.FAILED, self.world.redact(error.message), error.hint))
        except OSError as error:
            if not is_disk_full(error):
                raise
            raise DiskFullError(
                f"the disk is full: {error.strerror}",
                unchanged=f"the work is kept on {workspace.branch}, in {workspace.path}",
                hint=f"free some space, then: genba run --resume {self.plan.run}",
            ) from error
        self.handed_over = finalized.handed_over or (finalized.waits and self.world.hands_over)
        ending = partial(self._end, finalized, self.workspace or workspace, began)
        return await self.world.steps.run("end", lambda: uncut(ending()), RunResult)

    async def _know(self, opened: Opened) -> None:
        """Put into the next prompt what the run must know first; a loop that had ended goes on with it.

        It has its iterations and its time anew: how often work comes back is bounded by whoever sends it.
        """
        gap, reviewed = opened.gap, opened.reviewed
        if self.plan.gap is not None:
            again = self.state.again(self.plan.gap)
            self._reached(msgspec.structs.replace(again, step=self._working_step()))
        elif gap is not None and self.plan.state is None:
            self._reached(msgspec.structs.replace(self.state, gap=gap.bounded(), reviewed=reviewed))
        elif gap is not None and reviewed and reviewed != self.state.reviewed and not self.world.hands_over:
            await self._know_review(gap, reviewed)

    async def _know_review(self, gap: Feedback, reviewed: str) -> None:
        """Go on with the changes that a review requested; a run that is resumed later knows them already."""
        if self.tasks is not None:
            await self.tasks.rework(gap.detail)
        again = self.state.again(gap)
        self._reached(msgspec.structs.replace(again, step=self._working_step(), reviewed=reviewed))
        sent_back = WorkSentBack(step=self.state.step, reason=gap.detail, state=msgspec.to_builtins(self.state))
        self.world.journal.emit(sent_back)

    def _reached(self, state: LoopState) -> None:
        self.state = state

    def _keeper(self) -> TaskKeeper | None:
        """The keeper of the task; None for a session without one, or one that only reads it."""
        only_reads = self.definition.only_reads and not self.issues.needs_tracker and not self.world.hands_over
        world, issue = self.world, self.plan.issue
        if world.ledger is None or issue is None or only_reads:
            return None
        from genba.execution.delivery.task_updates import TaskKeeper  # noqa: PLC0415  (only a run with a task pays for it)

        return TaskKeeper(
            world.ledger, world.journal, issue, self.plan.run, self.definition.name, world.stages, world.knows_agent
        )

    async def _work(self, workspace: Workspace, opened: Opened) -> Finalized:
        """Loop, then deliver; what turns out red on the way out goes back into the loop."""
        steps, issue = self.world.steps, opened.issue
        if self.plan.delivered:
            return await steps.run("clean up", partial(self._delivered, workspace, issue), Finalized)
        goals = self.proof.policy.told(self.definition.language) if self.proof is not None else ""
        moves_on = self.tasks is not None and self.tasks.moves_on
        prompts = Prompts(
            ending_a_phase(self.definition) if moves_on else self.definition,
            self.plan.run,
            workspace,
            self.plan.parameters,
            issue,
            opened.requirements,
            goals,
            self.plan.handover,
        )
        while True:
            self.workspace = workspace
            observing = Observing(self.judge, self.world, workspace, self.plan.issue)
            if self.state.outcome is not Outcome.COMPLETED:
                await self._loop(workspace, prompts, observing)
            if self.state.outcome is not Outcome.COMPLETED:
                return Finalized(done=False)
            red = self.world.accepts(self.state.output) or await self._proved(workspace)
            finalized = Finalized(done=False, red=red)
            deliver = partial(self._deliver, workspace, issue, observing)
            if red is None and self._hands_over:
                finalized = await deliver()  # one change of status, which is safe to repeat and comes to the same
            elif red is None:
                finalized = await steps.run("deliver", deliver, Finalized)
            if finalized.red is None:
                return finalized
            if finalized.red.status is CheckStatus.ERROR:
                raise CheckBrokenError(f"the work could not be verified: {finalized.red.detail}")
            if self.definition.manages:  # it lands what others made, and works on nothing itself
                self._reached(self.state.end(Outcome.INCOMPLETE, self.world.redact(finalized.red.detail)))
                return finalized
            workspace = msgspec.structs.replace(workspace, base=finalized.base or workspace.base)
            self._reached(await steps.run("send back", partial(self._sent_back, finalized.red, workspace), LoopState))

    @property
    def _hands_over(self) -> bool:
        """Whether others bring its work to its base."""
        settings = self.settings.execution.finalize
        lands = settings.auto_merge and not settings.create_pr
        return self.world.hands_over and self.tasks is not None and lands

    async def _proved(self, workspace: Workspace) -> CheckResult | None:
        """What stands in the way of the branch as it is; None when its goals hold, or there are none."""
        if self.proof is None:
            return None
        from genba.execution.verification.session_verification import Proved  # noqa: PLC0415  (see _claim)

        proved = await self.world.steps.run("verify", partial(self._prove, self.proof, workspace), Proved)
        self.proof.recall(proved)
        return proved.red

    async def claim(self) -> Proved:
        """An instance that lives claims that the work is done: look at it as it stands. Safe to repeat."""
        workspace, proof = self.workspace, self.proof
        if workspace is None or proof is None:
            raise StateConflictError("there is nothing that could be verified yet")
        return await self._prove(proof, workspace)

    def known(self) -> str:
        """What whoever works must know first: what was tried before, and what the work came back with."""
        sections = [handover_section(self.plan.handover, self.definition.language)] if self.plan.handover else []
        sections += [gap_section(self.state.gap, self.definition.language)] if self.state.gap is not None else []
        return "\n\n".join(sections)

    async def _prove(self, proof: Proof, workspace: Workspace) -> Proved:
        from genba.execution.verification.session_verification import Proved  # noqa: PLC0415  (see _claim)

        async with self.claiming:
            known = await proof.known(workspace) if self.definition.state_driven else None
            if known is not None:
                return known
            markers = await self._markers_left(workspace)
            if markers is not None:
                return Proved(red=markers)
            proved = await proof.of_branch(workspace)
        return msgspec.structs.replace(proved, evidence=proof.told()) if self._proposes else proved

    @property
    def _proposes(self) -> bool:
        return self.settings.execution.finalize.create_pr

    async def _markers_left(self, workspace: Workspace) -> CheckResult | None:
        """Where the work still has the markers of the conflict that it came back with."""
        if not self.conflicts or self.world.rework is None:
            return None
        seen = await self.world.trees.observe(workspace)
        left = await self.world.rework.markers_left(seen.head, self.conflicts)
        if not left:
            return None
        result = say(self.definition.language, "markers_left", paths=", ".join(left))
        return CheckResult("conflict", CheckStatus.FAILED, result)

    async def _delivered(self, workspace: Workspace, issue: Issue | None) -> Finalized:
        """The work has landed already: what is left of it is taken away."""
        if self.world.answers is not None:
            return await self.world.answers(self.state.output, workspace)
        if self.plan.merged and self.world.hands_over:
            finalizer = Finalizer(self.world, workspace, self.settings.execution.finalize, self.plan.run, None)
            return await finalizer.send_landed(self._delivery(workspace, issue), self.plan.merged)
        await self.world.trees.close(workspace)
        merge = MergeStatus.MERGED if self.plan.merged else None
        return Finalized(done=True, merge=merge, commit=self.plan.merged)

    async def _loop(self, workspace: Workspace, prompts: Prompts, observing: Observing) -> None:
        async with self.world.quarters(workspace) as session:
            instance = await self.world.adapter.start(session)
            asking = Asking(self.definition, self.world, instance, self.plan.issue)
            try:
                self.loop = self._loop_of(workspace, prompts, asking, observing)
                await self.loop.run(self.state, self._reached)
                self.loop = None
            finally:
                await asyncio.shield(self.world.adapter.stop(instance))

    def _loop_of(
        self, workspace: Workspace, prompts: Prompts, asking: Asking, observing: Observing
    ) -> Loop | StateDrivenLoop:
        if not self.definition.state_driven:
            return Loop(self.definition, self.world, workspace, self.judge, prompts, asking, observing)
        from genba.execution.loop.state_driven import StateDrivenLoop  # noqa: PLC0415  (only a fleet has such agents)

        return StateDrivenLoop(self.definition, self.world, workspace, prompts, asking, self.claiming, self.proof)

    async def _deliver(self, workspace: Workspace, issue: Issue | None, observing: Observing) -> Finalized:
        checks = self.judge.final_checks(self.state.step)

        async def verify() -> CheckResult | None:
            return await observing.first_failure(self.state, checks)

        if self.world.answers is not None:
            return await self.world.answers(self.state.output, workspace)
        settings = self.settings.execution.finalize
        if self._hands_over and self.tasks is not None:
            await self.tasks.reach_review()
            message = f"{self.tasks.verified[:7]} is verified, and waits to land on {workspace.base_branch}"
            return Finalized(done=False, handed_over=True, reason=message)
        waits = await self._may_land(self.tasks) if self.tasks is not None else ""
        if waits and self.tasks is not None:
            asked = "" if self.world.hands_over else await self.tasks.ask_review(self.world)
            hint = f"{asked}\ngenba run --resume {self.plan.run}".strip()
            return Finalized(done=False, waits=True, reason=waits, hint=hint)
        self._check_bound(workspace)
        reads, check = self.definition.only_reads, verify if checks else None
        finalizer = Finalizer(self.world, workspace, settings, self.plan.run, check, reads)
        if self.proof is not None:
            # Where there was nothing to verify no commit holds, so what lands after all is verified first.
            finalizer.hold_to(self.proof.held, self.proof)
        return await finalizer.finalize(self._delivery(workspace, issue))

    def _check_bound(self, workspace: Workspace) -> None:
        """Refuse to deliver for a session that names a task whose goals did not judge the work."""
        finalize = self.settings.execution.finalize
        leaves = (workspace.isolated and finalize.auto_merge) or finalize.push or finalize.create_pr
        if self.plan.issue is None or not leaves or self.world.ledger is None:
            return
        if self.tasks is None or self.proof is None or self.proof.tasks is not self.tasks:
            raise StateConflictError(
                f"the work on {workspace.branch} names task #{self.plan.issue} and was not held to its goals",
                unchanged="nothing was merged, pushed or closed.",
                hint=f"genba verify {self.plan.issue}",
            )

    async def _may_land(self, tasks: TaskKeeper) -> str:
        """Why the work stays here for now; what is proposed on a forge that Genba follows is reviewed there."""
        if self.world.refresh is not None and self.plan.issue is not None:
            await self.world.refresh(self.plan.issue)
        return await tasks.may_land(self._proposes and self.world.follows)

    def _delivery(self, workspace: Workspace, issue: Issue | None) -> Delivery:
        subject, body = subject_of(issue.title, issue.number) if issue else ("", "")
        result = body + trailers(issue.number if issue else None, self.definition.name, self.plan.run)
        delivery = Delivery(subject=subject or workspace.branch, trailers=result, judged=self.state.judged)
        if not self._proposes:
            return delivery
        from genba.execution.delivery.pull_request import proposed  # noqa: PLC0415  (only with a pull request)

        return proposed(self, delivery, issue, self._closure_action())

    async def _sent_back(self, red: CheckResult, workspace: Workspace) -> LoopState:
        """A check that fails on what would have landed: another attempt, with that gap, if there is one left."""
        if self.tasks is not None:
            await self.tasks.rework(red.detail)
        facts = await self.world.trees.observe(workspace)
        message, denied = red, self.state.denied
        if red.name in _OF_ANSWERS:
            denied = ()
        elif red.name != "verification":
            language = self.definition.language
            alone = say(language, "committed_alone", detail=detail_in(language, red.name, red.detail))
            message = msgspec.structs.replace(red, detail=alone)
        self._reached(msgspec.structs.replace(self.state, step=self._working_step()))
        again = self.state.last_failure if red.name == "verification" else None
        # The judge adds the iteration that is under way, and here none is.
        before = msgspec.structs.replace(self.state, last_failure=again, iterations=self.state.iterations - 1)
        claim = read_claim(self.state.output)
        claimed = claim.text if claim.kind is ClaimKind.COMPLETE else ""
        verdict = self.judge.failed(before, claimed, message, facts, denied)
        reason = verdict.reason
        if verdict.outcome is not None and red.name in _OF_ANSWERS and red.output:
            reason = f"{reason}: {red.output.splitlines()[0]}"
        self._reached(
            msgspec.structs.replace(
                self.state,
                gap=verdict.gap,
                attempts=self.state.with_failed_attempt(),
                last_failure=verdict.failure or self.state.last_failure,
                outcome=verdict.outcome,
                reason=self.world.redact(reason),
                judged="",
            )
        )
        self.world.journal.emit(
            WorkSentBack(step=self.state.step, reason=self.state.reason, state=msgspec.to_builtins(self.state))
        )
        return self.state

    def _working_step(self) -> str:
        """Where work that came back goes on."""
        return working_step(self.definition.registry.steps, self.state.step, self.state.asks_by_step)

    async def _end(self, finalized: Finalized, workspace: Workspace, began: float) -> RunResult:
        state = self.state
        outcome, reason = state.outcome or Outcome.FAILED, state.reason
        self.world.journal.emit(
            LoopEnded(outcome=outcome, reason=reason, usage=state.usage, seconds=round(state.seconds, 3))
        )
        if outcome is Outcome.COMPLETED and finalized.done:
            finalized = await self._close(finalized, workspace)
        hint = self._hint(outcome)
        if outcome is Outcome.COMPLETED and not finalized.done:
            stuck = finalized.merge is MergeStatus.CONFLICT or (finalized.waits and not self.world.hands_over)
            outcome = Outcome.BLOCKED if stuck else Outcome.INCOMPLETE
            reason, hint = self.world.redact(finalized.reason), finalized.hint
        if not (finalized.waits or finalized.handed_over):
            await self.issues.end(outcome, reason)
        if self.tasks is not None:
            conflict = finalized.merge is MergeStatus.CONFLICT
            verified = state.outcome is Outcome.COMPLETED and not conflict
            if outcome is not Outcome.COMPLETED and not verified:  # verified work stays in review until it lands
                await self.tasks.stop(outcome, reason, conflict)
            await self.tasks.end(outcome, reason, state, self._lands_on(workspace))
        merged = finalized.commit if finalized.merge is MergeStatus.MERGED else self.plan.merged
        seconds = round(self.world.clock.elapsed() - began, 3)
        self.world.journal.emit(
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
            sandbox=self.world.sandbox,
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

    def _closure_action(self) -> ClosureAction | None:
        """What becomes of the task in the end; None where its issue on GitHub stays open.

        The integration only controls writes to GitHub: a task of our own ends by its verified work either way.
        """
        settings, tasks = self.settings.integrations.github, self.tasks
        moves_on = tasks is not None and tasks.moves_on
        if self.world.hands_over or moves_on:
            return action_in_fleet(settings, self.state.closure, moves_on)
        own = tasks is not None and tasks.own
        return chosen_action(settings, self.state.closure) if settings.enabled or own else None

    async def _close(self, finalized: Finalized, workspace: Workspace) -> Finalized:
        try:
            action = self._closure_action()
            carry_out = partial(self.issues.complete, self.state.closure, finalized.arrived, workspace.branch, action)
            awaited = self.tasks is not None and self.tasks.moves_on and not finalized.arrived
            if not ends_task(action) and not awaited:  # whoever takes the task next finds its labels
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

    def _hint(self, outcome: Outcome) -> str:
        """The next command, for a run that did not complete."""
        again = f"genba run --resume {self.plan.run}"
        match outcome:
            case Outcome.COMPLETED:
                return ""
            case Outcome.BUDGET_EXHAUSTED:
                return f"{again} --set {raised_limit(self.state, self.definition)}"
        spent = exhausted(self.state, self.definition)
        if spent is not None and not (outcome is Outcome.FAILED and self.state.hint):  # an error has its own way out
            return f"{again} --set {spent.setting}"
        hint = self.state.hint
        if outcome is Outcome.BLOCKED and self.state.denied:
            hint = "runner.boundaries.allowedTools and permissionMode say what the agent may use"
        return f"{hint}\n{again}" if hint and again not in hint else again
