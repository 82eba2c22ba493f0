"""The segments of sessions that this executor carries out now."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba.application.sessions.provider_pauses import PacedAdapter, ProviderGate
from genba.application.sessions.reviews import remove_scratch
from genba.application.sessions.segment_ledger import SegmentLedger
from genba.application.sessions.session_sharing import FleetSharing, forget_session
from genba.connections.agents.facilitator import FieldAdapter
from genba.connections.atomic_write import put
from genba.connections.clock import SystemClock
from genba.connections.detached.adapter import end_all
from genba.connections.detached.cleanup import remove_output
from genba.connections.git.merging.merge_target import GitRework
from genba.connections.git.merging.session_sync import SharedTrees, Sharing
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock, is_held
from genba.connections.git.worktrees.worktree_status import changed_files
from genba.connections.private_folders import make_private_folder
from genba.coordination.scheduler.session_plan import SegmentState, SessionPlan, run_plan
from genba.domain.errors import GitError, StateConflictError
from genba.domain.events import Notice
from genba.domain.fleet.progress import FleetEvent, FleetEventKind
from genba.domain.fleet.records import FleetSession, Purpose, SegmentOrder
from genba.domain.ports import Workflow
from genba.domain.sessions.outcomes import Outcome
from genba.execution.loop.state_driven import Control, WorkflowContext
from genba.execution.session_context import (
    AgentContext,
    FleetContext,
    FleetSessionContext,
    LocalSession,
    SharedSession,
)
from genba.execution.session_progress import SessionProgress
from genba.wiring.sessions.session_factory import SessionBase
from genba.wiring.sessions.supervisor import detached, sparing

if TYPE_CHECKING:
    from genba.blackboard.fleet.fleet_board import FleetBoard
    from genba.connections.detached.adapter import DetachedAdapter
    from genba.connections.detached.fork_server_client import ForkServerClient
    from genba.coordination.scheduler.progress import Watch
    from genba.domain.ports import Journal, Processes, Steps
    from genba.execution.run_values import RunPlan, RunResult
    from genba.execution.session import Session
    from genba.execution.session_context import AnswerContext
    from genba.wiring.project.project_context import ProjectContext

_LETTING_GO_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.1

Answer = Callable[[SegmentOrder], "AnswerContext | None"]
"""By order: what the structured output of its session must be, where that is its work."""


class Answering(msgspec.Struct, frozen=True, kw_only=True):
    """Where agents that ask for their next action are answered, and what they know of themselves."""

    runs: Workflow
    socket: Path
    language: str
    project_id: str

    def pointer(self, layout: RepositoryLayout, run: str) -> str:
        """The file that leads the agents of a run here, from whichever process started them."""
        path = layout.run_folder(run) / "workflow"
        make_private_folder(path.parent)
        put(path, str(self.socket).encode())
        return str(path)

    def workflow(self, agent: str) -> WorkflowContext:
        control = Control(language=self.language, agent_id=agent, project_id=self.project_id)
        return WorkflowContext(runs=self.runs, control=control)


def sharing_of(context: ProjectContext) -> Sharing | None:
    """What the hosts of a fleet share through the remote that the project names; None without one."""
    remote = context.project.fleet.merge.remote
    return Sharing(context.layout, remote) if remote else None


class LiveSegments:
    """Makes parts ready, and reaches those that are under way."""

    def __init__(
        self,
        context: ProjectContext,
        board: FleetBoard,
        fork_server: ForkServerClient,
        gate: ProviderGate,
        watch: Watch,
        answer: Answer,
        share: Sharing | None,
    ) -> None:
        self.context = context
        self.board = board
        self.fork_server = fork_server
        self.gate = gate
        self.watch = watch
        self.answer = answer
        self.share = share
        self.workflow: Answering | None = None
        """Answers agents that ask what is next; None where no agent does."""
        self._live: dict[str, LiveSegment] = {}

    def find(self, run: str) -> LiveSegment | None:
        """The part of a run that is under way."""
        return self._live.get(run)

    def suspend(self, run: str, why: str) -> None:
        """Make a segment stop asking. Its session goes on when a person resumes it."""
        live = self._live.get(run)
        if live is not None:
            live.paced.suspend(why)

    async def end(self, run: str) -> None:
        """End the agents of a session that no segment carries out."""
        layout, processes = self.context.layout, self.context.processes
        await end_all(layout.run_folder(run), run, processes)

    async def prepare(
        self, order: SegmentOrder, session: FleetSession, plan: SessionPlan, kept: SegmentState | None, steps: Steps
    ) -> LiveSegment:
        await self._until_let_go(session.branch or plan.branch, order.run)
        if plan.start_at and kept is None:
            await self._begin_branch(plan.branch, plan.start_at)
        live = LiveSegment(self, order, session, run_plan(order, plan, kept, os.getpid()), plan.start_at, steps)
        self._live[order.run] = live
        return live

    def shared(self, order: SegmentOrder, journal: Journal) -> SharedSession:
        """What other hosts see of a session."""
        if self.share is None:
            return LocalSession()

        def say(message: str) -> None:
            self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=f"#{order.task}: {message}"))

        return FleetSharing(self.share, journal, say)

    def answering(self, order: SegmentOrder) -> Answering:
        """Who answers the agent of a part that asks what is next. Plans and reviews are answers, and nothing else."""
        if order.purpose in (Purpose.PLAN, Purpose.REVIEW):
            message = (
                f"{order.agent} asks for its next action, and cannot {order.purpose}: that takes an agent that is asked"
            )
            raise StateConflictError(
                message, hint=f"name another agent for that, or runner.flow.mode: loop of {order.agent}"
            )
        if self.workflow is None:
            message = f"{order.agent} asks for its next action, and no server answers here"
            raise StateConflictError(message, hint="start genba work again: it answers the agents that it knew then")
        return self.workflow

    async def _until_let_go(self, branch: str, run: str) -> None:
        """Wait a while for a process that had this run, has lost it to us, and has not yet let go of its branch."""
        path, result = self.context.layout.branch_lock(branch), False
        deadline = time.monotonic() + _LETTING_GO_SECONDS
        while time.monotonic() < deadline and path.is_file() and is_held(path):
            holder = FileLock(path).holder()
            if holder.partition(" (process")[0] != run:
                return
            if not result:
                self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=f"waiting until {holder} has let go"))
                result = True
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def _begin_branch(self, branch: str, commit: str) -> None:
        """A branch at a commit; one that is there already is left as it is."""
        git = self.context.layout.git
        if self.share is not None:
            await self.share.bring_commit(commit)
        if await git.commit_of(f"refs/heads/{branch}") is None:
            await git.run("update-ref", f"refs/heads/{branch}", commit, "0" * 40, allow=(0, 128))

    def over(self, run: str) -> None:
        self._live.pop(run, None)


class LiveSegment:
    """One segment of a session under way."""

    def __init__(
        self, parts: LiveSegments, order: SegmentOrder, session: FleetSession, plan: RunPlan, began: str, steps: Steps
    ) -> None:
        self.parts = parts
        self.order = order
        self.began = began
        """The commit that its branch began at; empty: the tip of its base branch."""
        self.loop = asyncio.get_running_loop()
        self.progress = SessionProgress(plan)
        task = parts.watch.field.tasks.get(order.task)
        hear = partial(parts.watch.hear, session, task.title if task is not None else "")
        base = SessionBase(parts.context, plan, (hear,), of_its_own=False)
        self.shared = parts.shared(order, base.journal)
        self.answering = parts.answering(order) if plan.definition.state_driven else None
        processes = sparing(parts.context.layout, base.processes)
        detached = self._detached(base, processes)
        by_code = isinstance(base.adapter, FieldAdapter)  # it starts no process that could outlive this one
        inner = base.adapter if by_code else detached
        self.paced = PacedAdapter(inner, session.provider, parts.gate)
        open_environment = base.keeper.open if by_code else detached.open_environment
        agent = base.agent(self.paced, open_environment, processes)
        self.prepared = base.prepared(self._context(base, agent, steps), self.progress)

    def _detached(self, base: SessionBase, processes: Processes) -> DetachedAdapter:
        """An adapter whose agent outlives this process."""
        context, order, answering = self.parts.context, self.order, self.answering
        return detached(
            context.layout,
            base.keeper,
            self.parts.fork_server,
            processes,
            base.journal.emit,
            run=order.run,
            part=order.part,
            grace_seconds=context.project.fleet.work.grace_seconds,
            workflow=answering.pointer(context.layout, order.run) if answering is not None else "",
            credential=partial(answering.runs.credential, order.run) if answering is not None else None,
            over=self.progress.is_over if answering is not None else None,
        )

    def _context(self, base: SessionBase, agent: AgentContext, steps: Steps) -> FleetSessionContext:
        context, order, answering = self.parts.context, self.order, self.answering
        works = order.purpose in (Purpose.WORK, Purpose.INTEGRATE)
        trees = base.trees
        if self.parts.share is not None:
            root = base.plan.definition.file.runner.execution.worktree.root
            trees = SharedTrees(
                base.trees,
                self.parts.share,
                root,
                lambda message: base.journal.emit(Notice(message=message)),
            )
        rework = base.rework() or GitRework(context.layout, context.project.fleet.merge.remote)
        return FleetSessionContext(
            agent=agent,
            git=base.git(trees, rework),
            tracker=base.tracker(),
            journal=base.journal,
            clock=SystemClock(),
            redact=base.redactor.text,
            task=base.task(SegmentLedger(base.ledger())) if works else None,
            verification=base.verification() if works else None,
            answer=self.parts.answer(order),
            inbox=base.inbox(),
            fleet=FleetContext(
                steps=steps,
                uses_merge_queue=works,
                sharing=self.shared,
                workflow=answering.workflow(order.agent) if answering is not None else None,
            ),
        )

    @property
    def session(self) -> Session:
        return self.prepared.session

    @property
    def paused(self) -> str:
        return self.paced.why

    async def execute(self) -> RunResult:
        try:
            result = await self.prepared.execute()
        finally:
            self.parts.over(self.order.run)
        if not self.order.landed:  # then no agent was asked
            folder = self.parts.context.layout.run_folder(self.order.run)
            await asyncio.to_thread(remove_output, folder, self.order.part)
        if self.parts.share is not None and self.order.landed and result.outcome is Outcome.COMPLETED:
            await forget_session(self.parts.share, self.progress.plan.workspace, self.prepared.journal)
        return result

    async def changed(self) -> tuple[str, ...]:
        workspace = self.progress.workspace
        if workspace is None:
            return ()
        git = self.parts.context.layout.git
        tip = await git.commit_of(f"refs/heads/{workspace.branch}")
        try:
            return await changed_files(git, workspace.base, tip) if tip is not None else ()
        except GitError:
            return ()

    async def leave(self) -> None:
        """Remove the worktree and the branch of a session that delivers no commit."""
        workspace = self.progress.workspace
        if workspace is None:
            return
        session = self.session.context
        began = self.began or workspace.base_branch
        await remove_scratch(self.parts.context, session.git.trees, session.journal, workspace, began)

    async def share(self) -> None:
        if self.progress.workspace is not None:
            await self.shared.share(self.progress.workspace)
