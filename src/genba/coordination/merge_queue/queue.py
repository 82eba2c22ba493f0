"""The merge queue of one target: stack, verify what would land, move the target, and only then the next.

One turn is one durable workflow. Its steps are `take`, `prove`, `land` and `settle`; each is safe to repeat, whether
or not earlier passes are known. A pass that dies leaves entries that are `merging`. The next pass, or
this one when it starts over, reads the target first: what is there was merged, and the rest is queued again. It
ends after one batch: too many deaths of one turn are held against what it has in hand, and not against a long day.

Entries whose goals are quick are taken several at one time: each is put on the one before it and verified as it stands
there, and the target moves once for all of them. Those whose goals take their time go one by one.

Law: without batches every commit that comes onto the target was verified as it stands there.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

import msgspec

from genba.domain.decoding import reader
from genba.domain.errors import DiskFullError, GenbaError, StateConflictError
from genba.domain.fleet.merge_queue import (
    EntryEnd,
    MergeHistory,
    QueueEvent,
    QueuePassOrder,
    QueuePassReport,
    Stacked,
    Work,
)
from genba.domain.fleet.records import EntryStatus, MergeEntry
from genba.domain.goals.verification import Subject
from genba.domain.ports import Steps, Target
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.trailers import trailers
from genba.domain.sessions.workspaces import MergeStatus
from genba.domain.text_limits import subject_of
from genba.execution.shield import uncut
from genba.judgement.scheduling.queue_order import halves, next_batch, waits

_TRIES = 5
"""How often a pass stacks the same entries again because the target was moved."""
_MOST_TAKEN = 25
"""How many batches one turn takes: a workflow that never ends cannot be upgraded."""
_LONGEST_LINE = 16
"""How many entries land together that are verified one on top of the other."""
_QUICK_SECONDS = 0.1
"""What the goals of an entry may take for the next ones to be taken together."""
_WAITING_SECONDS = 1.0
"""How long what is verified waits for the others that land with it."""
_LONGEST_DETAIL = 8000

Entries = tuple[MergeEntry, ...]
Verify = Callable[[MergeEntry, Subject], Awaitable[CheckResult | None]]
"""Holds a merged commit to the frozen policy of the task of an entry; None when it is done."""
Report = Callable[[QueueEvent], None]


class QueueBoard(Protocol):
    """The blackboard, as a turn of the merge queue sees it. Each call is one transaction."""

    def entries(self, target: str | None = None, open_only: bool = True) -> Sequence[MergeEntry]: ...

    def take(self, ids: Sequence[int]) -> Sequence[MergeEntry]:
        """queued | stuck → merging; the others stay as they are. Returns those that are merging now."""
        ...

    def settle(
        self,
        id: int,  # noqa: A002  (the word of the row)
        status: EntryStatus,
        landed: str = "",
        paths: tuple[str, ...] = (),
        detail: str = "",
        over: str = "",
    ) -> object: ...

    def settle_all(self, ends: Sequence[EntryEnd]) -> object:
        """The same for several."""
        ...

    def release(self, ids: Sequence[int]) -> object:
        """merging → queued"""
        ...

    def passed_by(self, ids: Sequence[int]) -> object: ...


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    entries: Entries = ()
    ends: tuple[EntryEnd, ...] = ()
    """What a dead turn had landed, and what is stale: they need no proof."""
    after_a_death: bool = False
    """An earlier pass died with entries in progress."""
    more: bool = False
    closed: str = ""


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """An entry and the commit that it would be on the target."""

    entry: MergeEntry
    base: str
    commit: str
    tree: str


class _Proven(msgspec.Struct, frozen=True, kw_only=True):
    """What a group came to before it lands."""

    base: str = ""
    places: tuple[_Place, ...] = ()
    """What may land, in this order."""
    ends: tuple[EntryEnd, ...] = ()
    alone: Entries = ()
    """What did not fit beside the others, and is tried again by itself."""
    left: Entries = ()
    """Entries that are left for the next pass."""
    red: bool = False
    """It cannot land together: it is cut in two."""
    closed: str = ""
    """Why nothing can land on this target now."""


class _Landed(msgspec.Struct, frozen=True, kw_only=True):
    moved: bool = False
    """The target, or one of the entries, is not what it was: all of it is stacked again."""
    closed: str = ""
    refused: str = ""
    """What is in the way of some of it, while others may land: it is cut in two, until that one stands alone."""
    detail: str = ""


class MergeQueue:
    """Carries out turns of merge queues. It keeps nothing between two calls."""

    def __init__(
        self, board: QueueBoard, target: Target, verify: Verify, report: Report, most_taken: int = _MOST_TAKEN
    ) -> None:
        self.board = board
        self.target = target
        self.verify = verify
        self.report = report
        self.most_taken = most_taken

    async def handle(self, payload: str, steps: Steps) -> str:
        """One queue pass as a durable handler: a `QueuePassOrder` as JSON in, a `QueuePassReport` as JSON out."""
        order = reader(QueuePassOrder).decode(payload)
        return msgspec.json.encode(await self.run(order, steps)).decode()

    async def run(self, order: QueuePassOrder, steps: Steps) -> QueuePassReport:
        return await _QueuePass(self, order, steps).run()


class _QueuePass:
    """One queue pass. It is created again each time the workflow continues, and follows the results of its steps."""

    def __init__(self, queue: MergeQueue, order: QueuePassOrder, steps: Steps) -> None:
        self.board = queue.board
        self.target = queue.target
        self.verify = queue.verify
        self.report = queue.report
        self.most_taken = queue.most_taken
        self.order = order
        self.steps = steps
        self.ended: dict[EntryStatus, list[int]] = {}
        self.tried: set[int] = set()
        self.at_once = 1
        """How many are taken next, unless they are verified as a batch."""
        self.judging = 0.0
        """Seconds that the goals of those that were taken last took."""
        self.moved = 0
        self.closed = ""

    async def run(self) -> QueuePassReport:
        more = False
        for number in range(1, self.most_taken + 1):
            self.judging = 0.0
            taken = await self.steps.run(f"take {number}", partial(self._take, frozenset(self.tried)), _Taken)
            more = taken.more
            self.tried |= {entry.id for entry in taken.entries} | {end.entry.id for end in taken.ends}
            self._count(taken.ends)
            if taken.closed:
                self.closed = taken.closed
                await self._settle(f"{number}", await self._all_stuck(f"{number}", taken.closed, waiting_only=True))
            if not taken.entries and not taken.ends:
                break
            await self._group(f"{number}", taken.entries)
            if self.closed or taken.after_a_death:
                break
            self._pace(len(taken.entries))
        return QueuePassReport(
            target=self.order.target,
            merged=self._tasks(EntryStatus.MERGED),
            conflict=self._tasks(EntryStatus.CONFLICT),
            failed=self._tasks(EntryStatus.FAILED),
            stuck=self._tasks(EntryStatus.STUCK),
            withdrawn=self._tasks(EntryStatus.WITHDRAWN),
            moved=self.moved,
            more=more and not self.closed,
        )

    @property
    def _in_line(self) -> bool:
        """Whether each entry is verified by itself."""
        return self.order.batch <= 1

    def _pace(self, entries: int) -> None:
        """More at one time as long as they are quick; what takes its time is taken alone, and lands at once."""
        quick = self.judging <= _QUICK_SECONDS * max(entries, 1)
        self.at_once = min(2 * self.at_once, _LONGEST_LINE) if quick else 1

    async def _group(self, name: str, batch: Entries) -> None:
        """Bring a batch to its end. One that is red is cut in two, until the red ones stand alone."""
        groups = deque([batch] if batch else [])
        number = 0
        while groups and not self.closed:
            number += 1
            group = groups.popleft()
            proven, landed = await self._try(f"{name}.{number}", group)
            if proven.closed or landed.closed:
                self.closed = proven.closed or landed.closed
                await self._settle(f"{name}.{number}", await self._all_stuck(name, self.closed))
                return
            self.tried -= {entry.id for entry in proven.left}
            if landed.moved or landed.refused:
                groups.extendleft(reversed(await self._not_landed(f"{name}.{number}", group, proven, landed)))
                continue
            ends = proven.ends + tuple(
                EntryEnd(
                    entry=place.entry,
                    status=EntryStatus.MERGED,
                    landed=place.commit,
                    over=place.base,
                    detail=landed.detail,
                )
                for place in proven.places
                if not proven.red
            )
            await self._settle(f"{name}.{number}", ends, release=proven.left)
            groups.extendleft((entry,) for entry in reversed(proven.alone))
            if proven.red:
                parts = halves(tuple(place.entry for place in proven.places))
                groups.extendleft(reversed(parts))

    async def _not_landed(self, name: str, group: Entries, proven: _Proven, landed: _Landed) -> tuple[Entries, ...]:
        """Settle what is sure of a group that did not land; says what of it is tried again, and how.

        What was found on top of an entry that did not land says nothing.
        """
        ends = tuple(end for end in proven.ends if end.over in ("", proven.base))
        known = {end.entry.id for end in ends}
        left = tuple(entry for entry in group if entry.id not in known)
        if landed.moved:
            await self._settle(name, ends, release=left)
            return ()
        left = tuple(entry for entry in left if entry not in proven.left)
        if len(left) > 1:
            await self._settle(name, ends, release=proven.left)
            return halves(left)
        stuck = tuple(
            EntryEnd(entry=entry, status=EntryStatus.STUCK, detail=landed.refused, over=proven.base) for entry in left
        )
        await self._settle(name, (*ends, *stuck), release=proven.left)
        return ()

    async def _try(self, name: str, group: Entries) -> tuple[_Proven, _Landed]:
        """Prove and land a group; again, and a bounded number of times, where the target moves meanwhile."""
        proven = _Proven()
        for attempt in range(1, _TRIES + 1):
            proven = await self.steps.run(f"prove {name}/{attempt}", partial(self._prove, group), _Proven)
            if proven.closed or proven.red or not proven.places:
                return proven, _Landed()
            landed = await self.steps.run(f"land {name}/{attempt}", partial(self._land, proven), _Landed)
            if not landed.moved:
                return proven, landed
            self.moved += 1
        return proven, _Landed(moved=True)

    # take

    async def _take(self, tried: frozenset[int]) -> _Taken:
        """The next batch. What a dead turn left is looked at first, and what is stale goes out of the queue."""
        try:
            left, ends, queued = await self._after_a_death()
            batch = next_batch(queued, self.at_once if self._in_line else self.order.batch, tried)
            over = [end for end in await asyncio.gather(*map(self._over_already, batch)) if end is not None]
        except GenbaError as error:  # such as a remote that cannot be reached: what is `merging` stays so
            return _Taken(closed=_with_hint(error))
        if ends or over:
            await asyncio.to_thread(self._write_down, (*ends, *over))
        for end in (*ends, *over):
            self._tell_end(end)
        gone = {end.entry.id for end in over}
        wanted = [entry.id for entry in batch if entry.id not in gone]
        passed = [entry.id for entry in queued if waits(entry) and entry.id not in {*wanted, *gone, *tried}]
        now = {entry.id: entry for entry in await asyncio.to_thread(self._begin, wanted, passed)} if wanted else {}
        taken = tuple(now[number] for number in wanted if number in now)
        return _Taken(entries=taken, ends=(*ends, *over), after_a_death=left, more=bool(passed))

    def _begin(self, wanted: Sequence[int], passed: Sequence[int]) -> Sequence[MergeEntry]:
        taken = self.board.take(wanted)
        if passed:
            self.board.passed_by(passed)
        return taken

    async def _after_a_death(self) -> tuple[bool, list[EntryEnd], Sequence[MergeEntry]]:
        """Whether a dead turn left anything, what of it had landed, and the queue without that.

        One target has one turn at a time, so whatever is `merging` now belongs to one that died.
        """
        queue = await self._open()
        left = [entry for entry in queue if entry.status is EntryStatus.MERGING]
        if not left:
            return False, [], queue
        ends = [end for entry in left if (end := await self._landed_before(entry)) is not None]
        known = {end.entry.id for end in ends}
        again = [entry.id for entry in left if entry.id not in known]
        if again:
            await asyncio.to_thread(self.board.release, again)
        return True, ends, await self._open()

    async def _landed_before(self, entry: MergeEntry) -> EntryEnd | None:
        landed = await self.target.landed(self.order.target, _work(entry), self.order.history)
        return EntryEnd(entry=entry, status=EntryStatus.MERGED, landed=landed, over=entry.over) if landed else None

    async def _over_already(self, entry: MergeEntry) -> EntryEnd | None:
        """An entry that is stale or not here; or a stuck one that had landed already."""
        if entry.status is EntryStatus.STUCK and (end := await self._landed_before(entry)) is not None:
            return end
        try:
            tip = await self.target.tip_of(entry)
        except StateConflictError as error:
            return EntryEnd(entry=entry, status=EntryStatus.STUCK, detail=_with_hint(error))
        if tip == entry.commit:
            return None
        message = f"{entry.branch} is gone" if tip is None else f"{entry.branch} has moved to {tip[:7]}"
        return EntryEnd(entry=entry, status=EntryStatus.WITHDRAWN, detail=message)

    async def _going(self) -> set[int]:
        """The entries of this pass that were not withdrawn."""
        return {entry.id for entry in await self._open() if entry.status is EntryStatus.MERGING}

    async def _open(self) -> Sequence[MergeEntry]:
        return await asyncio.to_thread(self.board.entries, self.order.target)

    # prove

    async def _prove(self, group: Entries) -> _Proven:
        """Stack a group on the target as it is now, and verify what would land."""
        going = await self._going()
        group = tuple(entry for entry in group if entry.id in going)
        try:
            base = await self.target.tip(self.order.target)
            if base is None:
                return _Proven(closed=f'the branch "{self.order.target}" is gone\nhint: git branch --all   git reflog')
            if self._in_line:
                return await self._prove_in_line(group, base)
            proven = await self._stacked(group, base)
            if not proven.places:
                return proven
            self._tell("proving", tuple(place.entry for place in proven.places))
            if len(proven.places) == 1:
                return await self._prove_one(proven)
            return await self._prove_many(proven)
        except GenbaError as error:
            return _Proven(closed=_with_hint(error))

    async def _prove_in_line(self, group: Entries, base: str) -> _Proven:
        """Put each on the one before it, and verify it as it stands there. What does not pass is left out."""
        places: list[_Place] = []
        ends: list[EntryEnd] = []
        began, tip = time.monotonic(), base
        for number, entry in enumerate(group):
            if number and time.monotonic() - began > _WAITING_SECONDS:
                return _Proven(base=base, places=tuple(places), ends=tuple(ends), left=group[number:])
            proven = await self._stacked((entry,), tip)
            if proven.places:
                self._tell("proving", (entry,))
                proven = await self._prove_one(proven)
            places += proven.places
            ends += proven.ends
            tip = places[-1].commit if places else base
        return _Proven(base=base, places=tuple(places), ends=tuple(ends))

    async def _stacked(self, group: Entries, base: str) -> _Proven:
        """What a group comes to on a base. What is there already has landed before, and says as what."""
        stacked = await self.target.stack(base, [_work(entry) for entry in group], self.order.history)
        proven = _sorted(group, base, stacked)
        there = [end for end in proven.ends if end.status is EntryStatus.MERGED]
        if not there:
            return proven
        known = {end.entry.id: await self._landed_before(end.entry) or end for end in there}
        return msgspec.structs.replace(proven, ends=tuple(known.get(end.entry.id, end) for end in proven.ends))

    async def _prove_one(self, proven: _Proven) -> _Proven:
        place = proven.places[0]
        end = await self._verdict(place.entry, place.commit, place.base)
        if end is None:
            return proven
        return msgspec.structs.replace(proven, places=(), ends=(*proven.ends, end))

    async def _prove_many(self, proven: _Proven) -> _Proven:
        """Hold the tip of a batch to the goals of every task in it, each with nothing but its own changes as its own.

        For that each entry is put on top of all the others once. Where that is not the same tree, the batch is cut.
        """
        tip = proven.places[-1]
        for place in proven.places:
            others = [_work(other.entry) for other in proven.places if other is not place]
            below = await self.target.stack(proven.base, others, self.order.history)
            top = (await self.target.stack(below[-1].tip, [_work(place.entry)], self.order.history))[0]
            if any(not each.commit for each in (*below, top)) or top.tree != tip.tree:
                return msgspec.structs.replace(proven, red=True)
            if await self._verdict(place.entry, top.commit, top.base) is not None:
                return msgspec.structs.replace(proven, red=True)
        return proven

    async def _verdict(self, entry: MergeEntry, commit: str, base: str) -> EntryEnd | None:
        """Why an entry may not land as this commit. What could not be checked is stuck: neither red nor green."""
        subject = Subject(commit=commit, base=base, branch=entry.branch, base_branch=entry.target)
        began = time.monotonic()
        try:
            result = await self.verify(entry, subject)
        except DiskFullError:
            raise
        except GenbaError as error:
            return EntryEnd(entry=entry, status=EntryStatus.STUCK, detail=_with_hint(error), over=base)
        finally:
            self.judging += time.monotonic() - began
        if result is None or result.passed:
            return None
        status = EntryStatus.STUCK if result.status is CheckStatus.ERROR else EntryStatus.FAILED
        return EntryEnd(entry=entry, status=status, detail=_evidence(result), over=base)

    # land

    async def _land(self, proven: _Proven) -> _Landed:
        """Move the target. An entry that was withdrawn meanwhile lands nothing."""
        going = await self._going()
        works = [_work(place.entry) for place in proven.places]
        new = proven.places[-1].commit
        linear = self.order.history is MergeHistory.LINEAR
        try:
            if any(place.entry.id not in going for place in proven.places):
                arrived = await self.target.landed(self.order.target, works[-1], self.order.history)
                return _Landed() if arrived == new else _Landed(moved=True)
            result = await uncut(self.target.land(self.order.target, proven.base, new, works if linear else ()))
            if result is None:
                await self._tell_moved(proven)
                return _Landed(moved=True)
        except GenbaError as error:
            return _Landed(closed=_with_hint(error))
        if result.status is MergeStatus.MERGED:
            return _Landed(detail=result.detail)
        if result.paths:
            hint = "move those files away; the queue tries again by itself"
            return _Landed(refused=f"{self.order.target} was not moved: {result.detail}\nhint: {hint}")
        hint = "commit or stash what is there; the queue tries again by itself"
        return _Landed(closed=f"{self.order.target} was not moved: {result.detail}\nhint: {hint}")

    async def _tell_moved(self, proven: _Proven) -> None:
        now = await self.target.tip(self.order.target)
        where = f"it was moved to {now[:7]}" if now else "it was deleted"
        self._tell("moved", tuple(place.entry for place in proven.places), where)

    # settle

    async def _settle(self, name: str, ends: tuple[EntryEnd, ...], release: Entries = ()) -> None:
        if not ends and not release:
            return
        ends = tuple([await self._fact(end) for end in ends])

        async def work() -> int:
            await asyncio.to_thread(self._write_down, ends, [entry.id for entry in release])
            for end in ends:
                self._tell_end(end)
            return len(ends)

        await self.steps.run(f"settle {name}", work, int)
        self._count(ends)

    async def _fact(self, end: EntryEnd) -> EntryEnd:
        """An entry that goes back to its author, unless a pass that was taken for dead has landed it meanwhile."""
        if end.status not in (EntryStatus.FAILED, EntryStatus.CONFLICT):
            return end
        try:
            return await self._landed_before(end.entry) or end
        except GenbaError:
            return end

    async def _all_stuck(self, name: str, why: str, waiting_only: bool = False) -> tuple[EntryEnd, ...]:
        """A target that cannot be moved holds up everything that waits for it, and each entry says so."""

        async def work() -> list[MergeEntry]:
            return [entry for entry in await self._open() if waits(entry) or not waiting_only]

        left = await self.steps.run(f"left {name}", work, list[MergeEntry])
        return tuple(EntryEnd(entry=entry, status=EntryStatus.STUCK, detail=why) for entry in left)

    def _write_down(self, ends: Sequence[EntryEnd], released: Sequence[int] = ()) -> None:
        if ends:
            self.board.settle_all(ends)
        if released:
            self.board.release(released)
            self.board.passed_by(released)

    def _tell_end(self, end: EntryEnd) -> None:
        self._tell(str(end.status), (end.entry,), end.landed or ", ".join(end.paths) or end.detail)

    def _count(self, ends: Sequence[EntryEnd]) -> None:
        for end in ends:
            self.ended.setdefault(end.status, []).append(end.entry.task)

    def _tasks(self, status: EntryStatus) -> tuple[int, ...]:
        return tuple(self.ended.get(status, ()))

    def _tell(self, kind: str, entries: Entries, detail: str = "") -> None:
        tasks = tuple(entry.task for entry in entries)
        self.report(QueueEvent(target=self.order.target, kind=kind, tasks=tasks, detail=detail))


def _sorted(group: Entries, base: str, stacked: Sequence[Stacked]) -> _Proven:
    """What each of a group came to on the stack. Who is in conflict beside others is tried again alone."""
    places, ends, alone = [], [], []
    for entry, each in zip(group, stacked, strict=True):
        if each.commit:
            places.append(_Place(entry=entry, base=each.base, commit=each.commit, tree=each.tree))
        elif each.arrived and each.base == base:
            ends.append(EntryEnd(entry=entry, status=EntryStatus.MERGED, landed=base, over=base))
        elif len(group) > 1:
            alone.append(entry)
        elif each.conflict:
            ends.append(EntryEnd(entry=entry, status=EntryStatus.CONFLICT, paths=each.paths, over=each.base))
        else:
            ends.append(EntryEnd(entry=entry, status=EntryStatus.STUCK, detail=each.problem, over=each.base))
    return _Proven(base=base, places=tuple(places), ends=tuple(ends), alone=tuple(alone))


def _work(entry: MergeEntry) -> Work:
    """The words of an entry as it lands."""
    subject, body = subject_of(entry.title, entry.task)
    return Work(
        task=entry.task,
        commit=entry.commit,
        subject=subject or entry.branch,
        trailers=body + trailers(entry.task, entry.agent, entry.run),
    )


def _evidence(result: CheckResult) -> str:
    """What fails, for the author: the names first, then what the goals printed."""
    message = f"{result.name}: {result.detail}" if result.detail else result.name
    return f"{message}\n{result.output}".strip()[:_LONGEST_DETAIL]


def _with_hint(error: GenbaError) -> str:
    return f"{error.message}\nhint: {error.hint}" if error.hint else error.message
