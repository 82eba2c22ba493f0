"""Executors that share a server: with other projects, with each other, and with a network that is not always there."""

import contextlib
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg

from genba.domain.tasks.task import TaskStatus
from tests.coordination.waiting import until
from tests.fleet.yard import Yard
from tests.project import Project


def _waiting_for(go: Path) -> str:
    return f"until [ -e {go} ]; do sleep 0.05; done; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt"


def _second(project: Project, folder: Path) -> Project:
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    made = Project(folder, dict(project.environment))
    made.git("config", "user.name", "Tester")
    made.git("config", "user.email", "tester@localhost")
    made.write("README.md", "second\n")
    made.commit("Begin")
    return made


def _done(yard: Yard, number: int) -> bool:
    return yard.look(number).status is TaskStatus.DONE


def _executors(yard: Yard) -> dict[str, str]:
    with yard.board() as board:
        return {executor.id: executor.status for executor in board.executors()}


def _worker_of(yard: Yard, number: int) -> str:
    with yard.board() as board:
        return board.sessions(number)[-1].executor


def _cut_off(yard: Yard, executor: str) -> None:
    """What a lost network does to the connection that holds the lock of an executor."""
    with psycopg.connect(yard.address, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
            " AND datname = current_database()",
            [f"genba executor {executor}"],
        ).fetchall()
    assert ended == [(True,)]


@contextlib.contextmanager
def _stopped(yard: Yard, executor: str) -> Iterator[None]:
    """It stands still, and does not notice that it has lost its lock."""
    with yard.board() as board:
        process = next(each.process for each in board.executors() if each.id == executor)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@contextlib.contextmanager
def _out_of_reach(yard: Yard) -> Iterator[None]:
    host = parse_qs(urlsplit(yard.address).query)["host"][0]
    socket = next(Path(host).glob(".s.PGSQL.[0-9]*[0-9]"))
    away = socket.with_name("away")
    with psycopg.connect(yard.address, autocommit=True) as connection:
        socket.rename(away)
        try:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            yield
        finally:
            away.rename(socket)


def test_a_project_leaves_the_work_of_another_one_on_the_same_server_alone(server_yard: Yard, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with Yard(_second(server_yard.project, tmp_path / "beside" / "second"), server_yard.address) as other:
        server_yard.set(work={"grace_seconds": 60})
        server_yard.agent(script=_waiting_for(go))
        server_yard.task(1)
        other.set()
        other.agent()
        other.task(1)
        worker = server_yard.start()
        until(lambda: bool(server_yard.started()))
        server_yard.kill(worker)

        other.work()

        assert other.statuses() == {1: TaskStatus.DONE}
        assert server_yard.statuses() == {1: TaskStatus.IN_PROGRESS}
        go.touch()
        server_yard.work()
        assert server_yard.statuses() == {1: TaskStatus.DONE}
        assert server_yard.started() == ["1"]


def test_an_executor_that_lost_its_lock_for_a_moment_is_live_again_and_is_taken_over_when_it_dies(
    server_yard: Yard, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    server_yard.set(work={"grace_seconds": 60})
    server_yard.agent(script=_waiting_for(go))
    first = server_yard.start("--workers", "1", "--executor", "a")
    until(lambda: _executors(server_yard) == {"a": "live"})
    server_yard.task(1)
    until(lambda: server_yard.started() == ["1"])
    os.kill(first.pid, signal.SIGSTOP)
    server_yard.start("--workers", "1", "--executor", "b")
    until(lambda: _executors(server_yard).get("b") == "live")
    _cut_off(server_yard, "a")
    until(lambda: _worker_of(server_yard, 1) == "b")
    os.kill(first.pid, signal.SIGCONT)

    until(lambda: _executors(server_yard) == {"a": "live", "b": "live"})
    server_yard.task(2)
    until(lambda: "2" in server_yard.started())
    assert _worker_of(server_yard, 2) == "a"
    server_yard.kill(first)
    go.touch()

    until(lambda: _done(server_yard, 1) and _done(server_yard, 2), 120)
    assert server_yard.started().count("2") == 1
    with server_yard.board() as board:
        assert [len(board.sessions(number)) for number in (1, 2)] == [1, 1]


def test_what_is_taken_from_one_who_still_lives_waits_until_that_one_has_let_go(
    server_yard: Yard, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    server_yard.set(work={"grace_seconds": 60})
    server_yard.agent(script=_waiting_for(go))
    server_yard.task(1)
    first = server_yard.start("--workers", "1", "--executor", "a")
    until(lambda: server_yard.started() == ["1"])
    server_yard.start("--workers", "1", "--executor", "b")
    until(lambda: _executors(server_yard).get("b") == "live")
    os.kill(first.pid, signal.SIGSTOP)
    _cut_off(server_yard, "a")
    until(lambda: "has let go" in server_yard.log(1))
    until(lambda: _worker_of(server_yard, 1) == "b")
    go.touch()
    os.kill(first.pid, signal.SIGCONT)

    until(lambda: _done(server_yard, 1), 120)
    with server_yard.board() as board:
        assert len(board.sessions(1)) == 1


def test_a_lost_lock_never_leads_to_two_agents_at_work(server_yard: Yard, tmp_path: Path) -> None:
    go, twice = tmp_path / "go", tmp_path / "twice"
    alone = f"exec 9> {tmp_path}/alone; flock -n 9 || touch {twice}"
    server_yard.set(work={"grace_seconds": 60})
    server_yard.agent(script=f"{alone}; {_waiting_for(go)}")
    server_yard.task(1)
    server_yard.start("--workers", "1", "--executor", "a")
    until(lambda: server_yard.started() == ["1"])
    server_yard.start("--workers", "1", "--executor", "b")
    until(lambda: _executors(server_yard).get("b") == "live")
    with _stopped(server_yard, "a"):
        _cut_off(server_yard, "a")
        until(lambda: _worker_of(server_yard, 1) == "b")
    until(lambda: _executors(server_yard) == {"a": "live", "b": "live"})
    go.touch()

    until(lambda: _done(server_yard, 1), 120)
    assert not twice.exists()
    assert len(server_yard.started()) <= 2, "whoever is taken over from suspends its agent, and it is asked once more"
    with server_yard.board() as board:
        assert len(board.sessions(1)) == 1


def test_a_server_that_is_gone_for_a_while_is_reported_once_and_the_work_goes_on(
    server_yard: Yard, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    server_yard.set(work={"grace_seconds": 60})
    server_yard.agent(script=_waiting_for(go))
    server_yard.task(1)
    worker = server_yard.start()
    until(lambda: server_yard.started() == ["1"])
    with _out_of_reach(server_yard):
        until(lambda: "cannot be reached" in server_yard.log() and "is lost" in server_yard.log())
        go.touch()
    server_yard.task(2)

    until(lambda: _done(server_yard, 1) and _done(server_yard, 2), 120)
    assert worker.poll() is None
    assert server_yard.log().count("nothing new begins") == 1
    assert server_yard.log().count("the database answers again") == 1
    assert server_yard.started() == ["1", "2"]


def test_a_file_locked_by_another_process_is_reported_once_and_the_work_goes_on(small_yard: Yard) -> None:
    small_yard.set(database={"busy_seconds": 1})
    small_yard.agent()
    worker = small_yard.start()
    until(lambda: "opened" in small_yard.log())
    with contextlib.closing(sqlite3.connect(small_yard.project.root / ".genba" / "genba.db")) as holder:
        holder.execute("BEGIN IMMEDIATE")
        until(lambda: "the blackboard is locked" in small_yard.log())
        holder.rollback()
    small_yard.task(1)

    until(lambda: _done(small_yard, 1))
    assert worker.poll() is None
    assert small_yard.log().count("nothing new begins") == 1


def test_a_server_that_cannot_be_reached_at_all_is_refused_at_once(server_yard: Yard) -> None:
    server_yard.set()
    server_yard.agent()
    with _out_of_reach(server_yard):
        refused = server_yard.genba("work", "--until-empty", check=5)

    assert "cannot be reached" in refused.err


def test_the_first_turn_of_a_new_process_is_no_turn_of_the_one_before(small_yard: Yard) -> None:
    small_yard.set(merge={"retry_seconds": 0.1})
    small_yard.agent()
    small_yard.task(1)
    (small_yard.project.root / "README.md").write_text("changed by hand\n")
    first = small_yard.start()
    until(lambda: _turns(small_yard) >= 3)
    small_yard.kill(first)
    small_yard.project.git("checkout", "README.md")
    small_yard.set(work={"poll_seconds": 600})

    small_yard.start()

    until(lambda: _done(small_yard, 1))


def _turns(yard: Yard) -> int:
    with contextlib.closing(sqlite3.connect(yard.project.root / ".genba" / "genba.db")) as database:
        tables = "SELECT count(*) FROM sqlite_master WHERE name = 'workflow_status'"
        if not database.execute(tables).fetchone()[0]:
            return 0
        return int(database.execute("SELECT count(*) FROM workflow_status WHERE name = 'turn'").fetchone()[0])
