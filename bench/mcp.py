"""`get_next_action` over streamable HTTP, beside a bare tool of the SDK that reads one row."""

import asyncio
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.doubles.workflow_doubles import ScriptedDesk

from bench.bare_mcp import SCHEMA
from bench.measuring import Row, clean_environment
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.runs import RunWorkflow
from genba.coordination.workflow.service import WorkflowService
from genba.definitions.project.work_sections import FleetSettings
from genba.domain.fleet.records import SegmentOrder
from genba.domain.tasks.task import Actor, ActorKind, TaskDraft

BIN = Path(sys.executable).parent
AT_ONCE = (1, 16, 64)
ROUNDS, SECONDS = 3, 2.0
LEAST = 0.7
"""Of the calls that the bare tool answers in the same time."""
SPREAD = 3.0
CONFIG = """\
workflow:
  calls_per_minute: 1000000000
  max_repeats: 1000000000
"""


class Timing(NamedTuple):
    rate: float
    p50: float
    p99: float


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="genba-bench-") as folder:
        ground = Path(folder)
        root = _repository(ground)
        tokens = asyncio.run(_connected(root, max(AT_ONCE)))
        _bare_rows(ground / "bare.db", tokens)
        genba = [str(BIN / "genba"), "mcp", "--http", "--port", "0"]
        bare = [sys.executable, "-m", "bench.bare_mcp", str(ground / "bare.db")]
        with _served(genba, root) as ours, _served(bare, Path.cwd()) as theirs:
            return [row for count in AT_ONCE for row in _rows(count, ours, theirs, tokens[:count])]


def _rows(count: int, ours: int, theirs: int, tokens: list[str]) -> list[Row]:
    found: dict[str, list[Timing]] = {"genba": [], "bare": []}
    for number in range(ROUNDS + 1):
        for name, port in (("genba", ours), ("bare", theirs)):
            timing = _asked(port, tokens)
            if number:
                found[name].append(timing)
    genba, bare = (statistics.median(each.rate for each in found[name]) for name in ("genba", "bare"))
    clients = f"{count} client{'s' if count > 1 else ''}"
    figure = f"{genba:.0f} calls a second beside {bare:.0f}, which is {genba / bare:.2f}× of them; at least {LEAST}×"
    made = [Row(f"get_next_action, {clients} / a bare SDK tool that reads a row", figure, bare / genba, 1 / LEAST)]
    if count == max(AT_ONCE):
        middle = sorted(found["genba"], key=lambda each: each.p99 / each.p50)[ROUNDS // 2]
        beside = sorted(found["bare"], key=lambda each: each.p99 / each.p50)[ROUNDS // 2]
        figure = f"{middle.p99:.0f} ms beside {middle.p50:.0f} ms; the bare tool {beside.p99 / beside.p50:.2f}×"
        made.append(Row(f"get_next_action, {clients}: p99 / p50", figure, middle.p99 / middle.p50, SPREAD))
    return made


def _asked(port: int, tokens: list[str]) -> Timing:
    words = [sys.executable, "-m", "bench.mcp_clients", str(port), str(SECONDS)]
    done = subprocess.run(
        words, env=clean_environment(), input="\n".join(tokens), capture_output=True, text=True, check=True
    )
    return Timing(**json.loads(done.stdout))


@contextmanager
def _served(words: list[str], folder: Path) -> Iterator[int]:
    """A server that says on its first line where it is."""
    process = subprocess.Popen(
        words, cwd=folder, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        port = urlsplit(process.stdout.readline().strip()).port
        assert port is not None, words
        yield port
    finally:
        process.terminate()
        process.communicate()


def _repository(folder: Path) -> Path:
    root = folder / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    (root / ".genba").mkdir()
    (root / ".genba" / "config.yaml").write_text(CONFIG, encoding="utf-8")
    for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost")):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "Begin"], cwd=root, check=True)
    return root


async def _connected(root: Path, count: int) -> list[str]:
    """Sessions at work, each with an instance that has authenticated: their tokens."""
    with Blackboard.open(str(root / ".genba" / "genba.db"), root.name) as board:
        fleet, workflow = FleetBoard(board), WorkflowBoard(board)
        project = board.store.project
        service = WorkflowService(workflow, fleet, ScriptedDesk(fleet), FleetSettings(), project, {}, tuple)
        runs, tokens = RunWorkflow(workflow), []
        for number in range(1, count + 1):
            board.add(TaskDraft(title=f"task {number}", number=number), Actor(ActorKind.HUMAN, "bench"))
            run = f"writer-{number}-1-bench"
            fleet.start(SegmentOrder(run=run, task=number, agent="writer", attempt=1), executor="bench")
            connected = await service.authenticate(Caller(token=await runs.credential(run)))
            tokens.append(connected.session_token)
        await service.settle()
        service.close()
    return tokens


def _bare_rows(path: Path, tokens: list[str]) -> None:
    result = "Call get_my_task(). It tells your task, and what the work is held to. " * 3
    rows = [(token, "get_task", result) for token in tokens]
    with sqlite3.connect(path) as connection:
        connection.execute(SCHEMA)
        connection.executemany("INSERT INTO agent_connections VALUES (?, ?, ?)", rows)
    connection.close()
