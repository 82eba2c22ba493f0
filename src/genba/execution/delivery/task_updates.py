"""What a run does to its task on the blackboard. Every change goes through the one gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.domain.errors import StateConflictError
from genba.domain.events import Notice
from genba.domain.sessions.loop_state import Feedback, LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionEnd, SessionStart
from genba.domain.sessions.workspaces import MergeStatus, Workspace
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, Task, TaskStatus
from genba.execution.verification.verify import evidence
from genba.judgement.loop.closure import ends_task, moves_on, stage_of
from genba.judgement.verification.reviews import findings_gap, next_of_review

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from genba.domain.goals.verification import Verification
    from genba.domain.ports import Journal, TaskLedger
    from genba.domain.sessions.outcomes import ClosureAction
    from genba.execution.delivery.finalize import Finalized


class TaskContext(msgspec.Struct, frozen=True, kw_only=True):
    """The blackboard, for a session that works on a task of it."""

    ledger: TaskLedger
    host: str
    """The name of this machine."""
    is_branch_held: Callable[[str], bool]
    """True when a session on this machine holds a branch."""
    stages: Mapping[str, tuple[str, ...]]
    """By type of task: the agents that work on it one after the other."""
    knows_agent: Callable[[str], bool]
    reviewer: str
    """The agent that reviews the work of others."""
    review_rounds: int
    """How often reviewers may request changes before a person decides."""

    def keeper(self, journal: Journal, number: int, run: str, agent: str) -> TaskKeeper:
        return TaskKeeper(self, journal, number, run, agent)


class TaskKeeper:
    """Keeps the task of one session: claims it, records what was verified, and lets go of it in the right status."""

    def __init__(self, context: TaskContext, journal: Journal, number: int, run: str, agent: str) -> None:
        self.context = context
        self.ledger = context.ledger
        self.journal = journal
        self.number = number
        self.run = run
        self.agent = agent
        self.actor = Actor(ActorKind.ORCHESTRATOR, run)
        self.verified = ""
        """The commit that was verified last, and held."""
        self.reviewed = ""
        """The key of the changes that a review requested, where the task came back with them."""
        self.own = False
        """True for a task of the local tracker, which ends here and nowhere else."""
        self.moves_on = False
        """True when another stage of the task follows this session."""

    async def look(self) -> Task:
        task = await self.ledger.look(self.number)
        self.own = task.tracker == "local"
        self.moves_on = moves_on(self._stages(task), task, self.agent)
        return task

    def _stages(self, task: Task) -> tuple[str, ...]:
        return self.context.stages.get(task.type, ())

    async def check(self, resumed: bool) -> Task:
        """The task, if it can be worked on now; a refusal comes before anything is made."""
        task = await self.look()
        if resumed and task.status is TaskStatus.BLOCKED:
            task = await self.ledger.move(
                self.number,
                StatusChange(to=TaskStatus.OPEN, actor=self.actor, reason="its run goes on", session=self.run),
            )
        if resumed or task.status in (TaskStatus.OPEN, TaskStatus.IN_PROGRESS):
            if not resumed:
                self._is_its_turn(task)
            await self._nothing_to_wait_for(task)
            return task
        hints = {
            TaskStatus.BACKLOG: f"genba task edit {self.number} --status open",
            TaskStatus.BLOCKED: f"genba task unblock {self.number}",
        }
        status, why = str(task.status), ""
        if task.blocker is not None and task.blocker.reason:
            why = f": {task.blocker.reason}"
        elif task.status is TaskStatus.REVIEW:
            waits, hints[task.status] = next_of_review(task)
            status, why = "in review", f": {waits}"
        elif task.status is TaskStatus.BACKLOG:
            status = "in the backlog"
        raise StateConflictError(
            f"task #{self.number} is {status}{why}",
            unchanged="nothing was started, nothing was changed.",
            hint=hints.get(task.status, f"genba task reopen {self.number}"),
        )

    def _is_its_turn(self, task: Task) -> None:
        stage = stage_of(self._stages(task), task)
        if stage and stage != self.agent:
            raise StateConflictError(
                f'task #{self.number} is at the stage of "{stage}", and "{self.agent}" is another agent',
                unchanged="nothing was started, nothing was changed.",
                hint=self._command_of(stage),
            )

    def _command_of(self, agent: str) -> str:
        """The command that has an agent work on the task; where there is no such agent, the one that says so."""
        return (
            f"genba run {agent} --issue {self.number}"
            if self.context.knows_agent(agent)
            else f"genba agent check {agent}"
        )

    async def _nothing_to_wait_for(self, task: Task) -> None:
        """Raises StateConflictError while a dependency is not done or a subtask has not ended."""
        if task.status is not TaskStatus.OPEN:
            return
        waiting = [number for number in task.dependencies if not await self._is_done(number)]
        parts = [await self.ledger.look(number) for number in task.children]
        waiting += [part.number for part in parts if not part.status.ended and not part.in_plan]
        if waiting:
            named = ", ".join(f"#{number}" for number in waiting)
            raise StateConflictError(
                f"task #{self.number} waits for {named}",
                unchanged="nothing was started, nothing was changed.",
                hint=f"genba task show {waiting[0]}",
            )

    async def _is_done(self, number: int) -> bool:
        return (await self.ledger.look(number)).status is TaskStatus.DONE

    async def begin(self, workspace: Workspace, process: int) -> Feedback | None:
        """Claim the task. What comes back is what sent the work back the last time."""
        start = SessionStart(
            run=self.run,
            agent=self.agent,
            branch=workspace.branch,
            base=workspace.base,
            workdir=workspace.path,
            host=self.context.host,
            process=process,
        )

        def died(older: SessionStart) -> bool:
            """True for a session without a lock on its branch. We hold ours, so an older session on it is dead too."""
            here = older.host == start.host
            return here and (older.branch == start.branch or not self.context.is_branch_held(older.branch))

        briefing = await self.ledger.begin(self.number, start, died)
        self.verified = briefing.verified
        changes = briefing.changes
        if changes is None:
            return briefing.gap or first_gap(briefing.last)
        self.reviewed = changes.key
        rounds = max(self.context.review_rounds, changes.count)
        return briefing.gap or findings_gap(
            changes.findings, commit=changes.commit, reviewer=changes.reviewer, round=changes.count, rounds=rounds
        )

    async def record(self, verification: Verification, of_merge: bool) -> None:
        """Write a verdict down. What is approved and done is the commit of the branch, however it is merged."""
        await self.ledger.record(self.number, self.run, verification)
        if not of_merge:
            self.verified = verification.subject.commit if verification.done else ""

    async def may_land(self, reviewed_there: bool = False) -> str:
        """Why the work may not land yet; an empty string when it may. A task that was given up lands nothing.

        What is `reviewed_there`, where it is proposed, needs no review before.
        """
        task = await self.ledger.look(self.number)
        if task.status not in (TaskStatus.IN_PROGRESS, TaskStatus.REVIEW):
            raise StateConflictError(
                f"task #{self.number} is {task.status} by now: its work stays on its branch",
                hint=f"genba task show {self.number}",
            )
        await self.reach_review()
        if reviewed_there or not task.requires_review or task.approved == self.verified:
            return ""
        return f"task #{self.number} waits for a review of {self.verified[:7]} by {_reviewer(task)}"

    async def ask_review(self) -> str:
        """Create the review task, or the decision of a person; returns the next commands. Safe to repeat."""
        review = await self.ledger.ask_review(self.number, self.verified, self.run, self.context.review_rounds)
        if review.reviewer_type == "ai":
            return f"{self._command_of(self.context.reviewer)}   or: genba work"
        return f"genba approve {self.number}   or: genba reject {self.number} --reason TEXT"

    async def rework(self, reason: str) -> None:
        """What was verified turned out red on its way out: it is worked on again."""
        if (await self.ledger.look(self.number)).status is TaskStatus.REVIEW:
            await self._move(StatusChange(to=TaskStatus.IN_PROGRESS, actor=self.actor, reason=reason, session=self.run))

    async def complete(self, finalized: Finalized, action: ClosureAction | None) -> None:
        """The work is verified and has left its branch: the task is done, or goes on where it only ended a phase."""
        task = await self.look()
        if any(phase.session == self.run for phase in task.phases):
            return
        await self.reach_review()
        ends = ends_task(action)
        if not finalized.arrived and (ends or self.moves_on):
            self.journal.emit(Notice(message=f"task #{self.number} is in review: its work has not landed yet"))
            return
        how = f"merged {finalized.commit[:7]}" if finalized.merge is MergeStatus.MERGED else "nothing to merge"
        change = StatusChange(
            to=TaskStatus.DONE, actor=self.actor, commit=self.verified, finalized=how, session=self.run
        )
        if not ends:
            why = "a phase is complete" if action is not None else "its agent does not close issues"
            change = msgspec.structs.replace(change, to=TaskStatus.OPEN, reason=why, phase=self.agent)
            if not finalized.arrived:
                change = msgspec.structs.replace(change, finalized=finalized.pull_request or "left on its branch")
        await self._move(change)

    async def stop(self, outcome: Outcome, reason: str, conflict: bool) -> None:
        """Let go of a task that is not done."""
        await self.rework(reason)
        task = await self.ledger.look(self.number)
        if task.status is not TaskStatus.IN_PROGRESS:
            return
        if outcome is Outcome.BLOCKED:
            kind = BlockerKind.CONFLICT if conflict else BlockerKind.NEEDS_INPUT
            change = StatusChange(
                to=TaskStatus.BLOCKED, actor=self.actor, reason=reason, blocker=Blocker(kind, reason), session=self.run
            )
        else:
            change = StatusChange(to=TaskStatus.OPEN, actor=self.actor, reason=reason, session=self.run)
        await self._move(change)

    async def end(self, outcome: Outcome, reason: str, state: LoopState, lands_on: str = "") -> None:
        end = SessionEnd(
            run=self.run,
            outcome=outcome,
            reason=reason,
            iterations=state.iterations,
            tokens=state.usage.tokens,
            cost_usd=state.usage.cost_usd,
            verified=self.verified,
            lands_on=lands_on,
        )
        await self.ledger.end(end)

    async def reach_review(self) -> None:
        """The work is verified: it waits for its reviews, and to land."""
        await self._move(StatusChange(to=TaskStatus.REVIEW, actor=self.actor, commit=self.verified, session=self.run))

    async def _move(self, change: StatusChange) -> None:
        """Move on, unless a run that was cut off here has already done it."""
        task = await self.ledger.look(self.number)
        if task.status is change.to or (change.to is TaskStatus.REVIEW and task.status is TaskStatus.DONE):
            return
        try:
            await self.ledger.move(self.number, change)
        except StateConflictError:
            # The answer may have been lost after the change was written: asking again finds it.
            if (await self.ledger.look(self.number)).status is not change.to:
                raise
        if change.to is not TaskStatus.REVIEW:
            self.journal.emit(Notice(message=f"task #{self.number} is {change.to}"))


def first_gap(last: Verification | None) -> Feedback | None:
    """What the first prompt must know of the attempt before."""
    if last is None or last.done:
        return None
    result = evidence(last)
    return Feedback(check=result.name, detail=result.detail, output=result.output, claim="", attempt=1, max_attempts=1)


def _reviewer(task: Task) -> str:
    return "a reviewer agent" if task.reviewer_type == "ai" else "a person"
