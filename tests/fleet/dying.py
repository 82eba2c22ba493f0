"""`genba work --until-empty` that dies at a boundary: `python -m tests.fleet.dying BOUNDARY [RECORD]`.

A boundary is `PLACE:NAME:NTH:WHEN`. Places are the steps of a `part` and of a `turn` of the merge queue, the verbs of
the `board`, and the `engine`. `before` is before it began; `inside` is when its work is done and not recorded;
`after` is when it is remembered. Whatever is passed is written to the record, one line each.

It is the fleet of the product, with ears at its doors: nothing of it is changed.
"""

import asyncio
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.engine.durable_engine import Engine
from genba.coordination.scheduler.progress import Watch
from genba.domain.ports import Steps
from genba.domain.tasks.task import StatusChange, Task
from genba.entrypoints.cli.work.work_command import PlainFleetView, drive
from genba.wiring.project.project_context import ProjectContext
from genba.wiring.sessions.fleet import Fleet

T = TypeVar("T")

VERBS = (
    "register", "start", "continue_", "end_part", "enqueue_merge", "take", "settle", "settle_all", "ask_review",
    "verdict", "propose", "create_parts",
)  # fmt: skip
"""The verbs of the blackboard that move a task on."""


class Fate:
    def __init__(self, boundary: str, record: Path | None) -> None:
        self.boundary = boundary
        self.record = record
        self.counts: Counter[tuple[str, str]] = Counter()

    def count(self, place: str, name: str) -> str:
        self.counts[place, name] += 1
        return f"{place}:{name}:{self.counts[place, name]}"

    def reach(self, counted: str, when: str) -> None:
        here = f"{counted}:{when}"
        if self.record is not None:
            handle = os.open(self.record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(handle, f"{here}\n".encode())
            os.close(handle)
        if here == self.boundary:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalSteps:
    """Steps with a boundary before, in and after each."""

    def __init__(self, steps: Steps, fate: Fate, place: str) -> None:
        self.steps = steps
        self.fate = fate
        self.place = place

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        counted = self.fate.count(self.place, re.sub(r" [\d./]+$", "", name))

        async def mortal() -> T:
            came = await work()
            self.fate.reach(counted, "inside")
            return came

        self.fate.reach(counted, "before")
        came = await self.steps.run(name, mortal, kind)
        self.fate.reach(counted, "after")
        return came


class MortalBoard(FleetBoard):
    """A blackboard with a boundary before and after each verb."""

    def __init__(self, board: FleetBoard, fate: Fate) -> None:
        super().__init__(board.board)
        self.fate = fate

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return _mortal(self.fate, "board", name, found) if name in VERBS else found


class MortalEngine:
    """An engine with a boundary before and after what it enqueues: the first is between a row and its enqueue."""

    def __init__(self, engine: Engine, fate: Fate) -> None:
        self.engine = engine
        self.fate = fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.engine, name)
        return _mortal(self.fate, "engine", name, found) if name == "enqueue_in" else found


def _mortal(fate: Fate, place: str, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    def mortal(*values: Any, **named: Any) -> Any:
        counted = fate.count(place, name)
        fate.reach(counted, "before")
        came = work(*values, **named)
        fate.reach(counted, "after")
        return came

    return mortal


def _mortal_phases(board: Blackboard, fate: Fate) -> None:
    """A boundary before and after the change of status that ends a phase of a task."""
    plain = board.change_status
    mortal = _mortal(fate, "board", "phase", plain)

    def change_status(number: int, change: StatusChange) -> Task:
        return cast("Task", mortal(number, change)) if change.phase else plain(number, change)

    vars(board)["change_status"] = change_status


class MortalFleet(Fleet):
    fate: Fate

    def __init__(self, context: ProjectContext, board: FleetBoard, watch: Watch, *more: Any) -> None:
        watch.board = MortalBoard(watch.board, self.fate)
        _mortal_phases(context.board(), self.fate)
        super().__init__(context, MortalBoard(board, self.fate), watch, *more)

    async def _engine(self, executor: str, slots: int) -> Engine:
        return cast("Engine", MortalEngine(await super()._engine(executor, slots), self.fate))

    async def _part(self, payload: str, steps: Steps) -> str:
        return await super()._part(payload, MortalSteps(steps, self.fate, "part"))

    async def _turn(self, payload: str, steps: Steps) -> str:
        return await super()._turn(payload, MortalSteps(steps, self.fate, "turn"))


def main() -> None:
    MortalFleet.fate = Fate(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    context = asyncio.run(ProjectContext.find(Path.cwd()))
    asyncio.run(
        drive(lambda listener: MortalFleet.open(context, listener=listener), PlainFleetView(), until_empty=True)
    )
    os._exit(0)


if __name__ == "__main__":
    main()
