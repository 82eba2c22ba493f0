"""How recurring cost grows from 10 to 10,000 tasks, in processor seconds.

One project grows while it is measured. All its tasks are open, and a third depends on another one. None can start,
because the provider of their agent is paused: the most expensive idle state, since every task is ranked first. A second
project has a history: as many done tasks, each with everything that a fleet leaves in the database, and ten waiting.
"""

import asyncio
import gc
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.doubles.workflow_doubles import ScriptedDesk

from bench.fleet_ground import HUMAN, Ground
from bench.history import Past
from bench.measuring import Measured, Row, clean_environment
from bench.slopes import slope
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.runs import RunWorkflow
from genba.coordination.workflow.service import WorkflowService
from genba.definitions.project.work_sections import FleetSettings, WorkflowSettings
from genba.domain.fleet.records import SegmentOrder
from genba.domain.tasks.task import Actor, ActorKind, Priority, StatusChange, TaskDraft, TaskStatus

SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
BIN = Path(sys.executable).parent
HERE = Path(__file__).parent
ROUNDS, OFTEN = 3, 12
"""What takes a moment is measured often."""
CHANGES, ADDED, ASKED = 100, 20, 40
FLAT, LINEAR = 2.0, 1.5
"""What must not grow may take so many times as much on 10,000 tasks as on 10. What grows with the field may take so
many times ten times as much on 10,000 as on 1,000."""
ORCHESTRATOR = Actor(ActorKind.ORCHESTRATOR, "bench")
_NEVER = "2100-01-01T00:00:00.000000+00:00"
_MUST_NOT_GROW = (
    "a status change",
    "a task is added",
    "get_next_action",
    "a look of the orchestrator, all done",
)

_NOT_DRAWN = ("genba task list --ready", "genba status, all done")
"""Lines that would lie upon others in the picture."""

Series = dict[str, dict[int, float]]


def rows() -> Measured:
    series: Series = {}
    sizes: Series = {"the database, all open": {}, "the database, all done": {}}
    with tempfile.TemporaryDirectory(prefix="genba-bench-", ignore_cleanup_errors=True) as folder:
        open_, past = Ground(Path(folder) / "open"), Past(Path(folder) / "done")
        with open_.board() as board:
            FleetBoard(board).pause_provider("scripted", _NEVER)
            for size in SIZES:
                began, copy = time.monotonic(), Path(folder) / f"copy-{size}.db"
                _fill(board, size)
                past.grow(size)
                for name, value in _measured(open_, past.ground, copy).items():
                    series.setdefault(name, {})[size] = value
                sizes["the database, all open"][size] = _bytes(copy)
                sizes["the database, all done"][size] = _bytes(Path(past.ground.database))
                print(f"  growth: {size:,} tasks, {time.monotonic() - began:.0f} s", flush=True)
    made = [_row(name, found) for name, found in series.items()]
    apart = {name: series.pop(name) for name in _NOT_DRAWN}
    more = {"series": _kept(series), "not_drawn": _kept(apart), "bytes": _kept(sizes)}
    return Measured([*made, *(_size_row(*each) for each in sizes.items())], {**more})


def _row(name: str, found: dict[int, float]) -> Row:
    """What must not grow is held to the smallest field, what grows with it to ten times a tenth of it."""
    first, tenth, last = found[SIZES[0]], found[SIZES[-1] // 10], found[SIZES[-1]]
    figure = f"{last * 1000:.2f} ms beside {first * 1000:.2f} ms of the processor; "
    figure += f"from 1,000 on as n^{_exponent(found):.2f}"
    if name in _MUST_NOT_GROW:
        return Row(f"{name}: {SIZES[-1]:,} tasks / {SIZES[0]}", figure, last / first, FLAT)
    figure = f"{last / first:.0f} times as much as with {SIZES[0]}: {figure}"
    return Row(f"{name}: {SIZES[-1]:,} tasks / ten times {SIZES[-1] // 10:,}", figure, last / (10 * tenth), LINEAR)


def _size_row(name: str, sizes: dict[int, float]) -> Row:
    first, tenth, last = (sizes[size] for size in (SIZES[0], SIZES[-1] // 10, SIZES[-1]))
    what = f"{name}: {SIZES[-1]:,} tasks / ten times {SIZES[-1] // 10:,}"
    figure = f"{last / 2**20:.1f} MB beside {first / 2**20:.1f} MB with {SIZES[0]}; "
    figure += f"{(last - tenth) / (SIZES[-1] - SIZES[-1] // 10):.0f} bytes a task"
    return Row(what, figure, last / (10 * tenth), LINEAR)


def _exponent(found: dict[int, float]) -> float:
    """Over the last decade: before it, starting a process hides everything else."""
    return slope({size: seconds for size, seconds in found.items() if size >= SIZES[-1] // 10})


def _kept(series: Series) -> dict[str, dict[str, list[float]]]:
    return {
        name: {"tasks": list(found), "value": [float(f"{value:.4g}") for value in found.values()]}
        for name, found in series.items()
    }


def _measured(open_: Ground, past: Ground, copy: Path) -> dict[str, float]:
    _copied(open_.root / ".genba" / "genba.db", copy)
    return {
        "genba status": _command(open_, "status"),
        "genba task list": _command(open_, "task", "list"),
        "genba task list --ready": _command(open_, "task", "list", "--ready"),
        "a look of the orchestrator, all open": _look(open_),
        "a look of the orchestrator, all done": _look(past),
        "genba status, all done": _command(past, "status"),
        **_verbs(copy, open_.root.name),
    }


# ── the fields ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _fill(board: Blackboard, size: int) -> None:
    """Up to so many tasks, by the verb that adds them for everybody."""
    ranks = list(Priority)
    for number in range(len(board.find()) + 1, size + 1):
        waits = (number // 2,) if number % 3 == 0 else ()
        draft = TaskDraft(
            title=f"Part {number} of the shop", number=number, priority=ranks[number % len(ranks)], dependencies=waits
        )
        board.add(draft, HUMAN)


def _copied(source: Path, target: Path) -> None:
    """Measures write to a copy, so the project itself does not change."""
    with sqlite3.connect(source) as read, sqlite3.connect(target) as written:
        read.backup(written)
    read.close()
    written.close()


def _bytes(path: Path) -> float:
    with sqlite3.connect(path) as connection:
        pages, free, each = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
    connection.close()
    return float((pages - free) * each)


# ── what is measured ─────────────────────────────────────────────────────────────────────────────────────────────────


def _command(ground: Ground, *words: str) -> float:
    """A whole command, from its start to its end, and whatever it starts."""
    return min(_processor([str(BIN / "genba"), *words], ground.root) for _ in range(ROUNDS))


def _processor(words: list[str], folder: Path) -> float:
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(words, cwd=folder, env=clean_environment(), stdout=nowhere, stderr=nowhere)
    _, status, spent = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    return spent.ru_utime + spent.ru_stime


def _look(ground: Ground) -> float:
    environment = {**clean_environment(), "PYTHONPATH": str(HERE.parent)}
    words = [sys.executable, "-m", "bench.ticks", str(3 * ROUNDS)]
    done = subprocess.run(words, cwd=ground.root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["sessions"] == 0, "a session began, and there should be nothing to do"
    return float(min(result["seconds"]))


def _verbs(copy: Path, project: str) -> dict[str, float]:
    with Blackboard.open(str(copy), project) as board:
        found = {"the ready tasks, read again": _least(lambda: Blackboard(board.store).ready())}
        gc.collect()
        gc.freeze()  # what was read for another measure is not looked through in these
        found["a status change"] = _least(lambda: _changes(board), OFTEN) / CHANGES
        found["get_next_action"] = asyncio.run(_asked(board))
        found["a task is added"] = _least(lambda: _added(board), OFTEN) / ADDED
        gc.unfreeze()
    return found


def _least(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds + 1):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times[1:])


def _changes(board: Blackboard) -> None:
    for at in range(CHANGES):
        to = TaskStatus.OPEN if at % 2 else TaskStatus.IN_PROGRESS
        board.change_status(1, StatusChange(to=to, actor=ORCHESTRATOR))


def _added(board: Blackboard) -> None:
    for number in range(ADDED):
        board.add(TaskDraft(title=f"One more, {number}"), HUMAN)


async def _asked(board: Blackboard) -> float:
    """A write before each question prevents cached answers."""
    fleet, workflow = FleetBoard(board), WorkflowBoard(board)
    settings = FleetSettings(workflow=WorkflowSettings(calls_per_minute=10**9, max_repeats=10**9))
    service = WorkflowService(workflow, fleet, ScriptedDesk(fleet), settings, board.store.project, {}, tuple)
    run = "worker-1-1-bench"
    fleet.start(SegmentOrder(run=run, task=1, agent="worker", attempt=1), executor="bench")
    connected = await service.authenticate(Caller(token=await RunWorkflow(workflow).credential(run)))
    caller, times = Caller(token=connected.session_token), []
    await service.get_next_action(caller)
    for _ in range(ASKED):
        board.comment(2, "A word about it.", HUMAN)
        began = time.process_time()
        await service.get_next_action(caller)
        times.append(time.process_time() - began)
    await service.settle()
    service.close()
    return sorted(times)[len(times) // 4]
