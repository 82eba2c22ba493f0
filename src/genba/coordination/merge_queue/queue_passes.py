"""The turns of the merge queues, as one orchestrator takes, counts and gives them up.

A target has one queue pass at a time. No executor ends while a pass waits to start: the next one would find
it, long after what it was for.
"""

import asyncio
import secrets
import time
from functools import partial

import msgspec

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.engine.durable_engine import MERGES, Engine, Workflow
from genba.coordination.scheduler.progress import Watch
from genba.definitions.project.work_sections import MergeSettings
from genba.domain.fleet.merge_queue import MergeHistory, QueuePassOrder
from genba.domain.fleet.progress import FleetEvent, FleetEventKind
from genba.domain.fleet.records import EntryStatus, FleetSnapshot

TURN = "turn"
"""The kind of its workflows."""
_TRIES_TO_LAND = 3
_LONGEST_WAIT = 30.0
"""Seconds for which an executor waits for a pass to start; after that another executor takes it."""


class QueuePasses:
    """Those of one project, from one executor."""

    def __init__(self, board: FleetBoard, engine: Engine, settings: MergeSettings, watch: Watch) -> None:
        self.board = board
        self.engine = engine
        self.settings = settings
        self.watch = watch
        self.merging: set[str] = set()
        """The executors that were last seen to take a turn."""
        self.in_vain = 0
        """Turns since anything else went on."""
        self._last: dict[str, str] = {}
        """By target: the turn that was last taken here."""
        self._stays_since: float | None = None

    async def going(self, unfinished: list[Workflow], field: FleetSnapshot) -> frozenset[str]:
        """The targets whose queue takes a turn right now, here or elsewhere."""
        turns = [workflow for workflow in unfinished if workflow.kind == TURN]
        self.merging = {turn.executor for turn in turns if turn.status == "pending"}
        targets = {entry.target for entry in field.entries if not entry.status.ended}
        found = set()
        for target in targets:
            own = [turn for turn in turns if turn.id.startswith(turn_prefix(target))]
            if any(turn.status != "poisoned" for turn in own):
                found.add(target)
            for turn in own:
                if turn.status == "poisoned":
                    await self._give_up(target, turn.id, field)
        return frozenset(found)

    async def _give_up(self, target: str, turn: str, field: FleetSnapshot) -> None:
        """A turn that kills its process again and again is not taken again at once."""
        message = "the process that merges it died again and again: check what its goals do   genba logs"
        for entry in field.entries:
            if entry.target == target and entry.status is EntryStatus.MERGING:
                await asyncio.to_thread(partial(self.board.settle, entry.id, EntryStatus.STUCK, detail=message))
        await self.engine.cancel([turn])
        self.watch.tell(FleetEvent(kind=FleetEventKind.STUCK, detail=f"{target}: {message}"))

    async def take(self, target: str, field: FleetSnapshot) -> bool:
        """One turn of the merge queue of a target at a time, as far as this executor knows."""
        last = self._last.get(target)
        known = await self.engine.status(last) if last is not None else None
        if known is not None and known.status in ("enqueued", "pending"):
            return False
        order = QueuePassOrder(
            target=target,
            turn=max((entry.turns for entry in field.entries if entry.target == target), default=0) + 1,
            history=MergeHistory(self.settings.history),
            batch=self.settings.batch,
        )
        # Never the name of an earlier turn, of whichever process: enqueuing what is over does nothing.
        id_ = f"{order.workflow}:{secrets.token_hex(8)}"
        payload = msgspec.json.encode(order).decode()
        await self.engine.enqueue(kind=TURN, id=id_, payload=payload, queue=MERGES, partition=target)
        self._last[target] = id_
        return True

    def may_still_land(self, field: FleetSnapshot, turned: int, turning: bool) -> bool:
        """Whether the merge queue goes on by itself. What is stuck is tried a few times, and then left to a person."""
        statuses = {entry.status for entry in field.entries if not entry.status.ended}
        self.in_vain += turned
        return turning or bool(statuses - {EntryStatus.STUCK}) or (bool(statuses) and self.in_vain < _TRIES_TO_LAND)

    async def are_left(self) -> bool:
        """True while a pass waits or runs here that this executor would leave behind.

        Such as one that outlived what it was for, since its executor died and others landed everything meanwhile.
        """
        own = self.engine.executor
        left = [
            turn
            for turn in await self.engine.unfinished()
            if turn.kind == TURN and (turn.status == "enqueued" or (turn.status == "pending" and turn.executor == own))
        ]
        if not left:
            self._stays_since = None
            return False
        if self._stays_since is None:
            self._stays_since = time.monotonic()
        return time.monotonic() - self._stays_since < _LONGEST_WAIT


def turn_prefix(target: str) -> str:
    """How the names of all turns of a target begin."""
    return f"merge:{target}:turn:"
