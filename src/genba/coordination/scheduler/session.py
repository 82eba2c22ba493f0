"""One part of a session: a durable stretch of a run, from its cause to what the session waits for next.

Law: everything that a part does is a step that is safe to repeat. A part that is cut off goes on in whichever process
takes it over; one that ends says on the blackboard what its session waits for, and holds nothing any more.
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar, cast

import msgspec

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.scheduler.handover_notes import leave_note
from genba.coordination.scheduler.session_plan import SegmentState, SessionPlan, read_state, write_state
from genba.domain.decoding import reader
from genba.domain.errors import ConfigurationError, DiskFullError, GenbaError, StateConflictError
from genba.domain.fleet.records import (
    Cause,
    Escalation,
    EscalationKind,
    FleetSession,
    Purpose,
    SegmentEnd,
    SegmentOrder,
    Spending,
    WaitsFor,
)
from genba.domain.ports import Steps
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, TaskStatus
from genba.execution.run_values import RunResult
from genba.execution.session_progress import SessionProgress

T = TypeVar("T")

_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE)
_LEAVES_NOTHING = (Purpose.PLAN, Purpose.REVIEW, Purpose.MANAGE)
_NOT_CLOSED = "it could not be closed"
_FIRST = "open"
_UNTOLD = (_FIRST, "start", "end")
"""Phases that are over before anybody could look at them, as all are that close what landed; the first is reported with
the beginning of its part."""
_SLOTS = 1000
"""Iterations of one part, at most: the number of an iteration within its session is its part and its place in it."""


class LiveSegment(Protocol):
    """A run that is ready to go on, and what is known of it besides."""

    @property
    def progress(self) -> SessionProgress: ...

    @property
    def paused(self) -> str:
        """Why it stopped asking: its provider limits requests."""
        ...

    async def execute(self) -> RunResult: ...

    async def changed(self) -> tuple[str, ...]:
        """The paths that it has changed so far."""
        ...

    async def leave(self) -> None:
        """Take away its working tree and its branch: what it came to is on the blackboard alone. Safe to repeat."""
        ...

    async def share(self) -> None:
        """Share the work with other hosts. An error is reported and stops nothing."""
        ...


Prepare = Callable[[SegmentOrder, FleetSession, SessionPlan, SegmentState | None, Steps], Awaitable[LiveSegment]]
Afford = Callable[[int, str], str]
"""Why a task and an agent may spend no more; empty when they may."""
Finish = Callable[[RunResult, SegmentOrder], SegmentEnd | None]
"""Takes the result of a session that is no work of its own, such as a plan or a review."""


class Segments:
    """Carries out the parts of sessions, one call for each."""

    def __init__(
        self, board: FleetBoard, prepare: Prepare, afford: Afford, finish: Finish, language: str = "en"
    ) -> None:
        self.board = board
        self.language = language
        self.prepare = prepare
        self.afford = afford
        self.finish = finish

    async def carry_out(self, payload: str, steps: Steps) -> str:
        """The handler of the engine: one part, whole."""
        order = reader(SegmentOrder).decode(payload)
        begun = await asyncio.to_thread(self._begun, order)
        if begun is None:
            return "{}"
        session, plan, kept = begun
        watched = _SegmentSteps(steps, self.board, order, self.afford)
        live: LiveSegment | None = None
        try:
            live = await self.prepare(order, session, plan, kept, watched)
            watched.live = live
            result = await live.execute()
        except DiskFullError as error:
            await asyncio.to_thread(self._cut_short, order, live, error.message)
            return "{}"
        except GenbaError as error:
            # Not a step: what refuses a part may come before steps that it did long ago, and has no place among them.
            await asyncio.to_thread(self._refused, order, live, error)
            return "{}"
        except OSError as error:
            if error.errno not in _OF_THE_MACHINE:
                raise
            message = f"this machine has no room left: {error.strerror}"
            await asyncio.to_thread(self._cut_short, order, live, message)
            return "{}"
        # Neither is a step: what a full disk did to one would be remembered. Once the end is written down, the part is
        # not due any more, and who begins again finds nothing but its working tree to take away.
        leaves = order.purpose in _LEAVES_NOTHING
        if not leaves or not await self._has_ended(order):
            await asyncio.to_thread(self._end, order, live, result)
        if leaves and await self._has_ended(order):
            await live.leave()
        return "{}"

    def _begun(self, order: SegmentOrder) -> tuple[FleetSession, SessionPlan, SegmentState | None] | None:
        """A session, its plan and what its last part left; None where it is not at this part any more.

        Who died after its end was written down finds it over. One that leaves nothing has its working tree to take
        away, even then.
        """
        session, plan, state = self.board.begun(order.run)
        leaves = order.purpose in _LEAVES_NOTHING and session.status == SessionStatus.ENDED
        if session.part != order.part or (session.status != SessionStatus.RUNNING and not leaves):
            return None
        if order.cause is not Cause.LANDED:
            self.board.progress(order.run, phase=_FIRST)
        return session, reader(SessionPlan).decode(plan), read_state(state) if order.part > 1 else None

    async def _has_ended(self, order: SegmentOrder) -> bool:
        return (await asyncio.to_thread(self.board.session, order.run)).status == SessionStatus.ENDED

    def _end(self, order: SegmentOrder, live: LiveSegment, result: RunResult) -> None:
        """Write down what the part came to."""
        end = self._of_purpose(order, result) or self._waits(order, live, result)
        progress = live.progress
        state, workspace = progress.state, progress.kept_workspace
        if workspace is not None:
            kept = SegmentState(loop=state, workspace=workspace, conflicts=progress.conflicts)
            end = msgspec.structs.replace(end, state=write_state(kept))
        self.board.end_part(
            msgspec.structs.replace(
                end,
                verified=result.verified,
                iterations=state.iterations,
                tokens=state.usage.tokens,
                cost_usd=state.usage.cost_usd,
            )
        )
        self._hand_over(order, end, progress.conflicts)

    def _hand_over(self, order: SegmentOrder, end: SegmentEnd, conflicts: tuple[str, ...] = ()) -> None:
        """A working session without a result leaves a note for the next one."""
        came_to_nothing = end.waits_for is WaitsFor.NOTHING and end.outcome != Outcome.COMPLETED
        if came_to_nothing and order.purpose not in _LEAVES_NOTHING:
            leave_note(self.board, order.task, order.run, conflicts, self.language)

    def _of_purpose(self, order: SegmentOrder, result: RunResult) -> SegmentEnd | None:
        """What a plan or a review comes to, once its agent has given one."""
        if order.purpose not in _LEAVES_NOTHING or result.outcome is not Outcome.COMPLETED:
            return None
        if order.purpose is Purpose.MANAGE:
            end: SegmentEnd | None = SegmentEnd(
                run=order.run, part=order.part, outcome=result.outcome, reason="its parts are there"
            )
        else:
            end = self.finish(result, order)
        if end is not None:
            self._let_go(order, end.reason)
        return end

    def _waits(self, order: SegmentOrder, live: LiveSegment, result: RunResult) -> SegmentEnd:
        """What the session waits for now, or how it ended."""
        ended = SegmentEnd(run=order.run, part=order.part, outcome=result.outcome, reason=result.reason)
        waiting = partial(msgspec.structs.replace, ended, outcome="")
        if live.progress.handed_over:
            return waiting(waits_for=WaitsFor.REVIEW)
        if order.cause is Cause.LANDED and self._could_go_on(order, result):
            return waiting(waits_for=WaitsFor.MERGE, reason=result.reason or _NOT_CLOSED)
        if order.cause is Cause.LANDED and self._is_closed(order):
            return msgspec.structs.replace(ended, outcome=Outcome.COMPLETED)  # by this one, or by one who did the same
        state = live.progress.state
        paused = state.suspended or live.paused
        if state.waits_for_subtasks and self._could_go_on(order, result):
            return waiting(waits_for=WaitsFor.PARTS, reason=paused)
        if paused and self._could_go_on(order, result):
            self._let_go(order, result.reason)
            return waiting(waits_for=WaitsFor.RESUME, reason=paused)
        match result.outcome:
            case Outcome.COMPLETED:
                proposed = self._awaits_pull_request(order, result)
                message = f"{result.pull_request} is open"
                return waiting(waits_for=WaitsFor.PULL_REQUEST, reason=message) if proposed else ended
            case Outcome.BLOCKED if self.board.board.get(order.task).status.ended:
                return ended
            case Outcome.BLOCKED:
                self._ask(order, result)
                return waiting(waits_for=WaitsFor.ANSWER)
            case Outcome.BUDGET_EXHAUSTED if message := self.afford(order.task, order.agent):
                self._let_go(order, message)
                return waiting(waits_for=WaitsFor.BUDGET, reason=message)
        self._let_go(order, result.reason)
        return ended

    def _refused(self, order: SegmentOrder, live: LiveSegment | None, error: GenbaError) -> None:
        """A part that could not even begin, or that lost its ground: its session is over, and its task is free."""
        kind = "configuration: " if isinstance(error, ConfigurationError) else ""
        reason = f"{kind}{error.message}"
        self._let_go(order, reason)
        known, state = self.board.session(order.run), live.progress.state if live is not None else None
        landed, task = order.cause is Cause.LANDED, self.board.board.get(order.task)
        done = landed and self._is_closed(order)
        again = landed and not task.has_let_go_of(order.run)
        end = SegmentEnd(
            run=order.run,
            part=order.part,
            waits_for=WaitsFor.MERGE if again else WaitsFor.NOTHING,
            outcome="" if again else Outcome.COMPLETED if done else Outcome.FAILED,
            reason=reason or _NOT_CLOSED,
            iterations=state.iterations if state is not None else known.iterations,
            tokens=state.usage.tokens if state is not None else known.tokens,
            cost_usd=state.usage.cost_usd if state is not None else known.cost_usd,
        )
        self.board.end_part(end)
        self._hand_over(order, end)

    def _cut_short(self, order: SegmentOrder, live: LiveSegment | None, reason: str) -> None:
        """The machine has no room left: that is no failed attempt, and the session continues when there is some."""
        self._let_go(order, reason)
        known, progress = self.board.session(order.run), live.progress if live is not None else None
        workspace = progress.kept_workspace if progress is not None else None
        landed, over = order.cause is Cause.LANDED, self.board.board.get(order.task).has_let_go_of(order.run)
        end = SegmentEnd(
            run=order.run,
            part=order.part,
            waits_for=WaitsFor.NOTHING if over else WaitsFor.RESUME,
            outcome="" if not over else Outcome.COMPLETED if landed else Outcome.ABORTED,
            reason=reason,
            iterations=known.iterations,
            tokens=known.tokens,
            cost_usd=known.cost_usd,
        )
        if progress is not None and workspace is not None:
            kept = SegmentState(loop=progress.state, workspace=workspace, conflicts=progress.conflicts)
            end = msgspec.structs.replace(end, state=write_state(kept))
        self.board.end_part(end)

    def _could_go_on(self, order: SegmentOrder, result: RunResult) -> bool:
        """A session that was stopped after its work was done, or for good, waits for nothing."""
        return result.outcome is not Outcome.COMPLETED and not self.board.board.get(order.task).has_let_go_of(order.run)

    def _is_closed(self, order: SegmentOrder) -> bool:
        """True when what landed is closed: its task is done, or goes on to its next phase."""
        task = self.board.board.get(order.task)
        return task.status is not TaskStatus.CANCELLED and task.has_let_go_of(order.run)

    def _awaits_pull_request(self, order: SegmentOrder, result: RunResult) -> bool:
        return bool(result.pull_request) and self.board.board.get(order.task).status is TaskStatus.REVIEW

    def _ask(self, order: SegmentOrder, result: RunResult) -> None:
        """Only a person can say how it goes on."""
        evidence = {
            "branch": result.branch,
            "agent": order.agent,
            "attempt": order.attempt,
            "run": order.run,
            "part": order.part,
        }
        question = Escalation(
            task=order.task, kind=EscalationKind.QUESTION, question=result.reason, run=order.run, evidence=evidence
        )
        self.board.escalate(question, Blocker(BlockerKind.NEEDS_INPUT, result.reason))

    def _let_go(self, order: SegmentOrder, reason: str) -> None:
        let_go(self.board, order.task, order.run, reason)


def let_go(board: FleetBoard, number: int, run: str, reason: str) -> None:
    """A task whose session does not go on by itself is open again. Safe to repeat."""
    task = board.board.get(number)
    if task.status is not TaskStatus.IN_PROGRESS:
        return
    actor = Actor(ActorKind.ORCHESTRATOR, run)
    change = StatusChange(to=TaskStatus.OPEN, actor=actor, reason=reason or "its session ended", session=run)
    try:
        board.board.change_status(number, change)
    except StateConflictError:
        # Others let go of it at the same time; or the answer was lost, and what was done is found on asking again.
        if board.board.get(number).status is TaskStatus.IN_PROGRESS:
            raise


def reap(board: FleetBoard, run: str, part: int, reason: str) -> bool:
    """End a session whose segment has no executor. Returns whether it was still running. Safe to repeat."""
    session = board.session(run)
    if session.part != part or session.status != SessionStatus.RUNNING:
        return False
    let_go(board, session.task, run, reason)
    end = SegmentEnd(
        run=run,
        part=part,
        outcome=Outcome.FAILED,
        reason=reason,
        iterations=session.iterations,
        tokens=session.tokens,
        cost_usd=session.cost_usd,
    )
    board.end_part(end)
    return True


class _SegmentSteps:
    """The steps of a part, seen from the blackboard: how far it is, what it has cost, whether it may go on."""

    def __init__(self, steps: Steps, board: FleetBoard, order: SegmentOrder, afford: Afford) -> None:
        self.steps = steps
        self.board = board
        self.order = order
        self.afford = afford
        self.live: LiveSegment | None = None
        self.count = 0

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        if name == "iterate":
            self.count += 1
            iteration = partial(self._iteration, self.count, cast("Callable[[], Awaitable[LoopState]]", work))
            return await self.steps.run(name, cast("Callable[[], Awaitable[T]]", iteration), kind)
        if self._is_repeated(name):
            return await self._phase(name, work)
        return await self.steps.run(name, partial(self._phase, name, work), kind)

    def _is_repeated(self, name: str) -> bool:
        """Quick steps that are safe to repeat are not stored: after a death they run again.

        The closure of what landed is all of that kind, and so is the end of work, which the blackboard remembers.
        """
        return self.order.purpose not in _LEAVES_NOTHING and (name == "end" or self.order.cause is Cause.LANDED)

    async def _phase(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        if name not in _UNTOLD and self.order.cause is not Cause.LANDED:
            await asyncio.to_thread(partial(self.board.progress, self.order.run, phase=name))
        return await work()

    def _begin_iteration(self, before: LoopState) -> str:
        """Why there is none: the money is gone."""
        spent = self.afford(self.order.task, self.order.agent)
        if not spent:
            self.board.progress(self.order.run, phase="iterate", step=before.step)
        return spent

    async def _iteration(self, count: int, work: Callable[[], Awaitable[LoopState]]) -> LoopState:
        """One iteration, unless the money is gone; what it cost is written down with it."""
        assert self.live is not None  # noqa: S101  (a run is there before its steps)
        before = self.live.progress.state
        spent = await asyncio.to_thread(self._begin_iteration, before)
        if spent:
            return before.end(Outcome.BUDGET_EXHAUSTED, spent)
        after = await work()
        if after.ended and self.live.paused:
            after = msgspec.structs.replace(after, suspended=self.live.paused)
        await self.live.share()
        cost = after.usage.cost_usd - before.usage.cost_usd
        spending = Spending(
            run=self.order.run,
            iteration=self.order.part * _SLOTS + count,
            tokens=max(0, after.usage.tokens - before.usage.tokens),
            cost_usd=max(0.0, cost),
        )
        changed = await self.live.changed()
        result = partial(
            self.board.progress,
            self.order.run,
            phase="iterate",
            step=after.step,
            iterations=after.iterations,
            tokens=after.usage.tokens,
            cost_usd=after.usage.cost_usd,
            changed=changed,
            spending=spending,
        )
        await asyncio.to_thread(result)
        return after
