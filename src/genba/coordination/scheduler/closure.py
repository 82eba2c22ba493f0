"""The closure of what has landed: its branch and its working tree go away, and its task is done.

It prompts no agent and is safe to repeat, so it is not a workflow. A process that dies leaves a
session that looks running; the next scheduler pass sees that its work has landed, and closes it again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.engine.checkpoints import keep
from genba.coordination.scheduler.session import reap
from genba.coordination.scheduler.session_plan import SessionPlan, read_state
from genba.domain.decoding import reader
from genba.domain.errors import DiskFullError, UnavailableError, is_disk_full
from genba.domain.fleet.records import Cause, EntryStatus, FleetSession, FleetSnapshot, SegmentOrder
from genba.domain.sessions.loop_state import ClosureChoice
from genba.domain.tasks.task import Actor, StatusChange, TaskStatus
from genba.judgement.loop.closure import action_in_fleet, ends_task, moves_on
from genba.judgement.scheduling.actions import Close as CloseTask

Close = Callable[[SegmentOrder], Awaitable[None]]
"""Carries out one closure. It may be cancelled."""
Lost = Callable[[SegmentOrder, str], None]
"""Hears of a closure that came to nothing, and why."""

_AT_ONE_TIME = 8
_FIRST_REST_SECONDS = 0.25
_LONGEST_REST_SECONDS = 30.0


class Closures:
    """The closures that are under way in this process."""

    def __init__(self, board: FleetBoard, close: Close, lost: Lost, wake: Callable[[], None]) -> None:
        self._board = board
        self._close = close
        self._lost = lost
        self._wake = wake
        self._slots = asyncio.Semaphore(_AT_ONE_TIME)
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._rests: dict[str, float] = {}
        """By run: how long its closure rests when the machine gets in its way once more."""

    async def begin(self, order: SegmentOrder, executor: str, host: str) -> None:
        """Write down that a closure begins here, and begin it."""
        await asyncio.to_thread(partial(self._board.continue_, order, executor=executor, host=host))
        self._start(order)

    async def goes_on(self, session: FleetSession, field: FleetSnapshot) -> bool:
        """Whether a session that runs is being closed here. A closure that was cut off begins again."""
        if session.run in self._under_way:
            return True
        landed = _landed_as(field, session)
        if not landed:
            return False
        now = await asyncio.to_thread(self._board.session, session.run)
        if (now.status, now.part) == (session.status, session.part):
            self._start(closure_of(session, session.part, landed))
        return True

    def _start(self, order: SegmentOrder) -> None:
        self._under_way[order.run] = asyncio.create_task(self._carry_out(order))

    async def _carry_out(self, order: SegmentOrder) -> None:
        try:
            async with self._slots:
                await self._close(order)
        except (DiskFullError, UnavailableError):
            await self._rest(order.run)
        except Exception as error:  # noqa: BLE001  (the edge of a worker: unexpected errors are reported)
            if is_disk_full(error):
                await self._rest(order.run)
                return
            reason = f"its part was lost: {keep(error).message}"
            if await asyncio.to_thread(reap, self._board, order.run, order.part, reason):
                self._lost(order, reason)
        else:
            self._rests.pop(order.run, None)
        finally:
            del self._under_way[order.run]
            self._wake()

    async def _rest(self, run: str) -> None:
        """It runs on, as far as anybody knows, and begins again at the next look: a little later each time."""
        seconds = self._rests.get(run, _FIRST_REST_SECONDS)
        self._rests[run] = min(2 * seconds, _LONGEST_REST_SECONDS)
        await asyncio.sleep(seconds)

    async def stop(self) -> None:
        """Leave running closures to the next executor."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def closure_of(session: FleetSession, part: int, landed: str) -> SegmentOrder:
    """The part of a session that closes what has landed."""
    return SegmentOrder(
        run=session.run,
        task=session.task,
        agent=session.agent,
        attempt=session.attempt,
        part=part,
        purpose=session.purpose,
        cause=Cause.LANDED,
        landed=landed,
    )


def closing_change(
    board: FleetBoard, move: CloseTask, stages: Mapping[str, tuple[str, ...]], actor: Actor, closes: bool
) -> StatusChange:
    """What becomes of a task whose work landed, where no session can close it: it is done, or its phase is.

    A session of `genba run` has no plan on the blackboard; `closes` says what the definition of its agent does.
    """
    session, plan, state = board.begun(move.run)
    task = board.board.get(move.task)
    on = moves_on(stages.get(task.type, ()), task, session.agent)
    ends = closes and not on
    if plan:
        definition, kept = reader(SessionPlan).decode(plan).definition, read_state(state)
        choice = kept.loop.closure if kept is not None else ClosureChoice()
        ends = ends_task(action_in_fleet(definition.file.runner.integrations.github, choice, on))
    return StatusChange(
        to=TaskStatus.DONE if ends else TaskStatus.OPEN,
        actor=actor,
        commit=move.commit,
        finalized=f"merged {move.landed[:7]}",
        phase="" if ends else session.agent,
        session=move.run,
    )


def _landed_as(field: FleetSnapshot, session: FleetSession) -> str:
    """The commit that the work of a session has landed as; empty while it has not. Then only its closure is left."""
    for entry in field.entries:
        if entry.run == session.run and entry.status is EntryStatus.MERGED and entry.commit == session.verified:
            return entry.landed or entry.commit
    return ""
