"""What becomes of durable runs when the processes die that carry them out."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy

from tests.coordination.conftest import Executor, Orders, Postgres
from tests.coordination.waiting import until

Start = Callable[..., Executor]


@pytest.fixture
def place(request: pytest.FixtureRequest, postgres: Postgres) -> str:
    return postgres.database() if "empty" in request.fixturenames else postgres.furnished(engine=True)


@pytest.fixture
def fleet(place: str, executor_at: Start) -> Start:
    """Starts executors on one PostgreSQL."""
    return partial(executor_at, place)


@pytest.fixture
def server(place: str) -> Iterator[sqlalchemy.Engine]:
    url = sqlalchemy.make_url(place).set(drivername="postgresql+psycopg")
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


def succeeded(orders: Orders, who: Executor, *names: str) -> Callable[[], bool]:
    return lambda: all(orders.status(who, name) == "success" for name in names)


def test_the_step_that_a_process_dies_in_runs_again_and_no_other(executor: Start, orders: Orders) -> None:
    first = executor()
    orders.enqueue(first, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    first.kill()
    orders.go("a")
    second = executor()
    until(succeeded(orders, second, "a"))

    assert [orders.count(f"begin a {step}") for step in ("first", "second", "third")] == [1, 2, 1]
    assert [orders.count(f"end a {step}") for step in ("first", "second", "third")] == [1, 1, 1]
    assert second.complaint() == ""


def test_a_process_that_dies_between_two_steps_goes_on_with_the_next(executor: Start, orders: Orders) -> None:
    first = executor()
    orders.enqueue(first, "a", die_after="second")
    first.process.wait()
    assert orders.count("begin a third") == 0
    second = executor()
    until(succeeded(orders, second, "a"))

    assert [orders.count(f"begin a {step}") for step in ("first", "second", "third")] == [1, 1, 1]


def test_what_was_enqueued_and_never_begun_is_carried_out_by_the_next_process(executor: Start, orders: Orders) -> None:
    first = executor(workers=1)
    orders.enqueue(first, "a", hold="first")
    until(lambda: orders.count("begin a first") == 1)
    orders.enqueue(first, "b")
    first.kill()
    orders.go("a")
    second = executor(workers=1)

    until(succeeded(orders, second, "a", "b"))
    assert orders.count("begin b first") == 1


def test_a_process_that_leaves_hands_everything_to_the_next_of_its_name(executor: Start, orders: Orders) -> None:
    first = executor()
    orders.enqueue(first, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    first.leave()
    assert orders.count("stopped a second") == 1
    orders.go("a")
    second = executor()
    until(succeeded(orders, second, "a"))

    assert [orders.count(f"begin a {step}") for step in ("first", "second", "third")] == [1, 2, 1]


def test_what_kills_its_process_again_and_again_is_not_started_any_more(executor: Start, orders: Orders) -> None:
    first = executor()
    orders.enqueue(first, "bad", die_in="second")
    first.process.wait()
    for _ in range(5):
        executor(wait=False).process.wait()
    last = executor()
    until(lambda: orders.status(last, "bad") == "poisoned")

    assert [line for line in last.said() if line.startswith("engine.")] == [], "its row tells it"
    assert orders.count("begin bad second") == 6
    unfinished = orders.ask(last, {"do": "unfinished", "executor": "one"})
    assert [(one["id"], one["status"]) for one in unfinished] == [("bad", "poisoned")]
    orders.ask(last, {"do": "cancel", "ids": ["bad"]})
    assert orders.ask(last, {"do": "unfinished", "executor": None}) == []


def test_another_executor_goes_on_with_what_a_dead_one_left(fleet: Start, orders: Orders) -> None:
    first = fleet("first", workers=1)
    orders.enqueue(first, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    orders.enqueue(first, "b")
    orders.enqueue(first, "turn", queue="merges", partition="main", hold="second")
    until(lambda: orders.count("begin turn second") == 1)
    second = fleet("second")
    alive = orders.ask(second, {"do": "take over", "executor": "first"})
    first.kill()
    until(lambda: orders.ask(second, {"do": "dead", "executors": ["first", "second"]}) == ["first"])
    for name in ("a", "turn"):
        orders.go(name)
    taken = orders.ask(second, {"do": "take over", "executor": "first"})
    until(succeeded(orders, second, "a", "b", "turn"))

    assert alive is None
    assert sorted(taken) == ["a", "b", "turn"]
    assert orders.count("begin a first") == 1
    assert orders.count("begin a second second") == 1
    assert orders.count("begin b first second") == 1
    assert orders.ask(second, {"do": "unfinished", "executor": None}) == []


def test_a_dead_executor_is_taken_over_once_however_many_try(fleet: Start, orders: Orders) -> None:
    dead, *others = [fleet(name, workers=8) for name in ("dead", "left", "right")]
    names = [f"w{number}" for number in range(8)]
    for name in names:
        orders.enqueue(dead, name, hold="second")
    until(lambda: all(orders.count(f"begin {name} second") == 1 for name in names))
    dead.kill()
    until(lambda: orders.ask(others[0], {"do": "dead", "executors": ["dead"]}) == ["dead"])
    for name in names:
        orders.go(name)
    for one in others:
        orders.ask(one, {"do": "take over", "executor": "dead"})
    until(succeeded(orders, others[0], *names))

    assert all(orders.count(f"begin {name} second") == 2 for name in names)
    assert all(orders.count(f"begin {name} third") == 1 for name in names)


def test_what_kills_one_executor_after_the_other_is_not_started_any_more(fleet: Start, orders: Orders) -> None:
    one = fleet("executor0")
    orders.enqueue(one, "bad", die_in="second")
    for number in range(1, 6):
        one.process.wait()
        one = fleet(f"executor{number}")
        orders.tell(one, {"do": "take over", "executor": f"executor{number - 1}"})
    one.process.wait()
    last = fleet("executor6")
    taken = orders.ask(last, {"do": "take over", "executor": "executor5"})

    assert taken == []
    assert orders.status(last, "bad") == "poisoned"
    assert orders.count("begin bad second") == 6


def test_the_checkpoints_of_one_who_was_asleep_are_refused(
    fleet: Start, server: sqlalchemy.Engine, orders: Orders
) -> None:
    sleeper = fleet("sleeper")
    orders.enqueue(sleeper, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    other = fleet("other")
    os.kill(sleeper.process.pid, signal.SIGSTOP)
    _cut_off(server, "sleeper")
    until(lambda: orders.ask(other, {"do": "dead", "executors": ["sleeper"]}) == ["sleeper"])
    orders.go("a")
    taken = orders.ask(other, {"do": "take over", "executor": "sleeper"})
    until(succeeded(orders, other, "a"))
    os.kill(sleeper.process.pid, signal.SIGCONT)
    until(lambda: "engine.back" in sleeper.news())

    assert taken == ["a"]
    assert orders.count("begin a third sleeper") == 0
    assert orders.count("begin a third other") == 1
    assert sleeper.news() == ["engine.lost", "engine.back"]
    sleeper.leave()


def test_what_was_taken_over_is_stopped_where_it_ran(fleet: Start, server: sqlalchemy.Engine, orders: Orders) -> None:
    sleeper = fleet("sleeper")
    orders.enqueue(sleeper, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    other = fleet("other")
    os.kill(sleeper.process.pid, signal.SIGSTOP)
    _cut_off(server, "sleeper")
    until(lambda: orders.ask(other, {"do": "dead", "executors": ["sleeper"]}) == ["sleeper"])
    orders.ask(other, {"do": "take over", "executor": "sleeper"})
    until(lambda: orders.count("begin a second other") == 1)
    os.kill(sleeper.process.pid, signal.SIGCONT)
    until(lambda: orders.count("stopped a second sleeper") == 1)
    orders.go("a")

    until(succeeded(orders, other, "a"))
    assert orders.count("stopped") == 1


def test_one_that_finds_another_in_its_place_suspend(fleet: Start, server: sqlalchemy.Engine, orders: Orders) -> None:
    sleeper = fleet("twin")
    orders.enqueue(sleeper, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    os.kill(sleeper.process.pid, signal.SIGSTOP)
    _cut_off(server, "twin")
    twin = fleet("twin")
    until(lambda: orders.count("begin a second") == 2)
    os.kill(sleeper.process.pid, signal.SIGCONT)
    assert sleeper.process.wait() == 0, sleeper.complaint()
    orders.go("a")
    until(succeeded(orders, twin, "a"))

    assert sleeper.news() == ["engine.lost", "engine.suspended"]
    assert orders.count("begin a third") == 1


def test_one_that_suspend_hands_back_what_it_took_in_the_name_of_the_other(
    fleet: Start, server: sqlalchemy.Engine, orders: Orders
) -> None:
    sleeper, other = fleet("twin"), fleet("other")
    os.kill(sleeper.process.pid, signal.SIGSTOP)
    _cut_off(server, "twin")
    twin = fleet("twin")
    os.kill(twin.process.pid, signal.SIGSTOP)
    orders.enqueue(other, "a", queue="sessions:twin", hold="second")
    os.kill(sleeper.process.pid, signal.SIGCONT)
    assert sleeper.process.wait() == 0, sleeper.complaint()
    os.kill(twin.process.pid, signal.SIGCONT)
    orders.go("a")
    until(succeeded(orders, twin, "a"))

    assert sleeper.news() == ["engine.lost", "engine.suspended"]
    assert orders.count("begin a first") == 1
    assert orders.count("end a second") == 1


def test_a_run_goes_on_when_every_connection_was_cut(fleet: Start, server: sqlalchemy.Engine, orders: Orders) -> None:
    one = fleet("one")
    orders.enqueue(one, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'genba%'"
    with server.connect() as connection:
        connection.execute(sqlalchemy.text(ending + " AND datname = current_database()"))
    until(lambda: one.news()[:2] == ["engine.lost", "engine.back"])
    orders.go("a")
    orders.enqueue(one, "b")
    until(succeeded(orders, one, "a", "b"))

    assert orders.count("begin a second") == 1


def test_a_run_goes_on_when_the_connection_was_lost_for_a_moment(
    fleet: Start, server: sqlalchemy.Engine, orders: Orders
) -> None:
    one = fleet("one")
    orders.enqueue(one, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    _cut_off(server, "one")
    until(lambda: one.news() == ["engine.lost", "engine.back"])
    orders.go("a")
    until(succeeded(orders, one, "a"))

    assert orders.count("begin a second") == 1


def test_a_run_is_cancelled_from_another_process(fleet: Start, orders: Orders) -> None:
    first, second = fleet("first"), fleet("second")
    orders.enqueue(first, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    orders.ask(second, {"do": "cancel", "ids": ["a"]})
    until(lambda: orders.count("stopped a second first") == 1)

    assert orders.status(first, "a") == "cancelled"
    assert first.complaint() == ""


def test_two_executors_can_begin_at_once_on_an_empty_server(empty: None, fleet: Start, orders: Orders) -> None:
    started = [fleet(name, wait=False) for name in ("first", "second", "third")]
    for one in started:
        until(one.is_open)
        orders.enqueue(one, one.name)

    until(succeeded(orders, started[0], "first", "second", "third"))
    assert [one.complaint() for one in started] == ["", "", ""]


def test_an_executor_of_the_same_name_is_refused(fleet: Start) -> None:
    fleet("one")
    second = fleet("one", wait=False)

    assert second.process.wait() == 1
    assert "the executor one already works on postgresql://" in second.complaint()


def test_two_projects_on_one_server_neither_see_nor_touch_each_other(fleet: Start, orders: Orders) -> None:
    first = fleet("one", project="prj_first")
    orders.enqueue(first, "a", hold="second")
    until(lambda: orders.count("begin a second") == 1)
    first.kill()
    other = fleet("one", project="prj_other")
    orders.enqueue(other, "b", queue="merges", partition="main")
    until(succeeded(orders, other, "b"))

    assert orders.ask(other, {"do": "unfinished", "executor": None}) == []
    assert orders.status(other, "a") == "none"
    assert orders.ask(other, {"do": "take over", "executor": "one"}) is None
    orders.go("a")
    again = fleet("one", project="prj_first")
    until(succeeded(orders, again, "a"))
    assert orders.count("begin a second") == 2


def test_a_turn_of_another_project_does_not_hold_up_the_same_target(fleet: Start, orders: Orders) -> None:
    first, other = fleet("one", project="prj_first"), fleet("two", project="prj_other")
    orders.enqueue(first, "a", queue="merges", partition="main", hold="second")
    until(lambda: orders.count("begin a second one") == 1)
    orders.enqueue(other, "b", queue="merges", partition="main")
    until(succeeded(orders, other, "b"))

    assert orders.count("begin b first two") == 1
    orders.go("a")
    until(succeeded(orders, first, "a"))


def test_a_second_executor_on_one_file_is_refused(executor_at: Start, tmp_path: Path) -> None:
    place = str(tmp_path / "board.db")
    first = executor_at(place, "first")
    second = executor_at(place, "second", wait=False)

    assert second.process.wait() == 1
    assert f"another `genba work` already works on {place} (process {first.process.pid})" in second.complaint()
    assert first.process.poll() is None


def _cut_off(server: sqlalchemy.Engine, name: str) -> None:
    """What a lost network does to the connection that holds the lock of an executor."""
    ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :name"
    with server.connect() as connection:
        assert connection.execute(sqlalchemy.text(ending), {"name": f"genba executor {name}"}).all() == [(True,)]
