"""The orchestrator: read the snapshot, decide, carry out, again and again.

Every action follows from the blackboard alone and is one transaction, so an executor that dies between two actions
leaves nothing half done, and the next one decides the same. Scheduling and waiting cost no model call.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import msgspec
from sqlalchemy import Connection

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.engine.clock_watch import ClockWatch
from genba.coordination.engine.database_backoff import DatabaseBackoff
from genba.coordination.engine.durable_engine import Engine, Workflow, sessions_queue
from genba.coordination.merge_queue.queue_passes import QueuePasses
from genba.coordination.scheduler.closure import Close, Closures, closing_change, closure_of
from genba.coordination.scheduler.handover_notes import leave_note
from genba.coordination.scheduler.progress import Watch
from genba.coordination.scheduler.session import reap
from genba.coordination.scheduler.session_plan import SessionPlan, read_state
from genba.definitions.project.work_sections import FleetSettings
from genba.domain.errors import (
    ConfigurationError,
    DiskFullError,
    GenbaError,
    NotFoundError,
    StateConflictError,
    UnavailableError,
    UsageError,
)
from genba.domain.fleet.progress import FleetEvent, FleetEventKind, WorkEndReason, command_for
from genba.domain.fleet.records import (
    Cause,
    Escalation,
    EscalationKind,
    FleetSession,
    FleetSnapshot,
    MergeEntry,
    Purpose,
    SegmentOrder,
    segment_workflow,
)
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, TaskStatus
from genba.domain.timestamps import later
from genba.judgement.language.sentences import in_language
from genba.judgement.scheduling import actions as can
from genba.judgement.scheduling.actions import SchedulerAction, WorkerContext
from genba.judgement.scheduling.dispatch import scheduler_actions
from genba.judgement.scheduling.scheduler_view import held_by

PART = "part"
"""The kind of the workflows of sessions."""
_BY_OTHERS = (can.WaitReason.ELSEWHERE, can.WaitReason.WORKERS, can.WaitReason.LIMIT)
"""Waits that another session or executor ends."""
_BEAT_SECONDS = 60.0
_GATHERING_SECONDS = 0.02
"""How long what happens is gathered before anybody looks: one look is enough for all of it."""
_LONGEST_GATHERING_SECONDS = 0.15
_PAUSES_PER_LOOK = 3.0
"""The longer a look takes, the more is gathered for the next one: looking is not all that there is to do."""
_ENDS_ANYWAY = (can.WaitReason.BUDGET, can.WaitReason.MERGE)
"""Waits with a time at which something is tried, and nothing need have changed."""
_SITTING_DOWN_SECONDS = 60.0
_REFUSED_AGAIN = 2
_BY_PRIORITY = {"critical": 2, "high": 3, "medium": 4, "low": 5}


class AgentPool(Protocol):
    """What the orchestrator knows of this machine and of the agents of the project."""

    async def me(self, running: int) -> WorkerContext: ...

    async def plan(self, move: can.Start, field: FleetSnapshot) -> tuple[SessionPlan, str]:
        """What a session is held to, and the provider that its agent asks. Raises what stands in the way."""
        ...

    async def handover(self, task: int) -> str: ...

    def has_died(self, session: FleetSession) -> bool | None:
        """Whether the process of a session without the fleet is gone; None where this host cannot tell."""
        ...

    def stages(self) -> dict[str, tuple[str, ...]]:
        """By type of task: the agents that work on it one after the other."""
        ...

    async def close_landed(self, run: str, landed: str) -> bool:
        """Close a session of `genba run` whose commit landed. False where this machine cannot."""
        ...

    def closes(self, agent: str) -> bool:
        """Whether a task ends with the verified work of an agent, by its definition."""
        ...

    def reviewed_types(self) -> dict[str, str]:
        """By the type of a task: who reviews it. Types without a reviewer are left out."""
        ...


class Orchestrator:
    """Moves the tasks of one project on, from one executor."""

    def __init__(
        self,
        board: FleetBoard,
        engine: Engine,
        settings: FleetSettings,
        crew: AgentPool,
        watch: Watch,
        suspend: Callable[[str, str], None],
        host: str,
        looked: Callable[[FleetSnapshot], None],
        end_agents: Callable[[str], Awaitable[None]],
        close: Close,
    ) -> None:
        self.board = board
        self.engine = engine
        self.settings = settings
        self.crew = crew
        self.watch = watch
        self.suspend = suspend
        self.host = host
        self.looked = looked
        """Hears what every look at the field has shown."""
        self.end_agents = end_agents
        """Ends the processes of a session without an executor."""
        self.wake = asyncio.Event()
        self.closing = Closures(board, close, self._part_lost, self.wake.set)
        self.actor = Actor(ActorKind.ORCHESTRATOR, engine.executor)
        self.field = FleetSnapshot(now="", tasks={})
        self.waits: tuple[can.Wait, ...] = ()
        self._beaten = 0.0
        self._refusals: dict[bytes, int] = {}
        self._refused_before: dict[bytes, int] = {}
        """By move that was refused at the last look: how often in a row."""
        self._database = DatabaseBackoff(self._note)
        self._clock = ClockWatch(board, settings.workflow.lease_seconds)
        self._elsewhere: set[str] = set()
        """Sessions of other executors that were reported."""
        self.turns = QueuePasses(board, engine, settings.merge, watch)

    async def work(self, until_empty: bool) -> WorkEndReason:
        """Run until it is stopped, or until nothing is left that could be done."""
        took = 0.0
        while True:
            await asyncio.sleep(min(max(_GATHERING_SECONDS, _PAUSES_PER_LOOK * took), _LONGEST_GATHERING_SECONDS))
            self.wake.clear()
            began = time.monotonic()
            try:
                busy = await self.tick()
                took = time.monotonic() - began
                leaves = until_empty and not busy and not await self.turns.are_left()
            except (UnavailableError, DiskFullError) as error:
                await self._rest(self._database.out_of_reach(error))
                continue
            self._database.answered()
            if self.field.stopping:
                return WorkEndReason.STOPPED
            if leaves:
                return WorkEndReason.BUDGET if self._out_of_money() else WorkEndReason.EMPTY
            await self._rest(self.settings.work.poll_seconds)

    async def _rest(self, seconds: float) -> None:
        waking = asyncio.ensure_future(self.wake.wait())
        lost = asyncio.ensure_future(self.engine.suspended.wait())
        await asyncio.wait({waking, lost}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        waking.cancel()
        if lost.done():
            raise StateConflictError(
                f"another process has taken the place of {self.engine.executor}",
                unchanged="its sessions go on there.",
                hint="genba work --executor NAME   takes another name",
            )
        lost.cancel()

    async def tick(self) -> bool:
        """One look and what follows from it. Says whether anything goes on, or will by itself."""
        await self._clock.look()
        self.field = await asyncio.to_thread(self.board.field)
        if await self._take_over_the_dead():
            self.field = await asyncio.to_thread(self.board.field)
        self.looked(self.field)
        await self._beat()
        mine = [session for session in self.field.sessions if self._is_mine(session)]
        self._suspend_what_is_held(mine)
        open_entries = any(not entry.status.ended for entry in self.field.entries)
        unfinished = await self.engine.unfinished() if mine or open_entries else []
        lost = await self._bury_what_is_lost(mine, unfinished)
        died = await self._bury_runs_that_died() + await self._release_external_agents()
        me = msgspec.structs.replace(
            await self.crew.me(len(mine) - lost), turning=await self.turns.going(unfinished, self.field)
        )
        decided = scheduler_actions(self.field, self.settings, me)
        self.waits = tuple(move for move in decided if isinstance(move, can.Wait))
        self._refused_before, self._refusals = self._refusals, {}
        done = [(move, await self._carried_out(move)) for move in decided if not isinstance(move, can.Wait)]
        self.watch.see(self.field, self.waits)
        turned = sum(made for move, made in done if isinstance(move, can.RunQueue))
        running = any(session.status == "running" and not session.external for session in self.field.sessions)
        timed = any(wait.until and wait.kind not in _ENDS_ANYWAY for wait in self.waits)
        elsewhere = any(wait.kind in _BY_OTHERS for wait in self.waits)
        if sum(made for _, made in done) > turned or running or timed or elsewhere or lost + died > 0:
            self.turns.in_vain = 0
            return True
        return self.turns.may_still_land(self.field, turned, bool(me.turning))

    def _is_mine(self, session: FleetSession) -> bool:
        return session.status == "running" and session.executor == self.engine.executor

    def _suspend_what_is_held(self, mine: list[FleetSession]) -> None:
        for session in mine:
            task = self.field.tasks.get(session.task)
            if task is not None and held_by(self.field, task) is not None:
                self.suspend(session.run, "its task was paused")
            elif task is None or task.status.ended:
                self.suspend(session.run, "its task has ended")

    async def _bury_what_is_lost(self, mine: list[FleetSession], unfinished: list[Workflow]) -> int:
        """End sessions whose part the engine does not carry out any more, whatever happened to it. Says how many."""
        alive = {workflow.id for workflow in unfinished if workflow.status != "poisoned"}
        lost = 0
        for session in mine:
            workflow = segment_workflow(session.run, session.part)
            if workflow in alive or await self.closing.goes_on(session, self.field):
                continue
            known = await self.engine.status(workflow)
            why = known.error or known.status if known is not None else "its workflow is gone"
            reason = f"its part was lost: {why}"
            if await asyncio.to_thread(reap, self.board, session.run, session.part, reason):
                await self.end_agents(session.run)
                lost += 1
                self._part_lost(session, reason)
            if known is not None and known.status == "poisoned":
                await self.engine.cancel([workflow])
        return lost

    def _part_lost(self, part: FleetSession | SegmentOrder, reason: str) -> None:
        self._tell(FleetEventKind.FAILED, part.task, agent=part.agent, run=part.run, detail=reason)

    async def _bury_runs_that_died(self) -> int:
        """End sessions of `genba run` whose process has died. Returns how many. Only for processes of this host."""
        died = 0
        for session in self.field.sessions:
            if session.status != "running" or session.executor:
                continue
            has_died = await asyncio.to_thread(self.crew.has_died, session)
            message = f"{session.run} on {session.host or 'another host'} works on it"
            if has_died is None and session.run not in self._elsewhere:
                self._elsewhere.add(session.run)
                hint = f"if that machine is gone:  genba run --resume {session.run}"
                self._note(f"#{session.task} is left alone: {message}   {hint}")
            reason = "its process died"
            if has_died and await asyncio.to_thread(reap, self.board, session.run, session.part, reason):
                died += 1
                self._part_lost(session, reason)
        return died

    async def _release_external_agents(self) -> int:
        """End sessions whose agent came by itself, and has left without a word. Says how many."""
        external_agents = [
            session for session in self.field.sessions if session.external and session.status == "running"
        ]
        for session in external_agents:
            if session.run not in self._elsewhere:
                self._elsewhere.add(session.run)
                self._note(f"#{session.task} is in the hands of {session.agent}, who came by itself")
        if not external_agents:
            return 0
        at, reason = self.field.now, "its agent has left"
        gone = await asyncio.to_thread(self.board.abandoned, at, later(at, -_SITTING_DOWN_SECONDS))
        for session in external_agents:
            if session.run in gone and await asyncio.to_thread(reap, self.board, session.run, session.part, reason):
                await asyncio.to_thread(leave_note, self.board, session.task, session.run)
                self._part_lost(session, reason)
        return len(gone)

    async def _beat(self) -> None:
        """Say now and then that this executor lives."""
        if time.monotonic() - self._beaten >= _BEAT_SECONDS:
            self._beaten = time.monotonic()
            await asyncio.to_thread(self.board.beat, self.engine.executor)

    async def _take_over_the_dead(self) -> bool:
        """Sessions of executors that no longer live go on here. Says whether there were any such executors.

        One that was taken for dead while it could not reach the database may work again. So the holder of its
        own lock counts as alive, and executors with sessions are checked, whatever their row says.
        """
        own, others = self.engine.executor, []
        working = {
            session.executor for session in self.field.sessions if session.status == "running"
        } | self.turns.merging
        for executor in self.field.executors:
            if executor.id != own and (executor.status == "live" or executor.id in working):
                others.append(executor.id)
            if executor.id == own and executor.status != "live" and not self.engine.lost:
                await asyncio.to_thread(self.board.register, executor)
        dying = await self.engine.dead(others) if others else []
        for dead in dying:
            taken = await self.engine.take_over(dead)
            if taken is None:
                continue
            await asyncio.to_thread(self._write_down_taken, dead)
            if taken:
                message = f"{len(taken)} of {dead}"
                self.watch.tell(FleetEvent(kind=FleetEventKind.TAKEN_OVER, detail=message))
        return bool(dying)

    def _write_down_taken(self, dead: str) -> None:
        for session in self.board.field().sessions:
            if session.executor == dead and session.status == "running":
                self.board.take_over(session.run, self.engine.executor, self.host)
        self.board.leave(dead, "dead")

    def _out_of_money(self) -> bool:
        asked = (found.kind for found in self.field.escalations if found.status == "open")
        return any(wait.kind is can.WaitReason.BUDGET for wait in self.waits) or EscalationKind.BUDGET in asked

    async def _carried_out(self, move: SchedulerAction) -> bool:
        """Carry out an action. One that no longer fits is skipped: the next pass decides again."""
        try:
            return await self._carry_out(move)
        except UnavailableError:
            raise
        except StateConflictError as error:
            return self._is_decided_again(move, error)
        except GenbaError as error:
            return await self._in_the_way(move, error)

    def _is_decided_again(self, move: SchedulerAction, error: StateConflictError) -> bool:
        """A refused action is decided again at once; a second refusal is reported, and the action waits."""
        key = msgspec.json.encode(move)
        times = self._refusals[key] = self._refused_before.get(key, 0) + 1
        if times == 1:
            self.wake.set()
        elif times == _REFUSED_AGAIN:
            self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=error.message))
        return times <= _REFUSED_AGAIN

    async def _carry_out(self, move: SchedulerAction) -> bool:
        board = self.board
        match move:
            case can.Start():
                await self._start(move)
            case can.Continue():
                await self._continue(move)
            case can.Queue():
                await asyncio.to_thread(self._queue, move)
            case can.AskReview():
                words = partial(in_language, self.settings.workflow.language)
                asked = partial(board.ask_review, move.task, move.commit, move.reviewer_type)
                await asyncio.to_thread(asked, assignee=move.assignee, words=words)
                whom = f"of a person, since {move.reason}" if move.reason else ""
                self._tell(FleetEventKind.REVIEW, move.task, detail=f"of {move.commit[:7]} is asked for {whom}".strip())
            case can.Escalate():
                await self._escalate(move.escalation, move.blocker)
            case can.Block(task=number, blocker=blocker):
                change = StatusChange(to=TaskStatus.BLOCKED, actor=self.actor, reason=blocker.reason, blocker=blocker)
                await asyncio.to_thread(board.board.change_status, number, change)
                self._note(f"#{number} does not go on, and its manager decides: {blocker.reason}")
            case can.RunQueue(target=target):
                return await self.turns.take(target, self.field)
            case can.CreateSubtasks():
                make = partial(board.create_parts, move.plan, self.actor, self.crew.reviewed_types())
                numbers = await asyncio.to_thread(make)
                made = ", ".join(f"#{number}" for number in numbers)
                self._tell(FleetEventKind.PLANNED, move.task, detail=f"its parts are {made}")
            case can.RejectPlan():
                await asyncio.to_thread(board.reject_plan, move.plan, move.reason, self.actor)
            case can.Withdraw():
                await asyncio.to_thread(board.withdraw, move.task, move.reason)
            case can.Reopen() | can.Close() | can.EndSession():
                await self._let_go(move)
            case _:
                return False
        return True

    async def _close_task(self, move: can.Close) -> None:
        """End a task whose work landed. A session of `genba run` is closed as after its own merge."""
        session, plan, _ = await asyncio.to_thread(self.board.begun, move.run)
        if not plan and await self.crew.close_landed(move.run, move.landed):
            return
        closes = True if plan else await asyncio.to_thread(self.crew.closes, session.agent)
        change = partial(closing_change, self.board, move, self.crew.stages(), self.actor, closes)
        await asyncio.to_thread(lambda: self.board.board.change_status(move.task, change()))

    async def _let_go(self, move: can.Reopen | can.Close | can.EndSession) -> None:
        """Reopen a task without a session, end one whose work landed, or give up a session that waits."""
        if isinstance(move, can.Close):
            await self._close_task(move)
        else:
            await asyncio.to_thread(self._give_up, move)

    def _give_up(self, move: can.Reopen | can.EndSession) -> None:
        match move:
            case can.Reopen(task=number, reason=reason):
                self.board.reopen(number, reason, self.actor)
            case can.EndSession(run=run, part=part, reason=reason, gives_back=True):
                self.board.give_back(run, part, reason, self.actor)
                came_back = [path for entry in self.field.entries if entry.run == run for path in entry.paths]
                conflicts = (*self._conflicts_before(move.task), *came_back)
                leave_note(self.board, move.task, run, conflicts, self.settings.workflow.language)
            case can.EndSession(run=run, part=part, reason=reason):
                self.board.give_up(run, part, reason, self.actor)

    async def _start(self, move: can.Start) -> None:
        plan, provider = await self.crew.plan(move, self.field)
        run = run_id(self.board.board.store.project, move.agent, move.task, move.attempt, move.purpose)
        works = move.purpose in (Purpose.WORK, Purpose.INTEGRATE)
        handover = await self.crew.handover(move.task) if works else ""
        order = SegmentOrder(
            run=run,
            task=move.task,
            agent=move.agent,
            attempt=move.attempt,
            purpose=move.purpose,
            gap=move.gap,
            paths=await asyncio.to_thread(self._conflicts_before, move.task) if works else (),
            handover=handover,
        )
        begin = partial(
            self.board.start,
            order,
            executor=self.engine.executor,
            host=self.host,
            provider=provider,
            plan=msgspec.json.encode(plan).decode(),
            base_branch=plan.base_branch,
            enqueue=self._enqueue(order, self._rank(move.task)),
        )
        await asyncio.to_thread(begin)
        self._tell(FleetEventKind.STARTED, move.task, agent=move.agent, run=run, detail=move.reason)

    def _conflicts_before(self, number: int) -> tuple[str, ...]:
        """The paths that the attempts before got back in conflict: their markers may still be on the branch."""
        states = (read_state(self.board.state_of(session.run)) for session in self.board.sessions(number))
        return tuple(dict.fromkeys(path for state in states if state is not None for path in state.conflicts))

    async def _continue(self, move: can.Continue) -> None:
        session = next(found for found in self.field.sessions if found.run == move.run)
        if move.cause is Cause.LANDED:  # the landing was reported, and the end will be
            order = closure_of(session, session.part + 1, move.landed)
            await self.closing.begin(order, self.engine.executor, self.host)
            return
        entry = next((found for found in self.field.entries if found.run == move.run), None)
        came_back = move.cause in (Cause.CONFLICT, Cause.FAILED)
        works = session.purpose in (Purpose.WORK, Purpose.INTEGRATE)
        order = SegmentOrder(
            run=session.run,
            task=session.task,
            agent=session.agent,
            attempt=session.attempt,
            part=session.part + 1,
            purpose=session.purpose,
            cause=move.cause,
            gap=move.gap,
            over=entry.over if entry is not None and came_back else "",
            paths=entry.paths if entry is not None and came_back else (),
            handover=await self.crew.handover(session.task) if works else "",
        )
        go_on = partial(
            self.board.continue_,
            order,
            executor=self.engine.executor,
            host=self.host,
            enqueue=self._enqueue(order, self._rank(session.task)),
        )
        await asyncio.to_thread(go_on)
        message = f"{move.cause}: {move.reason}" if move.reason else str(move.cause)
        self._tell(FleetEventKind.CONTINUED, session.task, agent=session.agent, run=session.run, detail=message)

    def _enqueue(self, order: SegmentOrder, priority: int) -> Callable[[Connection], None]:
        def enqueue(connection: Connection) -> None:
            self.engine.enqueue_in(
                connection,
                kind=PART,
                id=order.workflow,
                payload=msgspec.json.encode(order).decode(),
                queue=sessions_queue(self.engine.executor),
                priority=priority,
            )

        return enqueue

    def _queue(self, move: can.Queue) -> None:
        run, target = move.run, move.target
        session = self.board.session(run)
        task = self.board.board.get(session.task)
        entry = MergeEntry(
            task=session.task,
            run=run,
            branch=session.branch,
            commit=move.commit,
            target=target,
            title=task.title,
            agent=session.agent,
            priority=task.priority,
            round=move.round,
        )
        self.board.enqueue_merge(entry)
        self._tell(FleetEventKind.QUEUED, session.task, agent=session.agent, run=run, detail=f"for {target}")

    async def _escalate(self, escalation: Escalation, blocker: Blocker | None) -> None:
        made = await asyncio.to_thread(self.board.escalate, escalation, blocker)
        task = self.field.tasks.get(made.task)
        result = FleetEvent(
            kind=FleetEventKind.ESCALATED,
            task=made.task,
            title=task.title if task is not None else "",
            run=made.run,
            detail=made.question,
            command=command_for(made.kind, made.task),
        )
        self.watch.tell(result)

    async def _in_the_way(self, move: SchedulerAction, error: GenbaError) -> bool:
        """A session that cannot start needs a person; other errors are reported, and it is tried again."""
        self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=error.message))
        lasting = isinstance(error, ConfigurationError | NotFoundError | UsageError)
        if not isinstance(move, can.Start) or not lasting:
            return False
        task = self.field.tasks.get(move.task)
        if task is None or task.status is not TaskStatus.OPEN:
            return False
        escalation = Escalation(
            task=move.task,
            kind=EscalationKind.ATTEMPTS,
            question=f"{move.agent} cannot begin: {error.message}",
            evidence={"agent": move.agent, "hint": error.hint},
        )
        await self._escalate(escalation, Blocker(BlockerKind.FAILED, error.message))
        return True

    def _note(self, message: str) -> None:
        self.watch.tell(FleetEvent(kind=FleetEventKind.NOTICE, detail=message))

    def _rank(self, number: int) -> int:
        task = self.field.tasks.get(number)
        return _BY_PRIORITY[str(task.priority)] if task is not None else _BY_PRIORITY["medium"]

    def _tell(self, kind: FleetEventKind, number: int, *, agent: str = "", run: str = "", detail: str = "") -> None:
        task = self.field.tasks.get(number)
        title = task.title if task is not None else ""
        self.watch.tell(FleetEvent(kind=kind, task=number, title=title, agent=agent, run=run, detail=detail))


def run_id(project: str, agent: str, task: int, attempt: int, purpose: Purpose) -> str:
    """The same for the same attempt, and another one in every other project and database."""
    mark = hashlib.sha256(f"{project}\0{agent}\0{task}\0{attempt}\0{purpose}".encode()).hexdigest()[:6]
    return f"{agent}-{task}-{attempt}-{mark}"


def waking(handler: Callable[..., Awaitable[str]], wake: Callable[[], None]) -> Callable[..., Awaitable[str]]:
    """The same handler, after which the scheduler runs at once."""

    async def carry_out(payload: str, steps: object) -> str:
        try:
            return await handler(payload, steps)
        finally:
            wake()

    return carry_out
