"""Which of the sessions that could begin do begin: the most urgent first, and among equals those in nobody's way."""

from collections.abc import Iterable, Iterator

import msgspec

from genba.domain.fleet import FleetSession, Purpose, WaitsFor
from genba.domain.tasks import Task
from genba.judgement.capacity import Capacity, Full
from genba.judgement.critical_path import Rank, chains, rank, steps_aged
from genba.judgement.moves import Move, Start, Wait, WaitReason
from genba.judgement.overlap import FREE, Price, Writer, price
from genba.judgement.situation import Situation

WRITING = (Purpose.WORK, Purpose.INTEGRATE)
_WINDOW = 64
"""So many of the most urgent are compared by their price at one time."""
_IN_QUEUE, _LATER = 0.5, 0.25
"""What a session in the merge queue, and one that waits for a person, weighs."""


class Candidate:
    """A session that could begin, and what it would cost."""

    def __init__(self, task: Task, start: Start, urgency: Rank) -> None:
        self.task = task
        self.start = start
        self.urgency = urgency
        self.price: Price = FREE

    @property
    def writes(self) -> bool:
        return self.start.purpose in WRITING

    @property
    def order(self) -> tuple[int, float, int, str, int]:
        """Priority first; among equals those that cost nothing; then what waits for them, and age."""
        return (self.urgency[0], round(self.price.known, 3), *self.urgency[1:])

    def add(self, writers: Iterable[Writer]) -> None:
        if self.writes:
            self.price = self.price.plus(price(self.task.number, self.task.scope, writers))


def give_away(at: Situation, capacity: Capacity, starts: list[Start]) -> Iterator[Move]:
    """Each of the sessions that could begin: it begins, or it waits and says why."""
    waiting = sorted(_candidates(at, starts), key=lambda one: one.urgency)
    mode = at.settings.work.overlap
    writers = [] if mode == "allow" else _writers(at)
    window: list[Candidate] = []
    while waiting or window:
        if (full := capacity.anybody()) is not None:
            yield from (_full(one, full) for one in (*window, *waiting))
            return
        fresh = waiting[: _WINDOW - len(window)]
        del waiting[: len(fresh)]
        for one in fresh:
            one.add(writers)
        window += fresh
        best = min(window, key=lambda one: one.order)
        window.remove(best)
        if (full := capacity.refusal(best.start.agent, best.start.provider)) is not None:
            yield _full(best, full)
            continue
        if mode == "wait" and best.price.too_much:
            yield Wait(
                task=best.task.number, kind=WaitReason.OVERLAP, why=f"it would get in the way: {best.price.reason}"
            )
            if not steps_aged(best.task, at.now, at.settings.work.ageing_hours):
                continue
        else:
            capacity.take(best.start.agent, best.start.provider)
            yield msgspec.structs.replace(best.start, price=best.price.value)
        if best.writes and mode != "allow":
            # One that waits for long keeps its paths free: who comes after it does not begin in its place.
            more = Writer(task=best.task.number, scope=best.task.scope)
            writers.append(more)
            for one in window:
                one.add((more,))


def _candidates(at: Situation, starts: list[Start]) -> Iterator[Candidate]:
    lengths = chains(at.field.tasks) if starts else {}
    hours = at.settings.work.ageing_hours
    for start in starts:
        task = at.field.tasks[start.task]
        urgency = rank(task, lengths.get(task.number, 0), at.now, hours)
        if start.purpose is Purpose.REVIEW:
            urgency = (-1, *urgency[1:])
        yield Candidate(task, start, urgency)


def _writers(at: Situation) -> list[Writer]:
    found = (_writer(at, session) for session in at.field.sessions)
    return [writer for writer in found if writer is not None]


def _writer(at: Situation, session: FleetSession) -> Writer | None:
    if session.status == "ended" or session.purpose not in WRITING:
        return None
    task = at.field.tasks.get(session.task)
    weight = 1.0
    if session.status != "running":
        weight = _IN_QUEUE if session.waits_for is WaitsFor.MERGE or at.entry(session.run) is not None else _LATER
    return Writer(
        task=session.task, scope=task.scope if task is not None else (), changed=session.changed, weight=weight
    )


def _full(one: Candidate, full: Full) -> Wait:
    return Wait(task=one.task.number, kind=full.kind, why=full.why, until=full.until)
