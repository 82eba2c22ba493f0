"""The field: everything to decide on, in few statements, as it is now; and who works in it."""

import sqlite3
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import event

from genba.blackboard.database.store import Statement
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import UsageError
from genba.domain.fleet.records import Executor, Purpose, WaitsFor
from genba.domain.tasks.task import Priority, StatusChange, TaskDraft, TaskEdit, TaskStatus
from tests.blackboard.acting import HUMAN, ORCHESTRATOR, add, block, cancel, complete, open_
from tests.blackboard.conftest import Postgres
from tests.blackboard.fleets import begin, fail, order, to_review, wait

_FILL = """
INSERT INTO tasks (project_id, number, title, status, created_at, updated_at)
SELECT :project, n, 'One of many', CASE WHEN n % 4 = 0 THEN 'open' ELSE 'done' END, :at, :at FROM $many
"""
_MANY = "(WITH RECURSIVE many(n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM many WHERE n < 10999) SELECT n FROM many)"
FILL = Statement(_FILL.replace("$many", _MANY), _FILL.replace("$many", "generate_series(1000, 10999) AS many(n)"))


@pytest.fixture
def fleet(board: Blackboard) -> FleetBoard:
    return FleetBoard(board)


def fill(board: Blackboard) -> None:
    """Ten thousand tasks, a quarter of them open."""
    board.store.write(lambda tx: tx.do(FILL, project=tx.project, at="2026-01-01T00:00:00.000000Z"))


def test_the_tasks_are_those_that_have_not_ended_and_those_that_they_wait_for(
    board: Blackboard, fleet: FleetBoard
) -> None:
    first = add(board)
    second = add(board, "Second", None, first)
    parent = add(board)
    part = add(board, "Part", parent)
    forgotten, later = add(board), add(board)
    for number in (first, part, forgotten):
        complete(board, number)
    urgent = board.add(TaskDraft(title="Urgent", priority=Priority.CRITICAL), HUMAN).number
    block(board, later)
    field = fleet.field()
    assert set(field.tasks) == {first, second, parent, part, later, urgent}
    assert field.ready == (urgent, second, parent)
    assert field.tasks[second] == board.get(second)
    assert field.ready == tuple(task.number for task in board.ready())


def test_every_look_sees_what_has_changed_since(board: Blackboard, fleet: FleetBoard) -> None:
    numbers = [add(board) for _ in range(5)]
    assert set(fleet.field().tasks) == set(numbers)
    board.edit(numbers[0], TaskEdit(title="New", scope=("src/**",), budget_usd=2.5, decompose=True), HUMAN)
    child = add(board, "Child", numbers[1])
    board.depend(numbers[2], numbers[3], HUMAN)
    cancel(board, numbers[4])
    fresh = FleetBoard(board).field()
    assert msgspec.structs.replace(fleet.field(), now="") == msgspec.structs.replace(fresh, now="")
    task = fresh.tasks[numbers[0]]
    assert (task.title, task.scope, task.budget_usd, task.decompose) == ("New", ("src/**",), 2.5, True)
    assert fresh.tasks[numbers[1]].children == (child,)
    assert fresh.ready == (numbers[0], numbers[3], child)
    board.edit(numbers[0], TaskEdit(budget_usd=0, scope=()), HUMAN)
    task = fleet.field().tasks[numbers[0]]
    assert (task.budget_usd, task.scope) == (None, ())


def test_a_field_of_ten_thousand_tasks_costs_as_many_statements_as_one_of_ten(tmp_path: Path) -> None:
    with Blackboard.open(str(tmp_path / "board.db"), "x") as board:
        fleet = FleetBoard(board)
        for _ in range(10):
            begin(fleet, add(board))
        statements: list[str] = []
        board.store.engine.dispose()

        @event.listens_for(board.store.engine, "connect")
        def _listen(connection: sqlite3.Connection, _record: object) -> None:
            connection.set_trace_callback(statements.append)

        def look() -> int:
            statements.clear()
            fleet.field()
            return sum("SELECT" in statement for statement in statements)

        few = look()
        fill(board)
        assert look() <= few + 1  # what is kept is compared, and turns out to be too little
        board.edit(1000, TaskEdit(title="Changed"), HUMAN)
        assert look() <= few + 1
        assert len(fleet.field().tasks) == 2510
        assert few <= 16


def test_a_field_of_ten_thousand_tasks_is_right_on_both_databases(board: Blackboard, fleet: FleetBoard) -> None:
    fill(board)
    field = fleet.field()
    assert len(field.tasks) == len(field.ready) == 2500
    board.change_status(1000, StatusChange(to=TaskStatus.IN_PROGRESS, actor=ORCHESTRATOR))
    assert 1000 not in fleet.field().ready


def test_sessions_are_the_newest_of_each_purpose_and_those_under_way(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    fail(fleet, fleet.start(order(task, purpose=Purpose.PLAN), executor="here"))
    fail(fleet, begin(fleet, task, 1))
    fail(fleet, begin(fleet, task, 2))
    running = begin(fleet, add(board))
    waiting = wait(fleet, begin(fleet, add(board)), WaitsFor.RESUME)
    field = fleet.field()
    assert {(session.task, session.purpose, session.attempt) for session in field.sessions} == {
        (task, "plan", 1),
        (task, "work", 2),
        (running.task, "work", 1),
        (waiting.task, "work", 1),
    }
    assert [(session.purpose, session.attempt) for session in field.failures[task]] == [
        ("plan", 1),
        ("work", 1),
        ("work", 2),
    ]
    assert set(field.failures) == {task}
    cancel(board, running.task)
    cancel(board, waiting.task)
    field = fleet.field()
    assert [session.task for session in field.sessions if session.status != "ended"] == [running.task]
    assert field.tasks[running.task].status is TaskStatus.CANCELLED  # a person must still stop it


def test_a_person_who_opens_a_task_forgives_what_failed_before(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    fail(fleet, begin(fleet, task))
    block(board, task)
    open_(board, task, ORCHESTRATOR)
    assert len(fleet.field().failures[task]) == 1
    block(board, task)
    open_(board, task, HUMAN)
    assert fleet.field().failures == {}
    assert [session.attempt for session in fleet.field().sessions] == [1]


def test_what_people_write_to_the_fleet_is_seen_and_reported_once(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    for _ in range(2):
        fleet.pause_project(True, HUMAN)
        fleet.stop_all(True, HUMAN)
        fleet.hold(task, True, HUMAN)
    field = fleet.field()
    assert (field.paused, field.stopping, field.held) == (True, True, frozenset({task}))
    assert board.get(task).version == 1
    for _ in range(2):
        fleet.pause_project(False, HUMAN)
        fleet.stop_all(False, HUMAN)
        fleet.hold(task, False, HUMAN)
    field = fleet.field()
    assert (field.paused, field.stopping, field.held) == (False, False, frozenset())
    kinds = board.store.read(
        lambda tx: tx.all(Statement("SELECT kind FROM events WHERE kind <> 'created' ORDER BY id"))
    )
    assert [kind for (kind,) in kinds] == [
        "project_paused",
        "stopping",
        "held",
        "project_resumed",
        "going_on",
        "released",
    ]


def test_a_provider_is_paused_until_the_later_time(fleet: FleetBoard) -> None:
    fleet.pause_provider("anthropic", "2999-01-01T00:00:00+00:00", "429")
    fleet.pause_provider("anthropic", "2998-01-01T00:00:00Z", "earlier")
    fleet.pause_provider("openai", "2001-01-01T00:00:00Z", "long over")
    (pause,) = fleet.pauses()
    assert (pause.provider, pause.until, pause.reason) == ("anthropic", "2999-01-01T00:00:00.000000Z", "429")
    assert fleet.field().pauses == (pause,)
    with pytest.raises(UsageError, match="is no time"):
        fleet.pause_provider("anthropic", "soon")


def test_an_executor_comes_beats_leaves_and_comes_back(fleet: FleetBoard) -> None:
    me = Executor(id="here", host="h", process=7, workers=4)
    first = fleet.register(me)
    assert (first.status, first.workers) == ("live", 4)
    fleet.beat("here")
    (beating,) = fleet.executors()
    assert beating.heartbeat_at > first.heartbeat_at
    for _ in range(2):
        fleet.leave("here", "suspended")
    assert fleet.field().executors[0].status == "suspended"
    assert fleet.register(me).status == "live"
    with pytest.raises(UsageError):
        fleet.leave("here", "asleep")


def test_a_note_is_handed_over_once(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    for _ in range(2):
        fleet.hand_over(session.task, session.run, "tried a, b fails")
    fleet.hand_over(session.task, "another run", "tried c")
    assert fleet.handovers(session.task) == ["tried a, b fails", "tried c"]


def test_two_projects_do_not_see_each_other(postgres: Postgres) -> None:
    address = postgres.database()
    with Blackboard.open(address, "one") as first, Blackboard.open(address, "two") as second:
        one, two = FleetBoard(first), FleetBoard(second)
        begin(one, add(first))
        one.register(Executor(id="here", host="h", process=1, workers=1))
        one.pause_project(True, HUMAN)
        field = two.field()
        assert (field.tasks, field.sessions, field.executors, field.paused) == ({}, (), (), False)


def test_the_authors_of_a_task_in_review_are_all_who_ever_worked_on_it(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    fail(fleet, begin(fleet, task, agent="first"))
    block(board, task)
    open_(board, task)
    session = begin(fleet, task, 2, agent="second")
    assert fleet.field().authors == {}
    to_review(board, fleet, session)
    assert fleet.field().failures == {}, "a person forgave what failed"
    assert fleet.field().authors == {task: frozenset({"first", "second"})}
