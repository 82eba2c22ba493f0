"""Which sessions start: the most urgent first, and among equals those that conflict with no other."""

from collections import deque
from collections.abc import Iterable, Iterator
from operator import attrgetter

import msgspec

from genba.domain.fleet.records import FleetSession, Purpose, WaitsFor
from genba.domain.tasks.task import Task
from genba.judgement.scheduling.actions import SchedulerAction, Start, Wait, WaitReason
from genba.judgement.scheduling.capacity import Capacity, NoCapacity
from genba.judgement.scheduling.critical_path import Rank, chains, rank, steps_aged
from genba.judgement.scheduling.overlap import FREE, Price, Writer, price
from genba.judgement.scheduling.scheduler_view import SchedulerView
from genba.judgement.scheduling.starting import start_task

WRITING = (Purpose.WORK, Purpose.INTEGRATE)
_BY_ORDER = attrgetter("order")
_WINDOW = 64
"""So many of the most urgent are compared by their price at one time."""
_IN_QUEUE, _LATER = 0.5, 0.25
"""What a session in the merge queue, and one that waits for a person, weighs."""


class Candidate:
    """A session that could begin, and what it would cost. A plain task is looked at only when its turn comes."""

    def __init__(self, task: Task, start: Start | None, urgency: Rank) -> None:
        self.task = task
        self.start = start
        self.urgency = urgency
        self.price: Price = FREE
        self.order = self._order()

    @property
    def writes(self) -> bool:
        return self.start is None or self.start.purpose in WRITING

    def add(self, writers: Iterable[Writer]) -> None:
        if self.writes:
            self.price = self.price.plus(price(self.task.number, self.task.scope, writers))
            self.order = self._order()

    def _order(self) -> tuple[int, float, int, str, int]:
        """Priority first; among equals those that cost nothing; then what waits for them, and age."""
        return (self.urgency[0], round(self.price.known, 3), *self.urgency[1:])


def allocate(
    at: SchedulerView, capacity: Capacity, starts: list[Start], plain: list[Task]
) -> Iterator[SchedulerAction]:
    """Each of the sessions that could begin: it begins, or it waits and says why."""
    if (full := capacity.anybody()) is not None:
        numbers = (*(start.task for start in starts), *(task.number for task in plain))
        yield from (Wait(task=number, kind=full.kind, why=full.why, until=full.until) for number in numbers)
        return
    waiting = deque(sorted(_candidates(at, starts, plain), key=lambda one: one.urgency))
    mode = at.settings.work.overlap
    writers = [] if mode == "allow" else _writers(at)
    window: list[Candidate] = []
    while waiting or window:
        if (full := capacity.anybody()) is not None:
            yield from (_full(one, full) for one in (*window, *waiting))
            return
        while waiting and len(window) < _WINDOW:
            one = waiting.popleft()
            move = one.start or start_task(at, one.task)
            if not isinstance(move, Start):
                yield move
                continue
            one.start = move
            if (full := capacity.refusal(move.agent, move.provider)) is not None:  # it stays so for this look
                yield _full(one, full)
                continue
            one.add(writers)
            window.append(one)
        if not window:
            return
        best = min(window, key=_BY_ORDER)
        window.remove(best)
        begun = _begun(at, capacity, best)
        yield begun
        keeps_its_paths = isinstance(begun, Start) or _waits_for_long(at, best, begun)
        if best.writes and mode != "allow" and keeps_its_paths:
            more = Writer(task=best.task.number, scope=best.task.scope)
            writers.append(more)
            for one in window:
                one.add((more,))


def _begun(at: SchedulerView, capacity: Capacity, best: Candidate) -> SchedulerAction:
    assert best.start is not None  # noqa: S101  (every candidate in the window has a start)
    agent, provider = best.start.agent, best.start.provider
    if (full := capacity.refusal(agent, provider)) is not None:
        return _full(best, full)
    if at.settings.work.overlap == "wait" and best.price.too_much:
        why = f"it would get in the way: {best.price.reason}"
        return Wait(task=best.task.number, kind=WaitReason.OVERLAP, why=why)
    capacity.take(agent, provider)
    return msgspec.structs.replace(best.start, price=best.price.value)


def _waits_for_long(at: SchedulerView, best: Candidate, begun: SchedulerAction) -> bool:
    """One that waits for long keeps its paths free: who comes after it does not begin in its place."""
    overlaps = isinstance(begun, Wait) and begun.kind is WaitReason.OVERLAP
    return overlaps and steps_aged(best.task, at.now, at.settings.work.ageing_hours) > 0


def _candidates(at: SchedulerView, starts: list[Start], plain: list[Task]) -> Iterator[Candidate]:
    lengths = chains(at.field.tasks) if starts or plain else {}
    hours = at.settings.work.ageing_hours
    for start in starts:
        task = at.field.tasks[start.task]
        urgency = rank(task, lengths.get(task.number, 0), at.now, hours)
        if start.purpose is Purpose.REVIEW:
            urgency = (-1, *urgency[1:])
        yield Candidate(task, start, urgency)
    for task in plain:
        yield Candidate(task, None, rank(task, lengths.get(task.number, 0), at.now, hours))


def _writers(at: SchedulerView) -> list[Writer]:
    found = (_writer(at, session) for session in at.field.sessions)
    return [writer for writer in found if writer is not None]


def _writer(at: SchedulerView, session: FleetSession) -> Writer | None:
    if session.status == "ended" or session.purpose not in WRITING:
        return None
    task = at.field.tasks.get(session.task)
    weight = 1.0
    if session.status != "running":
        weight = _IN_QUEUE if session.waits_for is WaitsFor.MERGE or at.entry(session.run) is not None else _LATER
    return Writer(
        task=session.task, scope=task.scope if task is not None else (), changed=session.changed, weight=weight
    )


def _full(one: Candidate, full: NoCapacity) -> Wait:
    return Wait(task=one.task.number, kind=full.kind, why=full.why, until=full.until)
