"""What is counted: lock errors wherever they are told, and the memory of a family of processes."""

import base64
import subprocess
import sys
from pathlib import Path

import pytest

from bench import processes, workers, workers_memory
from bench.fleet import Taken
from bench.fleet_ground import HUMAN, Ground
from bench.lock_errors import errors_in, errors_of
from bench.processes import Process
from bench.workers import Looked, Width
from genba.domain.tasks.task import TaskDraft


def test_an_error_of_a_lock_is_found_whatever_database_says_it() -> None:
    message = "database is locked\nall is well\ndeadlock detected\nFATAL: sorry, too many clients already"

    assert errors_in(message) == 3
    assert errors_in("the lock of the shop was changed; 3 workers are busy") == 0


def test_an_error_is_found_where_it_was_put_away_in_another_alphabet() -> None:
    put_away = base64.b64encode(b"\x80\x05sqlite3.OperationalError: database is locked, and more words").decode()

    assert errors_in(f"('workflow', '{put_away}')") == 1


def test_errors_are_looked_for_in_what_was_said_in_the_database_and_in_the_files(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    assert errors_of(ground, "1 task landed") == 0

    with ground.board() as board:
        board.comment(board.add(TaskDraft(title="Make tea"), HUMAN).number, "it said: database is locked", HUMAN)
    log = ground.root / ".git" / "genba" / "runs" / "worker-1" / "journal.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text('{"error": "deadlock detected"}\n')
    in_the_database = errors_of(ground, "") - 1

    assert in_the_database >= 1
    assert errors_of(ground, "SQLITE_BUSY") == in_the_database + 2


def test_a_fleet_that_lost_a_task_or_met_a_lock_does_not_hold() -> None:
    most = workers.tasks_for(max(workers.WIDTHS))

    assert workers._without_errors("SQLite", Looked(Taken(1.0), most, 0)).holds
    assert not workers._without_errors("SQLite", Looked(Taken(1.0), most - 1, 0)).holds
    assert not workers._without_errors("SQLite", Looked(Taken(1.0), most, 1)).holds


def test_the_lines_of_the_widths_are_tasks_a_second_and_seconds_a_task() -> None:
    found = [Width(1, Taken(12.0, 3.0), Taken(6.0, 1.5)), Width(100, Taken(20.0, 40.0), Taken(10.0, 20.0))]

    assert workers.kept(found)["Genba"] == {"workers": [1.0, 100.0], "value": [0.5, 10.0]}
    assert workers.cost(found)["a shell of the same width"]["value"] == [0.25, 0.1]


def test_every_process_of_a_fleet_is_told_from_the_others() -> None:
    python = "/usr/bin/python3"
    family = {
        "orchestrator": Process(10, 1, f"{python} /usr/bin/genba work"),
        "nursery": Process(11, 10, f"{python} -m genba.wiring.sessions.fork_server 7"),
        "supervisors": Process(12, 11, f"{python} -m genba.wiring.sessions.fork_server 7"),
        "agents": Process(13, 12, f"{python} -P -m genba.connections.agents.player"),
        "others": Process(14, 10, "git status"),
    }

    assert {processes.kind_of(each, 10) for each in family.values()} == set(processes.KINDS)
    assert all(processes.kind_of(each, 10) == kind for kind, each in family.items())


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="not run: this kernel tells no PSS")
def test_the_memory_of_a_process_counts_those_that_it_has_started() -> None:
    words = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        family = processes.family(parent.pid)
        memory = processes.memory(parent.pid)
        parent.communicate(b"\n")

    assert [each.number for each in family][:1] == [parent.pid]
    assert len(family) == 2
    assert memory["orchestrator"] > 1
    assert memory["others"] > 1
    assert processes.memory(parent.pid) == dict.fromkeys(processes.KINDS, 0.0)


def test_what_a_worker_takes_is_told_without_its_agent() -> None:
    def fleet(workers_: int, supervisor: float) -> dict[str, float]:
        fixed = {"orchestrator": 70.0, "nursery": 20.0, "others": 0.0}
        return {**fixed, "supervisors": supervisor * workers_, "agents": 9.0 * workers_}

    seen = {count: fleet(count, 6.0) for count in (0, 8, 64)}
    bare = {8: 8 * 3.0, 64: 64 * 3.0}
    rows = workers_memory._rows({8: fleet(0, 0), 64: fleet(0, 0)}, seen, bare, bare)

    assert [row.ratio for row in rows] == [0.0, 2.0, 30.0, (90 + 64 * 6) / (64 * 3)]
    assert rows[1].figure.startswith("6.0 MB beside 3.0 MB; ")
    assert all(row.holds for row in rows)
