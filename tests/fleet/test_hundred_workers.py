import re
import sqlite3
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard

WORKERS, TASKS = 100, 200
DEADLINE = 900
TROUBLE = re.compile(
    r"database is locked|lock timeout|could not obtain lock|deadlock|serializ|Traceback", re.IGNORECASE
)


def crowd(yard: Yard, tasks: int) -> None:
    yard.set(work={"poll_seconds": 0.5, "memory_per_worker_mb": 0, "min_free_memory_mb": 0})
    yard.agent()
    with yard.board():
        pass
    for number in range(1, tasks + 1):
        yard.task(number)


def each_was_done_once(yard: Yard, tasks: int) -> None:
    numbers = [str(number) for number in range(1, tasks + 1)]
    assert Counter(yard.statuses().values()) == {TaskStatus.DONE: tasks}
    assert sorted(yard.started(), key=int) == numbers, "each was started once"
    merged = [line.rpartition("#")[2].rstrip(")") for line in yard.landed() if line.startswith("Merge")]
    assert sorted(merged, key=int) == numbers, "each landed once"
    with yard.board() as board:
        assert {len(board.sessions(number)) for number in range(1, tasks + 1)} == {1}


def trouble_lines(yard: Yard) -> list[str]:
    """Everything that anybody wrote down: logs, journals, events, and what the engine keeps of its workflows."""
    ground = yard.project.root
    places = [*ground.parent.glob("work-*.log"), ground / ".git" / "genba" / "fork_server.log"]
    places += (ground / "tmp" / "logs").rglob("*.jsonl")
    found = [
        f"{place.name}: {line}"
        for place in places
        if place.is_file()
        for line in place.read_text("utf-8", "replace").splitlines()
        if TROUBLE.search(line)
    ]
    return found + [line for line in _rows(yard) if TROUBLE.search(line)]


def _rows(yard: Yard) -> list[str]:
    if yard.address:
        with psycopg.connect(yard.address) as server:
            rows = server.execute("SELECT kind, data FROM events").fetchall()
            rows += server.execute("SELECT workflow_uuid, error FROM dbos.workflow_status WHERE error <> ''").fetchall()
        return [str(row) for row in rows]
    file = sqlite3.connect(f"file:{Path(yard.project.root)}/.genba/genba.db?mode=ro", uri=True)
    try:
        rows = file.execute("SELECT kind, data FROM events").fetchall()
        rows += file.execute("SELECT workflow_uuid, error FROM workflow_status WHERE error <> ''").fetchall()
    finally:
        file.close()
    return [str(row) for row in rows]


@pytest.mark.parametrize(("workers", "tasks"), [(20, 24), (WORKERS, TASKS)])
def test_many_workers_of_one_process_do_each_task_once_and_meet_no_lock(
    small_yard: Yard, workers: int, tasks: int
) -> None:
    yard = small_yard
    crowd(yard, tasks)

    fleet = yard.start("--until-empty", "--workers", str(workers))

    assert fleet.wait(DEADLINE) == 0, yard.log()
    each_was_done_once(yard, tasks)
    assert trouble_lines(yard) == []
    assert not yard.unreachable()
    assert not yard.left_running()


def test_many_workers_of_three_processes_do_each_task_once_and_meet_no_lock(server_yard: Yard) -> None:
    yard = server_yard
    crowd(yard, TASKS)
    each = -(-WORKERS // 3)

    fleets = [yard.start("--until-empty", "--workers", str(each), "--executor", f"host-{name}") for name in "abc"]
    codes = [fleet.wait(DEADLINE) for fleet in fleets]

    assert codes == [0, 0, 0], "\n".join(yard.log(number) for number in range(3))
    each_was_done_once(yard, TASKS)
    assert trouble_lines(yard) == []
    assert not yard.unreachable()
    assert not yard.left_running()
