"""Reviews by `genba run`: which commit a reviewer judges, where its verdict goes, and what is left of it: nothing.

A verdict is bound to the commit that was in review when the session began. The session changes nothing else.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.sessions.agent_pool import LEAVES_NOTHING
from genba.application.sessions.branches import SCRATCH_BRANCH
from genba.application.sessions.host import host_name
from genba.application.sessions.liveness import process_lives
from genba.application.sessions.session_record import new_run_id
from genba.application.verification.decisions import onward_after_review
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.scheduler.reviews import review_parameters
from genba.definitions.agent.layers import Layer
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError, UsageError
from genba.domain.events import Notice
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionEnd, SessionStart
from genba.domain.tasks.task import Actor, ActorKind, Task, TaskStatus
from genba.execution.delivery.finalize import Finalized
from genba.execution.run_values import ReviewOrder, ReviewResult, RunPlan
from genba.execution.session_context import AnswerContext
from genba.judgement.language.sentences import in_language
from genba.judgement.scheduling.actions import Agent
from genba.judgement.scheduling.assignment import no_reviewer, reviewers
from genba.judgement.verification.reviews import ReviewVerdict, read_verdict, verdict_check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from genba.application.project.project_context import ProjectContext
    from genba.definitions.agent.definition import AgentDefinition
    from genba.domain.ports import Journal, WorkingTrees
    from genba.domain.sessions.workspaces import Workspace
    from genba.execution.run_values import RunResult
    from genba.execution.session import Session

_REVIEW = "genba run: a review"
_CAPABILITIES = ("review", "review-action")
_UNCHANGED = "nothing was started, nothing was changed."


class NotRecorded(msgspec.Struct, frozen=True):
    """Why the verdict of a reviewer counts for nothing but the eyes of who asks for it."""

    why: str


async def review_order(
    context: ProjectContext, definition: AgentDefinition, number: int, named: str | None = None
) -> ReviewOrder | NotRecorded | None:
    """The review that an agent performs for a task; None for an agent that does not review.

    Creates the review task. Raises StateConflictError for an author of the work, and for a commit that was reviewed.
    """
    if not context.has_board() or not _reviews(context, definition):
        return None
    try:
        task = await asyncio.to_thread(context.board(make=False).get, number)
    except NotFoundError:
        return None  # the session refuses it, or reads the issue itself
    return await _order(context, definition, task.review_of or task.number, named)


async def _order(
    context: ProjectContext, definition: AgentDefinition, of: int, named: str | None
) -> ReviewOrder | NotRecorded | None:
    board = context.board(make=False)
    commit, task = board.commit_in_review(of), board.get(of)
    if not commit:
        if not definition.only_reads:
            return None  # it works on the task, like any other agent
        return NotRecorded(f"task #{of} is {task.status}: no commit is in review, so the verdict is not recorded")
    if named is not None and await context.layout.git.commit_of(named) != commit:
        message = f"{named[:40]} is not in review for task #{of}, {commit[:7]} is"
        if not definition.only_reads:
            raise StateConflictError(message, unchanged=_UNCHANGED, hint=f"genba run {definition.name} --issue {of}")
        return NotRecorded(f"{message}: the verdict is not recorded")
    _refuse_author(board.authors(of), definition.name, of)
    if not task.requires_review or task.reviewer_type != "ai":
        return ReviewOrder(of=of, commit=commit)
    review = FleetBoard(board).ask_review(of, commit, "ai", words=partial(in_language, context.project.language))
    if review.status != "open" or task.approved == commit:
        by = f" by {review.reviewer}" if review.reviewer else ""
        how = {"changes": "changes were requested"}.get(review.status, "it was approved")
        raise StateConflictError(
            f"{commit[:7]} of task #{of} was reviewed already: {how}{by}",
            unchanged=_UNCHANGED,
            hint=onward_after_review(context, of),
        )
    return ReviewOrder(of=of, commit=commit, task=review.task if review.reviewer_type == "ai" else None)


def _refuse_author(authors: frozenset[str], agent: str, of: int) -> None:
    if agent in authors:
        raise StateConflictError(
            f"{agent} has worked on it, and cannot review its own work",
            unchanged=_UNCHANGED,
            hint=f"genba approve {of}   or review.agent in .genba/config.yaml names another agent",
        )


def _reviews(context: ProjectContext, definition: AgentDefinition) -> bool:
    can = any(word in _CAPABILITIES for word in definition.capabilities)
    return can or definition.name == context.project.fleet.review.agent


def held_to(layers: Sequence[Layer]) -> list[Layer]:
    """The layers of an agent that reviews: it merges, pushes and closes nothing."""
    return [*layers, Layer(_REVIEW, LEAVES_NOTHING)]


def as_review(context: ProjectContext, plan: RunPlan, order: ReviewOrder) -> RunPlan:
    """The plan of a session that reviews, out of the plan of a session of the same agent."""
    board = context.board(make=False)
    of, last = board.get(order.of), board.last_verification(order.of)
    asked = board.get(order.task) if order.task is not None else of
    base = last.subject.base_branch if last is not None else ""
    review = msgspec.structs.replace(asked, review_commit=order.commit)
    declared = plan.definition.file.parameters
    given = review_parameters(review, of, base, last, declared, context.project.language)
    mark = str(order.task) if order.task is not None else f"{order.of}-{order.commit[:7]}"
    return msgspec.structs.replace(
        plan,
        parameters={**plan.parameters, **given, "issue": review.number},
        branch=f"{SCRATCH_BRANCH}{mark}",
        base_branch=base or None,
        review=order,
    )


async def review_plan(context: ProjectContext, of: int, run: str) -> RunPlan:
    """The plan of the session that reviews the commit of a task. Raises where no agent may review it."""
    agents, authors = _agents(context), context.board(make=False).authors(of)
    configured = context.project.fleet.review.agent
    able = reviewers("", configured, agents, authors)
    if not able:
        raise StateConflictError(
            f"no agent reviews task #{of}: {no_reviewer(configured, agents)}",
            unchanged="its work stays on its branch.",
            hint=f"genba approve {of}   then: genba run --resume {run}",
        )
    definition = context.registry.load(able[0], held_to(()))
    order = await review_order(context, definition, of)
    if not isinstance(order, ReviewOrder):
        raise StateConflictError(f"task #{of} has no commit in review", hint=f"genba task show {of}")
    values = {name: one.default for name, one in definition.file.parameters.items()}
    plan = RunPlan(
        run=new_run_id(definition.name), definition=definition, parameters=values, project=context.project.name
    )
    return as_review(context, plan, order)


def waits_for_agent(context: ProjectContext, number: int | None) -> bool:
    """Whether the work on a task waits for the review of an agent."""
    if number is None or not context.has_board():
        return False
    board = context.board(make=False)
    task = board.get(number)
    waits = task.requires_review and task.reviewer_type == "ai" and task.status is TaskStatus.REVIEW
    asked = [each for each in FleetBoard(board).escalations() if each.task == number]
    return waits and task.approved != board.commit_in_review(number) and not asked


def check_requested(context: ProjectContext, number: int | None) -> None:
    """Refuse a review on request where no agent decides on the work."""
    if number is None:
        raise UsageError(
            "--review takes a task whose work is reviewed", unchanged=_UNCHANGED, hint="--issue NUMBER --review"
        )
    task: Task = context.board(make=False).get(number)
    if task.requires_review and task.reviewer_type == "ai":
        return
    why = "is reviewed by a person" if task.requires_review else "needs no review"
    hint = f"genba task edit {number} --review --reviewer ai"
    raise UsageError(f"task #{number} {why}", unchanged=_UNCHANGED, hint=hint)


def _agents(context: ProjectContext) -> tuple[Agent, ...]:
    """The agents that can review here."""
    infos, _ = context.registry.agents()
    found = []
    for info in infos:
        definition = context.registry.load(info.name)
        if definition.joins_fleets and not definition.state_driven:
            can = ("review",) if any(word in _CAPABILITIES for word in info.capabilities) else ()
            found.append(Agent(name=info.name, capabilities=can))
    return tuple(found)


class ReviewSession:
    """One review under way: claims it, begins its branch, records its verdict, and removes what it leaves."""

    def __init__(self, context: ProjectContext, plan: RunPlan) -> None:
        assert plan.review is not None  # noqa: S101  (the caller looked)
        self.context = context
        self.plan = plan
        self.order = plan.review
        self.refused = ""
        """Why its verdict does not count."""

    async def execute(self, session: Session) -> RunResult:
        """Perform the review. Raises StateConflictError where another session does, or where its verdict is late."""
        await asyncio.to_thread(self._claim)
        try:
            await self._begin_branch()
            result = await session.execute()
        except (GenbaError, OSError, asyncio.CancelledError) as error:
            await asyncio.to_thread(self._end, session, Outcome.FAILED, str(error) or "it was stopped")
            raise
        await asyncio.to_thread(self._end, session, result.outcome, result.reason)
        if self.refused:
            raise StateConflictError(
                f"the verdict does not count: {self.refused}",
                unchanged="the task stays as it is.",
                hint=f"genba task show {self.order.of}",
            )
        if result.review is not None:
            return msgspec.structs.replace(result, hint=self._onward())
        if session.progress.stopped:
            return result
        return msgspec.structs.replace(result, hint=await self._abandon(session))

    def _claim(self) -> None:
        if self.order.task is not None:
            self.context.board(make=False).begin_review(self.order.task, self._start(), self._died)

    def _died(self, other: SessionStart) -> bool:
        here = other.host == host_name()
        gone = not self.context.is_running(other.branch) and not process_lives(other.process, other.heartbeat_at)
        return here and gone

    def _start(self) -> SessionStart:
        return SessionStart(
            run=self.plan.run,
            agent=self.plan.definition.name,
            branch=self.plan.branch or "",
            base=self.order.commit,
            workdir="",
            host=host_name(),
            process=os.getpid(),
        )

    def _end(self, session: Session, outcome: Outcome, reason: str) -> None:
        """Record how the session ended, and what it cost. Safe to repeat."""
        board, state = self.context.board(make=False), session.progress.state
        end = SessionEnd(
            run=self.plan.run,
            outcome=outcome,
            reason=reason,
            iterations=state.iterations,
            tokens=state.usage.tokens,
            cost_usd=state.usage.cost_usd,
        )
        if self.order.task is not None:
            board.end_review(self.order.task, end)
        else:
            board.record_advice(self.order.of, self._start(), end)

    async def _begin_branch(self) -> None:
        """Create the branch at the commit; one that a dead session left is taken over."""
        git, name = self.context.layout.git, f"refs/heads/{self.plan.branch}"
        if self.plan.workspace is None and await git.commit_of(name) is None:
            await git.run("update-ref", name, self.order.commit, "0" * 40, allow=(0, 128))

    def answer(self, trees: WorkingTrees, journal: Journal) -> AnswerContext:
        """The verdict is all that the session delivers."""
        problem = partial(verdict_check, language=self.context.project.language)
        return AnswerContext(problem=problem, deliver=partial(self._deliver, trees, journal))

    async def _deliver(
        self, trees: WorkingTrees, journal: Journal, output: dict[str, Any] | None, workspace: Workspace
    ) -> Finalized:
        read = read_verdict(output or {})
        assert isinstance(read, ReviewVerdict)  # noqa: S101  (accepted before)
        self.refused = await asyncio.to_thread(self._record, read)
        await remove_scratch(self.context, trees, journal, workspace, self.order.commit)
        if self.refused:
            return Finalized(done=False, reason=f"the verdict does not count: {self.refused}")
        result = ReviewResult(
            task=self.order.of,
            commit=self.order.commit,
            verdict="approved" if read.approved else "changes_requested",
            findings=read.lines,
            summary=read.summary,
            reviewer=self.plan.definition.name,
            recorded=self.order.task is not None,
        )
        return Finalized(done=True, review=result)

    def _record(self, read: ReviewVerdict) -> str:
        """Record the verdict, or why it does not count. Safe to repeat."""
        actor, board = Actor(ActorKind.REVIEWER, self.plan.definition.name), self.context.board(make=False)
        if self.order.task is None:
            self._advise(read, actor)
            return ""
        try:
            review = FleetBoard(board).verdict(
                self.order.task, read.approved, read.lines, actor.name, actor, self.plan.run
            )
        except GenbaError as error:
            return error.message
        wanted = "approved" if read.approved else "changes"
        if (review.status, review.reviewer) == (wanted, actor.name):
            return ""
        by = f" by {review.reviewer}" if review.reviewer != actor.name else ""
        return f"the review of {review.commit[:7]} is {review.status}{by} by now"

    def _advise(self, read: ReviewVerdict, actor: Actor) -> None:
        board, commit = self.context.board(make=False), self.order.commit[:12]
        how = f"approves {commit}" if read.approved else f"requests changes on {commit}"
        body = "\n".join((f"{actor.name} {how}. A person decides.", *read.lines, read.summary)).strip()
        if all(each.body != body for each in board.comments(self.order.of)):
            board.comment(self.order.of, body, actor)

    async def _abandon(self, session: Session) -> str:
        """Remove what a review without a verdict leaves; returns the next command."""
        workspace = session.progress.kept_workspace
        if workspace is not None:
            trees, journal = session.context.git.trees, session.context.journal
            await remove_scratch(self.context, trees, journal, workspace, self.order.commit)
        return f"genba run {self.plan.definition.name} --issue {self.order.of}"

    def _onward(self) -> str:
        """The next command after the verdict."""
        if self.order.task is None:
            return f"genba approve {self.order.of}   or: genba reject {self.order.of} --reason TEXT"
        return onward_after_review(self.context, self.order.of)


async def remove_scratch(
    context: ProjectContext, trees: WorkingTrees, journal: Journal, workspace: Workspace, began: str
) -> None:
    """Remove the worktree and the branch of a session that delivers no commit; what it wrote is kept under a ref."""
    removal = await trees.close(workspace)
    kept = await context.ports.repository.drop_branch(workspace.branch, workspace.run, began) if removal.removed else ""
    for ref in (removal.rescued, kept):
        if ref:
            journal.emit(Notice(message=f"what it wrote is not used, and is kept: git show {ref}"))
