"""Sessions of a fleet: claimed with their enqueue, continued part by part, ended once."""

import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, make_url, text

from genba.blackboard.database.store import Statement
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError
from genba.domain.fleet.records import (
    Cause,
    EntryStatus,
    FleetSession,
    MergeEntry,
    Purpose,
    SegmentEnd,
    Spending,
    WaitsFor,
)
from genba.domain.sessions.session import SessionStart
from genba.domain.tasks.task import StatusChange, TaskStatus
from genba.testing.conformance import a_session, a_verification, an_end
from tests import preloaded
from tests.blackboard.acting import HUMAN, ORCHESTRATOR, add, block, cancel, everything, open_
from tests.blackboard.conftest import Postgres
from tests.blackboard.fleets import begin, fail, go_on, in_review, order, to_review, wait
from tests.blackboard.test_at_once import at_once

Opening = Callable[..., Blackboard]
QUEUE = Statement("SELECT count(*) FROM waiting")


@pytest.fixture
def fleet(board: Blackboard) -> FleetBoard:
    return FleetBoard(board)


def make_queue(board: Blackboard) -> None:
    board.store.write(lambda tx: tx.do(Statement("CREATE TABLE waiting (name text)")))


def enqueue(connection: Connection) -> None:
    connection.execute(text("INSERT INTO waiting VALUES (:name)"), {"name": "a part"})


def queued(board: Blackboard) -> int:
    row = board.store.read(lambda tx: tx.one(QUEUE))
    return int(row[0]) if row else 0


def test_a_session_is_started_with_its_task_and_its_enqueue(board: Blackboard, fleet: FleetBoard) -> None:
    make_queue(board)
    task = add(board)
    session = fleet.start(
        order(task), executor="here", host="h", provider="p", plan='{"a": 1}', base_branch="main", enqueue=enqueue
    )
    assert session.status == "running"
    assert (session.part, session.executor, session.host, session.provider) == (1, "here", "h", "p")
    assert session.base_branch == "main"
    assert fleet.plan_of(session.run) == '{"a": 1}'
    assert board.get(task).status is TaskStatus.IN_PROGRESS
    assert board.events(task)[1].data["session"] == session.run
    assert board.events(task)[1].actor.name == "here"
    assert queued(board) == 1


def test_starting_the_same_run_again_changes_nothing(board: Blackboard, fleet: FleetBoard) -> None:
    make_queue(board)
    task = add(board)
    first = fleet.start(order(task), executor="here", enqueue=enqueue)
    before = everything(board)
    assert fleet.start(order(task), executor="there", enqueue=enqueue) == first
    assert everything(board) == before
    assert queued(board) == 1


def test_of_two_who_start_the_same_task_at_once_one_wins(open_board: Opening) -> None:
    boards = [FleetBoard(open_board()) for _ in range(2)]
    for _ in range(6):
        task = add(boards[0].board)
        results = at_once(
            partial(begin, boards[0], task, 1, "writer"),
            partial(begin, boards[1], task, 1, "other"),
        )
        assert sum(isinstance(result, FleetSession) for result in results) == 1
        assert sum(isinstance(result, StateConflictError) for result in results) == 1
        assert len(boards[0].sessions(task)) == 1


@pytest.mark.parametrize("at", ["before the enqueue", "after the enqueue"])
def test_a_death_between_the_row_and_its_enqueue_leaves_neither(open_board: Opening, address: str, at: str) -> None:
    board = open_board()
    make_queue(board)
    task = add(board)
    before = everything(board)
    line = """
import os, signal, sys
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.fleet.fleet_board import FleetBoard
from tests.blackboard.fleets import order
from tests.blackboard.test_parts import enqueue
def die(connection):
    if sys.argv[3] == "after the enqueue":
        enqueue(connection)
    os.kill(os.getpid(), signal.SIGKILL)
FleetBoard(Blackboard.open(sys.argv[1], "a project")).start(order(int(sys.argv[2])), executor="here", enqueue=die)
"""
    words = [sys.executable, "-c", line, address, str(task), at]
    done = preloaded.run(words, cwd=preloaded.ROOT, env=preloaded.ordinary_environment(), timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert everything(board) == before
    assert queued(board) == 0
    assert FleetBoard(board).sessions(task) == []
    assert begin(FleetBoard(board), task).status == "running"


def test_an_enqueue_that_fails_takes_the_row_with_it(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    before = everything(board)
    with pytest.raises(GenbaError):  # there is no such table
        fleet.start(order(task), executor="here", enqueue=enqueue)
    assert everything(board) == before
    assert fleet.sessions(task) == []


def test_what_cannot_be_started_is_refused_and_left_alone(board: Blackboard, fleet: FleetBoard) -> None:
    first = add(board)
    waiting = add(board, "Waiting", None, first)
    blocked, cancelled, held, running = (add(board) for _ in range(4))
    block(board, blocked)
    cancel(board, cancelled)
    fleet.hold(held, True, HUMAN)
    wait(fleet, begin(fleet, running), WaitsFor.RESUME)
    open_(board, running, ORCHESTRATOR)
    before = everything(board)
    for number in (waiting, blocked, cancelled, held):
        with pytest.raises(StateConflictError):
            begin(fleet, number)
    with pytest.raises(StateConflictError, match="works on it"):
        begin(fleet, running, 2)
    with pytest.raises(NotFoundError):
        begin(fleet, 99)
    fleet.pause_project(True, HUMAN)
    with pytest.raises(StateConflictError, match="the project is paused") as caught:
        begin(fleet, first)
    assert caught.value.hint == "genba resume"
    assert everything(board) == before
    fleet.pause_project(False, HUMAN)
    fleet.hold(held, False, HUMAN)
    assert begin(fleet, first).status == begin(fleet, held).status == "running"


def test_an_attempt_is_made_once_for_each_purpose(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    planned = fleet.start(order(task, purpose=Purpose.PLAN), executor="here")
    fail(fleet, planned)
    fail(fleet, begin(fleet, task))
    with pytest.raises(StateConflictError, match="attempt 1 was made already"):
        begin(fleet, task, 1, "other")
    assert begin(fleet, task, 2).attempt == 2
    assert [session.purpose for session in fleet.sessions(task)] == ["plan", "work", "work"]


def test_a_part_that_ended_waits_and_the_next_goes_on_from_it(board: Blackboard, fleet: FleetBoard) -> None:
    make_queue(board)
    session = begin(fleet, add(board))
    fleet.end_part(
        SegmentEnd(
            run=session.run, part=1, waits_for=WaitsFor.RESUME, reason="suspended", verified="c1", state='{"step": "x"}'
        )
    )
    waiting = fleet.session(session.run)
    assert (waiting.status, waiting.waits_for, waiting.verified) == ("waiting", WaitsFor.RESUME, "c1")
    assert fleet.state_of(session.run) == '{"step": "x"}'
    assert waiting.outcome == waiting.ended_at == ""
    following = fleet.continue_(go_on(waiting), executor="there", host="h2", enqueue=enqueue)
    assert (following.status, following.part, following.executor) == ("running", 2, "there")
    assert following.waits_for is WaitsFor.NOTHING
    assert fleet.continue_(go_on(waiting), executor="there", enqueue=enqueue) == following
    assert queued(board) == 1
    fleet.end_part(SegmentEnd(run=session.run, part=2, outcome="completed", reason="done"))
    ended = fleet.session(session.run)
    assert (ended.status, ended.outcome, ended.verified) == ("ended", "completed", "c1")
    assert fleet.state_of(session.run) == '{"step": "x"}'


def test_only_the_first_end_of_the_part_that_runs_counts(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    waiting = wait(fleet, session, WaitsFor.ANSWER)
    before = everything(board)
    fleet.end_part(SegmentEnd(run=session.run, part=1, outcome="failed"))
    assert fleet.session(session.run) == waiting
    fleet.continue_(go_on(waiting), executor="here")
    running = fleet.session(session.run)
    fleet.end_part(SegmentEnd(run=session.run, part=1, outcome="failed"))
    assert fleet.session(session.run) == running
    assert len(everything(board)) == len(before)
    with pytest.raises(NotFoundError):
        fleet.end_part(SegmentEnd(run="nobody", part=1))


def test_a_task_is_handed_over_with_its_session_or_not_at_all(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    board.record_verification(session.task, session.run, a_verification("c1"))
    change = StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1")
    end = SegmentEnd(run=session.run, part=1, waits_for=WaitsFor.REVIEW, verified="c1")
    with pytest.raises(NotFoundError):
        fleet.move_and_end(session.task, change, SegmentEnd(run="nobody", part=1, waits_for=WaitsFor.REVIEW))
    assert (board.get(session.task).status, fleet.session(session.run).status) == ("in_progress", "running")

    fleet.move_and_end(session.task, change, end)

    assert (board.get(session.task).status, fleet.session(session.run).status) == ("review", "waiting")


def test_of_two_who_continue_a_session_at_once_both_mean_the_same_part(open_board: Opening) -> None:
    one, two = FleetBoard(open_board()), FleetBoard(open_board())
    make_queue(one.board)
    for _ in range(6):
        session = wait(one, begin(one, add(one.board)), WaitsFor.RESUME)
        before = queued(one.board)
        at_once(
            partial(one.continue_, go_on(session), executor="here", enqueue=enqueue),
            partial(two.continue_, go_on(session), executor="there", enqueue=enqueue),
        )
        assert queued(one.board) == before + 1
        assert one.session(session.run).part == 2


def test_a_part_out_of_turn_is_refused(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    with pytest.raises(StateConflictError, match="is running after part 1"):
        fleet.continue_(go_on(session), executor="here")
    waiting = wait(fleet, session, WaitsFor.RESUME)
    skipped = SegmentEnd(run=session.run, part=3, outcome="failed")
    fleet.end_part(skipped)
    fleet.continue_(go_on(waiting), executor="here")
    with pytest.raises(StateConflictError):
        fleet.continue_(go_on(fleet.session(session.run)), executor="here")


@pytest.mark.parametrize("cause", [Cause.FINDINGS, Cause.CONFLICT, Cause.FAILED])
def test_work_that_comes_back_from_review_is_in_progress_again_and_counted(
    board: Blackboard, fleet: FleetBoard, cause: Cause
) -> None:
    session = in_review(board, fleet)
    again = fleet.continue_(go_on(session, cause), executor="here")
    assert board.get(session.task).status is TaskStatus.IN_PROGRESS
    assert (again.rounds, again.reviews) == ((0, 1) if cause is Cause.FINDINGS else (1, 0))
    assert to_review(board, fleet, again, "c2").verified == "c2"


def test_what_has_landed_stays_in_review_even_in_a_paused_project(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet, reviewed=False)
    fleet.pause_project(True, HUMAN)
    with pytest.raises(StateConflictError, match="paused"):
        fleet.continue_(go_on(session, Cause.FAILED), executor="here")
    assert fleet.continue_(go_on(session, Cause.LANDED), executor="here").status == "running"
    assert board.get(session.task).status is TaskStatus.REVIEW


def test_a_blocked_task_does_not_go_on_and_an_open_one_does(board: Blackboard, fleet: FleetBoard) -> None:
    session = wait(fleet, begin(fleet, add(board)), WaitsFor.ANSWER)
    block(board, session.task)
    with pytest.raises(StateConflictError, match="it is blocked: which colour") as caught:
        fleet.continue_(go_on(session, Cause.ANSWER), executor="here")
    assert caught.value.hint == f"genba decisions show {session.task}"
    open_(board, session.task)
    fleet.continue_(go_on(session, Cause.ANSWER), executor="here")
    assert board.get(session.task).status is TaskStatus.IN_PROGRESS


def test_a_part_tells_where_it_works_and_keeps_what_the_orchestrator_wrote(
    board: Blackboard, fleet: FleetBoard
) -> None:
    session = begin(fleet, add(board))
    start = SessionStart(
        run=session.run, agent="writer", branch="genba/1", base="c0", workdir="/w", host="h3", process=7
    )
    for _ in range(2):
        briefing = board.begin_session(session.task, start)
        assert (briefing.attempt, briefing.task.status) == (1, TaskStatus.IN_PROGRESS)
    now = fleet.session(session.run)
    assert (now.branch, now.base, now.host) == ("genba/1", "c0", "h3")
    assert (now.part, now.purpose, now.executor, now.base_branch) == (1, Purpose.WORK, "here", "main")
    waiting = to_review(board, fleet, now)
    with pytest.raises(StateConflictError, match="a session of the fleet, and it is waiting"):
        board.begin_session(session.task, start)
    fleet.continue_(go_on(waiting, Cause.LANDED), executor="here")
    assert board.begin_session(session.task, start).verified == "c1"


def test_a_plain_run_takes_over_from_a_session_that_waits(board: Blackboard, fleet: FleetBoard) -> None:
    session = wait(fleet, begin(fleet, add(board)), WaitsFor.RESUME)
    board.begin_session(session.task, a_session("by-hand"))
    ended = fleet.session(session.run)
    assert (ended.status, ended.outcome, ended.reason) == ("ended", "aborted", "another run took over")


def test_another_executor_takes_a_session_over(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    for _ in range(2):
        assert fleet.take_over(session.run, "there", "h2").executor == "there"
    lines = [event for event in board.events(session.task) if event.kind == "taken_over"]
    assert [(event.data["from"], event.data["to"]) for event in lines] == [("here", "there")]


def test_progress_is_seen_and_spending_counted_once(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    for _ in range(2):
        fleet.progress(
            session.run,
            phase="iterating",
            step="write",
            iterations=1,
            tokens=100,
            cost_usd=0.5,
            changed=("a.py", "b\udcff.py"),
            spending=Spending(run=session.run, iteration=1, tokens=100, cost_usd=0.5),
        )
    fleet.progress(session.run)
    seen = fleet.session(session.run)
    assert (seen.phase, seen.step, seen.iterations, seen.tokens, seen.cost_usd) == ("iterating", "write", 1, 100, 0.5)
    assert seen.changed == ("a.py", "b?.py")
    fleet.end_part(SegmentEnd(run=session.run, part=1, outcome="failed", tokens=130, cost_usd=0.75))
    ledger = fleet.ledger()
    assert ledger.project == ledger.today == ledger.by_agent_today["writer"] == ledger.by_task[session.task]
    assert (ledger.project.tokens, ledger.project.cost_usd) == (130, 0.75)
    assert fleet.ledger("2001-01-01").by_agent_today == {}


def test_a_session_of_the_fleet_ends_with_its_part_alone(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    board.end_session(an_end(session.run))
    assert fleet.session(session.run).status == "running"
    waiting = wait(fleet, session, WaitsFor.ANSWER)
    for _ in range(2):
        fleet.end_part(SegmentEnd(run=session.run, part=1, outcome="aborted", reason="its question was rejected"))
    given_up = fleet.session(session.run)
    assert (given_up.status, given_up.outcome, given_up.reason) == ("ended", "aborted", "its question was rejected")
    assert given_up.tokens == waiting.tokens


def test_a_connection_that_was_lost_is_made_again_for_a_start(postgres: Postgres) -> None:
    address = postgres.database()
    with Blackboard.open(address, "x") as board:
        fleet = FleetBoard(board)
        for attempt in (1, 2):
            task = add(board)
            name = make_url(address).database
            postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            assert begin(fleet, task, attempt).status == "running"


def test_a_start_on_a_locked_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "board.db")
    with Blackboard.open(path, "x", busy_seconds=0.05) as board:
        task = add(board)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateConflictError, match="locked"):
            begin(FleetBoard(board), task)
        other.execute("ROLLBACK")
        other.close()
        assert begin(FleetBoard(board), task).status == "running"


def test_a_cancelled_task_leaves_nothing_that_waits(board: Blackboard, fleet: FleetBoard) -> None:
    session = wait(fleet, begin(fleet, add(board)), WaitsFor.RESUME)
    board.change_status(session.task, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    ended = fleet.session(session.run)
    assert (ended.status, ended.outcome, ended.reason) == ("ended", "aborted", "its task is cancelled")


@pytest.mark.parametrize(("status", "outcome"), [(TaskStatus.DONE, "completed"), (TaskStatus.CANCELLED, "aborted")])
def test_a_part_that_ends_after_its_task_has_ended_waits_for_nothing(
    board: Blackboard, fleet: FleetBoard, status: TaskStatus, outcome: str
) -> None:
    landed = in_review(board, fleet, reviewed=False)
    closing = fleet.continue_(go_on(landed, Cause.LANDED), executor="here")
    actor = ORCHESTRATOR if status is TaskStatus.DONE else HUMAN
    board.change_status(landed.task, StatusChange(to=status, actor=actor, commit="c1", finalized="merged"))

    ended = wait(fleet, closing, WaitsFor.MERGE)

    assert (ended.status, ended.waits_for, ended.outcome) == ("ended", WaitsFor.NOTHING, outcome)
    assert ended.reason == f"its task is {status}"


def test_a_session_that_is_given_up_blocks_its_task_at_once_and_only_if_it_still_waits(
    board: Blackboard, fleet: FleetBoard
) -> None:
    session = in_review(board, fleet)
    fleet.give_up(session.run, session.part + 1, "too late", ORCHESTRATOR)
    assert fleet.session(session.run).status == "waiting"
    fleet.give_up(session.run, session.part, "a person rejected it", ORCHESTRATOR)
    ended, task = fleet.session(session.run), board.get(session.task)
    assert (ended.status, ended.outcome, ended.reason) == ("ended", "aborted", "a person rejected it")
    assert task.status is TaskStatus.BLOCKED
    assert task.blocker is not None
    assert task.blocker.reason == "a person rejected it"
    before = everything(board)
    fleet.give_up(session.run, session.part, "again", ORCHESTRATOR)
    assert everything(board) == before


def test_a_session_is_given_up_whole_or_not_at_all(board: Blackboard, fleet: FleetBoard) -> None:
    parent = add(board)
    session = begin(fleet, add(board, "Part", parent))
    to_review(board, fleet, session)
    block(board, parent)
    before = everything(board)
    with pytest.raises(StateConflictError, match="which is blocked"):
        fleet.give_up(session.run, session.part, "a person rejected it", ORCHESTRATOR)
    assert everything(board) == before


def test_work_that_leaves_the_merge_queue_and_is_looked_at_again_counts_as_a_round(
    board: Blackboard, fleet: FleetBoard
) -> None:
    session = in_review(board, fleet)
    again = fleet.continue_(go_on(session), executor="here")
    assert (again.rounds, board.get(session.task).status) == (1, TaskStatus.REVIEW)
    suspended = wait(fleet, begin(fleet, add(board)), WaitsFor.RESUME)
    assert fleet.continue_(go_on(suspended), executor="here").rounds == 0


def test_a_task_in_review_without_a_merge_entry_is_reopened(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    entry = fleet.enqueue_merge(MergeEntry(task=session.task, run=session.run, branch="b", commit="c1", target="main"))
    with pytest.raises(StateConflictError, match="works on it"):
        fleet.reopen(session.task, "nobody does", ORCHESTRATOR)
    again = fleet.continue_(go_on(session), executor="here")
    fleet.settle(entry.id, EntryStatus.CONFLICT)
    fleet.end_part(SegmentEnd(run=session.run, part=again.part, outcome="failed", reason="its branch is gone"))
    assert [found.status for found in fleet.field().entries] == [EntryStatus.CONFLICT]
    fleet.reopen(session.task, "its branch is gone", ORCHESTRATOR)
    assert board.get(session.task).status is TaskStatus.OPEN
    assert [failed.run for failed in fleet.field().failures[session.task]] == [session.run]
