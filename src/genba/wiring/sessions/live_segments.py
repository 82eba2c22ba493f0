"""The parts of sessions that this executor carries out right now: each a run, dressed for a fleet."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genba.blackboard.fleet.session_ledger import SessionRecorder
from genba.connections.agents.facilitator import FieldAdapter
from genba.connections.atomic_write import put
from genba.connections.detached.adapter import end_all
from genba.connections.detached.cleanup import remove_output
from genba.connections.git.merging.merge_target import GitRework
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock, is_held
from genba.connections.git.worktrees.worktree_status import changed_files
from genba.connections.private_folders import make_private_folder
from genba.coordination.scheduler.session_plan import SegmentState, SessionPlan, run_plan
from genba.domain.errors import GitError, StateConflictError
from genba.domain.fleet.progress import FleetEvent, FleetEventKind
from genba.domain.fleet.records import FleetSession, Purpose, Review, SegmentOrder
from genba.domain.ports import Workflow
from genba.domain.sessions.outcomes import Outcome
from genba.execution.loop.state_driven import Control, StateDrivenLoop
from genba.execution.session_context import SessionContext
from genba.judgement.language.sentences import in_language
from genba.wiring.sessions.provider_pauses import PacedAdapter, ProviderGate
from genba.wiring.sessions.reviews import remove_scratch
from genba.wiring.sessions.supervisor import detached, sparing

if TYPE_CHECKING:
    from genba.blackboard.fleet.fleet_board import FleetBoard
    from genba.connections.detached.fork_server_client import ForkServerClient
    from genba.coordination.scheduler.progress import Watch
    from genba.domain.events import Event
    from genba.domain.goals.verification import Verification
    from genba.domain.ports import Steps, TaskLedger
    from genba.domain.sessions.evidence import CheckResult
    from genba.domain.sessions.session import Briefing, Died, SessionEnd, SessionStart
    from genba.domain.tasks.task import StatusChange, Task
    from genba.execution.run import Run, RunResult
    from genba.wiring.project.project_context import PreparedRun, ProjectContext
    from genba.wiring.sandbox.agent_environment import AgentEnvironmentKeeper
    from genba.wiring.sessions.session_sharing import SessionSharing

_LETTING_GO_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.1

Accepts = Callable[[SegmentOrder], Callable[[dict[str, Any] | None], "CheckResult | None"]]
"""By order: what is wrong with the answer that its session gives."""


class Answering(msgspec.Struct, frozen=True, kw_only=True):
    """Where agents that ask what is next are answered, and what they are told of themselves."""

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

    def control(self, agent: str) -> Control:
        return Control(language=self.language, agent_id=agent, project_id=self.project_id)


class LiveParts:
    """Makes parts ready, and reaches those that are under way."""

    def __init__(
        self,
        context: ProjectContext,
        board: FleetBoard,
        fork_server: ForkServerClient,
        gate: ProviderGate,
        watch: Watch,
        accepts: Accepts,
        share: SessionSharing | None,
    ) -> None:
        self.context = context
        self.board = board
        self.fork_server = fork_server
        self.gate = gate
        self.watch = watch
        self.accepts = accepts
        self.share = share
        self.workflow: Answering | None = None
        """Answers agents that ask what is next; None where no agent does."""
        self._live: dict[str, DressedPart] = {}

    def find(self, run: str) -> DressedPart | None:
        """The part of a run that is under way."""
        return self._live.get(run)

    def suspend(self, run: str, why: str) -> None:
        """Have a part stop asking. It ends as one that goes on when somebody says so."""
        live = self._live.get(run)
        if live is not None and live.paced is not None:
            live.paced.suspend(why)

    async def end(self, run: str) -> None:
        """End the agents of a run that nobody carries on."""
        layout, processes = self.context.layout, self.context.processes
        await end_all(layout.run_folder(run), run, processes)

    async def prepare(
        self, order: SegmentOrder, session: FleetSession, plan: SessionPlan, kept: SegmentState | None, steps: Steps
    ) -> DressedPart:
        await self._until_let_go(session.branch or plan.branch, order.run)
        if plan.start_at and kept is None:
            await self._begin_branch(plan.branch, plan.start_at)
        live = DressedPart(self, order, session, plan.start_at)
        dress = partial(live.dress, steps)
        live.prepared = self.context.prepare(run_plan(order, plan, kept, os.getpid()), (live.hear,), dress)
        self._live[order.run] = live
        return live

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
            message = f"{order.agent} asks for its next action, and nobody answers here"
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
            await self.share.bring(commit)
        if await git.commit_of(f"refs/heads/{branch}") is None:
            await git.run("update-ref", f"refs/heads/{branch}", commit, "0" * 40, allow=(0, 128))

    def over(self, run: str) -> None:
        self._live.pop(run, None)


class DressedPart:
    """One part under way."""

    def __init__(self, parts: LiveParts, order: SegmentOrder, session: FleetSession, began: str) -> None:
        self.parts = parts
        self.order = order
        self.session = session
        self.began = began
        """The commit that its branch began at; empty: the tip of its base branch."""
        self.prepared: PreparedRun | None = None
        self.paced: PacedAdapter | None = None
        self.why = ""
        self.loop = asyncio.get_running_loop()
        task = parts.watch.field.tasks.get(order.task)
        self.title = task.title if task is not None else ""

    @property
    def run(self) -> Run:
        assert self.prepared is not None  # noqa: S101  (made ready together)
        return self.prepared.run

    @property
    def paused(self) -> str:
        return self.why

    def hear(self, event: Event) -> None:
        self.parts.watch.hear(self.session, self.title, event)

    def dress(self, steps: Steps, world: SessionContext, keeper: AgentEnvironmentKeeper) -> SessionContext:
        """The same world, with an agent that outlives this process and steps that are remembered."""
        context, order = self.parts.context, self.order
        processes = sparing(context.layout, world.processes)
        grace = context.project.fleet.work.grace_seconds
        answering = self.parts.answering(order) if keeper.definition.state_driven else None
        adapter = detached(
            context.layout,
            keeper,
            self.parts.fork_server,
            processes,
            world.journal.emit,
            run=order.run,
            part=order.part,
            grace_seconds=grace,
            workflow=answering.pointer(context.layout, order.run) if answering is not None else "",
            credential=partial(answering.runs.credential, order.run) if answering is not None else None,
            over=self._over if answering is not None else None,
        )
        by_code = isinstance(world.adapter, FieldAdapter)  # it starts no process that could outlive this one
        inner = world.adapter if by_code else adapter
        self.paced = PacedAdapter(inner, self.session.provider, self.parts.gate, self._give_way)
        works = order.purpose in (Purpose.WORK, Purpose.INTEGRATE)
        dressed = msgspec.structs.replace(
            world,
            adapter=self.paced,
            quarters=world.quarters if by_code else adapter.quarters,
            processes=processes,
            steps=steps,
            durable=True,
            hands_over=works,
            accepts=self.parts.accepts(order),
            rework=GitRework(context.layout, context.project.fleet.merge.remote)
            if world.rework is None
            else world.rework,
            ledger=self._ledger(world) if works else None,
            rulebook=world.rulebook if works else None,
            workflow=answering.runs if answering is not None else None,
            control=answering.control(order.agent) if answering is not None else None,
        )
        if self.parts.share is None:
            return dressed
        root = keeper.definition.file.runner.execution.worktree.root
        return self.parts.share.dress(dressed, root, self.share, self._hand_over)

    def _ledger(self, world: SessionContext) -> TaskLedger:
        """The blackboard as the part sees it. What came back from a forge is heard by whoever begins."""
        return PartLedger(
            world.ledger
            or SessionRecorder(self.parts.board.board, partial(in_language, self.parts.context.project.language))
        )

    async def _over(self) -> bool:
        return isinstance(self.run.loop, StateDrivenLoop) and await self.run.loop.is_over()

    def _give_way(self, why: str) -> None:
        self.why = why

    async def execute(self) -> RunResult:
        assert self.prepared is not None  # noqa: S101  (made ready together)
        try:
            result = await self.prepared.execute()
        finally:
            self.parts.over(self.order.run)
        if not self.order.landed:  # then nobody was asked
            folder = self.parts.context.layout.run_folder(self.order.run)
            await asyncio.to_thread(remove_output, folder, self.order.part)
        if self.parts.share is not None and self.order.landed and result.outcome is Outcome.COMPLETED:
            await self.parts.share.forget(self.run)
        return result

    async def changed(self) -> tuple[str, ...]:
        workspace = self.run.workspace
        if workspace is None:
            return ()
        git = self.parts.context.layout.git
        tip = await git.commit_of(f"refs/heads/{workspace.branch}")
        try:
            return await changed_files(git, workspace.base, tip) if tip is not None else ()
        except GitError:
            return ()

    async def leave(self) -> None:
        """Take away the working tree and the branch of a session that hands over no commit."""
        workspace, run = self.run.workspace, self.run
        if workspace is None:
            return
        began = self.began or workspace.base_branch
        await remove_scratch(self.parts.context, run.world, workspace, run.plan.run, began)

    async def share(self) -> None:
        if self.parts.share is not None:
            await self.parts.share.share(self.run)

    async def _hand_over(self) -> None:
        """Before others land it, they must have it."""
        if self.parts.share is None or not self.run.handed_over:
            return

        def say(told: str) -> None:
            self.parts.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=f"#{self.order.task}: {told}"))

        await self.parts.share.hand_over(self.run, say)


class PartLedger:
    """The blackboard as one part sees it. How the part ended is written down by whoever carries it out."""

    def __init__(self, ledger: TaskLedger) -> None:
        self.ledger = ledger

    async def look(self, number: int) -> Task:
        return await self.ledger.look(number)

    async def begin(self, number: int, session: SessionStart, died: Died | None = None) -> Briefing:
        return await self.ledger.begin(number, session, died)

    async def record(self, number: int, run: str, verification: Verification) -> None:
        await self.ledger.record(number, run, verification)

    async def move(self, number: int, change: StatusChange) -> Task:
        return await self.ledger.move(number, change)

    async def ask_review(self, number: int, commit: str, run: str, rounds: int) -> Review:
        return await self.ledger.ask_review(number, commit, run, rounds)

    async def end(self, session: SessionEnd) -> None:
        """Said elsewhere."""
