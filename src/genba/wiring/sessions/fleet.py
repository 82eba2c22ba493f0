"""A fleet on this machine: the blackboard, the engine, the fork_server and the orchestrator, wired together."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.project.notifications import notices_sent
from genba.application.project.settings_file import SettingsFile
from genba.application.sessions.agent_pool import ProjectAgentPool
from genba.application.sessions.host import host_name
from genba.application.sessions.landed_sessions import close_landed
from genba.application.sessions.preflight import preflight
from genba.application.sessions.provider_pauses import ProviderGate
from genba.application.tracker.board_filter import BoardFilter
from genba.application.verification.merge_verification import Proving
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.connections.git.merging.merge_target import GitTarget
from genba.connections.git.repository.stale_locks import sweep_drafts
from genba.coordination.engine.durable_engine import Engine
from genba.coordination.engine.engine_log import EngineEvent
from genba.coordination.merge_queue.queue import MergeQueue
from genba.coordination.merge_queue.queue_passes import TURN
from genba.coordination.scheduler.orchestrator import PART, Orchestrator, waking
from genba.coordination.scheduler.planning import finish_plan
from genba.coordination.scheduler.progress import Watch
from genba.coordination.scheduler.reviews import finish_review
from genba.coordination.scheduler.session import Segments
from genba.domain.decoding import reader
from genba.domain.errors import StateConflictError, UnavailableError
from genba.domain.fleet.progress import FleetEvent, FleetEventKind, FleetView, WorkEndReason, WorkSummary
from genba.domain.fleet.records import Executor, FleetSnapshot, Purpose, SegmentEnd, SegmentOrder
from genba.execution.loop.journal_steps import PlainSteps
from genba.execution.run_values import RunResult
from genba.execution.session_context import AnswerContext
from genba.judgement.scheduling.actions import WorkerContext
from genba.judgement.scheduling.plans import plan_check
from genba.judgement.scheduling.spending import reached
from genba.judgement.verification.reviews import verdict_check
from genba.wiring.sessions.live_segments import LiveSegments, sharing_of
from genba.wiring.sessions.session_factory import execute_closing
from genba.wiring.sessions.supervisor import fork_server_of
from genba.wiring.verification.verifier import sweep_checkouts

if TYPE_CHECKING:
    from genba.application.workflow.server import Door, WorkflowServer
    from genba.coordination.facilitator.facilitator import Scope
    from genba.definitions.project.work_sections import FleetSettings
    from genba.domain.ports import Steps
    from genba.domain.sessions.evidence import CheckResult
    from genba.wiring.project.project_context import ProjectContext

Listener = Callable[[FleetEvent], None]
EXECUTOR_VARIABLE = "GENBA_EXECUTOR"
_MOST_ON_ONE_HOST = 64
_ASK_AGAIN_SECONDS = 1.0
_SWITCH_SECONDS = 0.02
"""How long a thread may go on before another has its turn. Dozens of them do little things here, and what they gain by
being quick is less than what the switching costs."""


class Fleet:
    """One executor of a project. Whatever happens to it, another one can go on."""

    def __init__(
        self, context: ProjectContext, board: FleetBoard, watch: Watch, on_board: BoardFilter | None = None
    ) -> None:
        self.context = context
        self.board = board
        """Of the parts and the turns: when the database is out of reach, they wait for it."""
        self.looking = watch.board
        """For decisions and watching: it raises when the database is out of reach."""
        self.watch = watch
        self.on_board = on_board
        self.settings: FleetSettings = context.project.fleet
        self.gate = ProviderGate(board, self.settings.work.patience_seconds)
        self.fork_server = fork_server_of(context.layout)
        self.file = SettingsFile(context.layout.top)
        self.proving = Proving(context, board)
        self.crew: ProjectAgentPool | None = None
        self.orchestrator: Orchestrator | None = None
        self.parts: LiveSegments | None = None
        self.server: WorkflowServer | None = None
        """Answers agents that ask what is next, where there are any."""
        self._suspending = asyncio.Event()
        self._leaving = threading.Event()
        board.store.endure = lambda _error: not self._leaving.wait(_ASK_AGAIN_SECONDS)
        self._opened = asyncio.Event()
        """Whatever this executor left goes on as soon as the engine runs; it waits for the rest of the fleet."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        context: ProjectContext,
        *,
        workers: int | None = None,
        only_agent: str = "",
        only_label: str = "",
        only_board: Scope | None = None,
        executor: str = "",
        listener: Listener = lambda _event: None,
        door: Door | None = None,
    ) -> AsyncIterator[Fleet]:
        """An executor, ready to work; what it had left unfinished goes on at once."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        settings = context.project.fleet
        base_branch = await preflight(context)
        on_board = await BoardFilter.read(context, only_board) if only_board is not None else None
        board = FleetBoard(context.board())
        looking = FleetBoard(Blackboard(board.store.impatient()))
        slots = workers or settings.work.workers
        watch = Watch(looking, "", slots, context.project.name or context.layout.main.name, listener)
        fleet = cls(context, board, watch, on_board)
        if context.project.file.telemetry.enabled:
            from genba.connections.telemetry.process import with_fleet_telemetry  # noqa: PLC0415  (off by default)

            watch.listener = with_fleet_telemetry(context.project.source, listener, fleet.picture)
        loading = asyncio.create_task(
            asyncio.to_thread(fleet.fork_server.open)
        )  # on another core, while the engine loads
        try:
            engine = await fleet._engine(executor, slots)
        except BaseException:
            await asyncio.gather(loading, return_exceptions=True)
            fleet.fork_server.close()
            raise
        try:
            await loading
            await fleet._begin(engine, base_branch, slots, only_agent, only_label, door)
            yield fleet
        finally:
            watch.suspending = True
            fleet._leaving.set()
            if fleet.orchestrator is not None:
                await fleet.orchestrator.closing.stop()
            await engine.close()
            if fleet.server is not None:
                await asyncio.to_thread(fleet.server.close)
            fleet.fork_server.close()
            await asyncio.to_thread(fleet.looking.leave, engine.executor, "suspended")
            await fleet._tidy()

    async def _tidy(self) -> None:
        """Remove what killed processes left here. A failure does not stop the executor from ending."""
        with suppress(OSError):
            await sweep_checkouts(self.context.layout, self.context.processes)
        with suppress(OSError):
            await asyncio.to_thread(sweep_drafts, self.context.layout)

    async def _engine(self, executor: str, slots: int) -> Engine:
        """The engine under the name that was given, or under the first free one of this host."""
        named = executor or os.environ.get(EXECUTOR_VARIABLE, "")
        names = [named] if named else [f"{host_name()}-{number}" for number in range(1, _MOST_ON_ONE_HOST + 1)]
        if not self.board.board.store.on_postgres:
            names = names[:1]
        handlers = {PART: self._part, TURN: self._turn}
        while True:
            name = names.pop(0)
            try:
                self.watch.executor = name
                return await Engine.open(
                    self.context.database(),
                    executor=name,
                    workers=slots,
                    handlers={kind: waking(handler, self._wake) for kind, handler in handlers.items()},
                    forgetful=(TURN,),  # a turn looks at the target first, and finds there what one before it did
                    project=self.board.board.store.project,
                    say=self._say,
                )
            except UnavailableError:
                raise
            except StateConflictError:
                if not names:
                    raise

    async def _begin(
        self, engine: Engine, base_branch: str, slots: int, only_agent: str, only_label: str, door: Door | None
    ) -> None:
        me = WorkerContext(
            executor=engine.executor,
            host=host_name(),
            workers=slots,
            only_agent=only_agent,
            only_label=only_label,
            only_board=self.on_board.name if self.on_board is not None else "",
        )
        crew = self.crew = ProjectAgentPool(
            self.context,
            self.looking,
            me,
            base_branch,
            self.on_board,
            close=partial(close_landed, self.context, partial(execute_closing, self.context)),
        )
        for name, problem in crew.broken.items():
            message = f"{name} cannot be used: {problem}  genba agent check {name}"
            self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=message))
        own = Executor(id=engine.executor, host=host_name(), process=os.getpid(), workers=slots)
        await asyncio.to_thread(self.looking.register, own)
        if door is not None and crew.asks:
            await self._answer(door, engine.executor)
        self.orchestrator = Orchestrator(
            self.looking,
            engine,
            self.settings,
            crew,
            self.watch,
            self._suspend_part,
            host_name(),
            self._looked,
            self._end_agents,
            self._close,
        )
        self.watch.tell(FleetEvent(kind=FleetEventKind.OPENED, detail=f"{engine.executor}, {slots} workers"))
        self._opened.set()

    async def work(self, until_empty: bool = False) -> WorkSummary:
        """Work on tasks until a person stops it or none are left."""
        assert self.orchestrator is not None  # noqa: S101  (an open fleet has one)
        async with notices_sent(self.context, self._note):
            working = asyncio.ensure_future(self._follow(self.orchestrator, until_empty))
            suspending = asyncio.ensure_future(self._suspending.wait())
            try:
                await asyncio.wait({working, suspending}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                suspending.cancel()
                if not working.done():
                    working.cancel()
                    await asyncio.wait({working})
        ended = WorkEndReason.SUSPENDED if working.cancelled() else working.result()
        return await asyncio.to_thread(self.watch.summary, ended)

    async def _follow(self, orchestrator: Orchestrator, until_empty: bool) -> WorkEndReason:
        """Work in step with the tracker of the project, where that is another one than the blackboard."""
        office = self.context.office()
        if office is None:
            return await orchestrator.work(until_empty)
        follower = office.follower(self._note, self._wake)
        try:
            async with follower.at_work(), self._board_followed(office.settings.sync_seconds):
                while True:
                    ended = await orchestrator.work(until_empty)
                    if ended is not WorkEndReason.EMPTY or not await follower.changed():
                        return ended
        finally:
            await office.close()

    def _board_followed(self, seconds: float) -> AbstractAsyncContextManager[None]:
        if self.on_board is None:
            return nullcontext()
        return self.on_board.followed(seconds, self._note, self._wake)

    def _note(self, message: str) -> None:
        self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=message))

    def suspend(self) -> None:
        """Leave: what runs is suspended, and goes on with the next one who works. Safe to repeat."""
        self.watch.suspending = True
        self._suspending.set()

    def picture(self) -> FleetView:
        limits = [limit for limit in (self.settings.budget.day_usd, self.settings.budget.project_usd) if limit]
        return msgspec.structs.replace(self.watch.picture(), budget_usd=min(limits, default=None))

    async def _part(self, payload: str, steps: Steps) -> str:
        """One part of a session, and what it came to."""
        await self._opened.wait()
        parts = self._live_parts()
        order = reader(SegmentOrder).decode(payload)
        carried = Segments(self.board, parts.prepare, self._afford, self._finish, self.context.project.language)
        done = await carried.carry_out(payload, steps)
        session = await asyncio.to_thread(self.board.session, order.run)
        self.watch.finished(session, await asyncio.to_thread(self.board.board.get, session.task))
        return done

    async def _close(self, order: SegmentOrder) -> None:
        """The segment that closes what has landed; none of its steps is durable."""
        await self._part(msgspec.json.encode(order).decode(), PlainSteps())

    async def _turn(self, payload: str, steps: Steps) -> str:
        """One turn of the merge queue of a target."""
        await self._opened.wait()
        target = GitTarget(self.context.layout, self.settings.merge.remote)
        return await MergeQueue(self.board, target, self.proving.verify, self.watch.hear_queue).handle(payload, steps)

    def _live_parts(self) -> LiveSegments:
        if self.parts is None:
            share = sharing_of(self.context)
            self.parts = LiveSegments(
                self.context, self.board, self.fork_server, self.gate, self.watch, self._answer_context, share
            )
        return self.parts

    async def _answer(self, door: Door, executor: str) -> None:
        """Answer the agents that ask what is next, from now on."""
        from genba.wiring.workflow.answers import open_server  # noqa: PLC0415  (only where an agent asks)

        assert self.crew is not None  # noqa: S101  (an open fleet has one)
        parts = self._live_parts()
        self.server, parts.workflow = await open_server(
            self.context, self.board, self.looking, self.crew, parts.find, door, executor, self._leaving.is_set
        )

    def _looked(self, field: FleetSnapshot) -> None:
        self.gate.know(field.pauses)
        result = self.file.news()
        if result:
            self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=result))

    async def _end_agents(self, run: str) -> None:
        await self._live_parts().end(run)

    def _suspend_part(self, run: str, why: str) -> None:
        if self.parts is not None:
            self.parts.suspend(run, why)

    def _wake(self) -> None:
        if self.orchestrator is not None:
            self.orchestrator.wake.set()

    def _say(self, news: EngineEvent) -> None:
        self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=news.message))

    def _afford(self, number: int, agent: str) -> str:
        """Why a task and an agent may spend no more."""
        task = self.board.board.get(number)
        limits = self.settings.budget
        if task.budget_usd is None and not any(msgspec.structs.astuple(limits)):
            return ""
        from genba.blackboard.database.sanitize import now  # noqa: PLC0415  (only with a budget)

        moment = now()
        asked = tuple(found for found in self.board.escalations(open_only=False) if found.task == number)
        field = FleetSnapshot(
            now=moment, tasks={number: task}, escalations=asked, ledger=self.board.ledger(moment[:10])
        )
        budget = reached(field, self.settings, task, agent)
        return budget.text if budget is not None else ""

    def _answer_context(self, order: SegmentOrder) -> AnswerContext | None:
        """What the answer of a planner or a reviewer must be; None for sessions that work."""
        if order.purpose is Purpose.PLAN:
            return AnswerContext(problem=partial(self._plan_wrong, order.task))
        if order.purpose is Purpose.REVIEW:
            return AnswerContext(problem=partial(verdict_check, language=self.settings.workflow.language))
        return None

    def _plan_wrong(self, number: int, output: dict[str, Any] | None) -> CheckResult | None:
        assert self.crew is not None  # noqa: S101  (an open fleet has one)
        task = self.board.board.get(number)
        return plan_check(output, task, self.crew.plan_limits(task), self.settings.workflow.language)

    def _finish(self, result: RunResult, order: SegmentOrder) -> SegmentEnd | None:
        if order.purpose is Purpose.PLAN:
            assert self.crew is not None  # noqa: S101  (an open fleet has one)
            return finish_plan(result, order, self.board, self.crew.plan_limits(self.board.board.get(order.task)))
        return finish_review(result, order, self.board)
