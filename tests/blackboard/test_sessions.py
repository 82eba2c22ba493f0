"""Sessions: claiming a task for a run, dying, going on, ending."""

import pytest

from genba.blackboard.database.store import Statement
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.goals.verification import VerdictStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionEnd
from genba.domain.tasks.task import StatusChange, TaskDraft, TaskStatus
from genba.testing.conformance import a_session, a_verification, an_end
from tests.blackboard.acting import (
    HUMAN,
    ORCHESTRATOR,
    add,
    block,
    cancel,
    complete,
    everything,
    open_,
    review,
    start,
)
from tests.blackboard.conftest import Postgres

SESSIONS = Statement("SELECT run, attempt, status, outcome, reason FROM sessions ORDER BY attempt")


def sessions(board: Blackboard) -> list[tuple[object, ...]]:
    return board.store.read(lambda tx: tx.all(SESSIONS))


def test_a_run_claims_its_task(board: Blackboard) -> None:
    number = add(board)
    briefing = board.begin_session(number, a_session("run-1"))
    assert (briefing.attempt, briefing.last) == (1, None)
    assert briefing.task == board.get(number)
    assert briefing.task.status is TaskStatus.IN_PROGRESS
    last = board.events(number)[-1]
    assert (last.kind, last.actor.name, last.data["session"]) == ("status_changed", "writer", "run-1")
    assert sessions(board) == [("run-1", 1, "running", None, "")]


def test_beginning_again_for_the_same_run_changes_nothing(board: Blackboard) -> None:
    number = add(board)
    first = board.begin_session(number, a_session("run-1"))
    before = (everything(board), sessions(board))
    assert board.begin_session(number, a_session("run-1")) == first
    assert (everything(board), sessions(board)) == before


def test_a_session_whose_process_died_is_ended_and_taken_over(board: Blackboard) -> None:
    number = add(board)
    board.begin_session(number, a_session("run-1"))
    version = board.get(number).version
    briefing = board.begin_session(number, a_session("run-2", "other"))
    assert briefing.attempt == 2
    assert sessions(board) == [
        ("run-1", 1, "ended", "failed", "its process died"),
        ("run-2", 2, "running", None, ""),
    ]
    last = board.events(number)[-1]
    assert (last.kind, last.data["from"], last.data["run"]) == ("taken_over", "run-1", "run-2")
    assert board.get(number).version == version
    board.end_session(an_end("run-1"))
    assert sessions(board)[0] == ("run-1", 1, "ended", "failed", "its process died")


def test_a_run_that_is_resumed_goes_on_in_its_own_session(board: Blackboard) -> None:
    number = add(board)
    board.begin_session(number, a_session("run-1"))
    board.end_session(an_end("run-1"))
    open_(board, number, ORCHESTRATOR)
    assert board.begin_session(number, a_session("run-1")).attempt == 1
    assert sessions(board) == [("run-1", 1, "running", None, "")]
    board.begin_session(number, a_session("run-2"))
    assert board.begin_session(number, a_session("run-1")).attempt == 3
    assert [row[:3] for row in sessions(board)] == [("run-2", 2, "ended"), ("run-1", 3, "running")]


def test_a_task_that_cannot_be_started_is_not_claimed(board: Blackboard) -> None:
    waiting_for = add(board)
    numbers = [add(board, "Waiting", None, waiting_for), add(board), add(board), add(board), add(board)]
    block(board, numbers[1])
    review(board, numbers[2])
    complete(board, numbers[3])
    cancel(board, numbers[4])
    numbers.append(board.add(TaskDraft(title="Later", status=TaskStatus.BACKLOG), HUMAN).number)
    before = everything(board)
    for number in numbers:
        with pytest.raises(StateConflictError):
            board.begin_session(number, a_session(f"run-{number}"))
    with pytest.raises(NotFoundError):
        board.begin_session(99, a_session("run-1"))
    with pytest.raises(UsageError):
        board.begin_session(waiting_for, a_session(""))
    assert everything(board) == before
    assert sessions(board) == []


def test_one_run_works_on_one_task(board: Blackboard) -> None:
    first, second = add(board), add(board)
    board.begin_session(first, a_session("run-1"))
    with pytest.raises(StateConflictError, match="another task"):
        board.begin_session(second, a_session("run-1"))
    with pytest.raises(StateConflictError, match="another task"):
        board.record_verification(second, "run-1", a_verification("c1"))
    assert board.get(second).status is TaskStatus.OPEN


def test_work_that_was_sent_back_is_gone_on_with(board: Blackboard) -> None:
    number = add(board)
    start(board, number)
    rejected = a_verification("c1", VerdictStatus.REJECTED)
    board.record_verification(number, "run-1", rejected)
    assert board.begin_session(number, a_session("run-2")).last == rejected
    board.record_verification(number, "run-2", a_verification("c2", VerdictStatus.ERROR))
    assert board.begin_session(number, a_session("run-3")).last is None


def test_an_end_is_written_down_once(board: Blackboard) -> None:
    number = add(board)
    board.begin_session(number, a_session("run-1"))
    end = SessionEnd(run="run-1", outcome=Outcome.COMPLETED, reason="done \0 \udcff", tokens=2**40, cost_usd=1.25)
    board.end_session(end)
    board.end_session(an_end("run-1"))
    assert sessions(board) == [("run-1", 1, "ended", "completed", "done \ufffd ?")]
    for run in ("run-2", "", "\0"):
        with pytest.raises(NotFoundError):
            board.end_session(an_end(run))


def test_a_session_of_another_project_is_none_of_ours(postgres: Postgres) -> None:
    address = postgres.database()
    with Blackboard.open(address, "one") as one, Blackboard.open(address, "two") as two:
        one.begin_session(add(one), a_session("run-1"))
        with pytest.raises(NotFoundError):
            two.end_session(an_end("run-1"))
        with pytest.raises(StateConflictError):
            two.begin_session(add(two), a_session("run-1"))


def test_a_run_that_comes_back_in_review_goes_on_with_the_commit_that_is_reviewed(board: Blackboard) -> None:
    number = add(board)
    board.begin_session(number, a_session("run-1"))
    board.record_verification(number, "run-1", a_verification("c1"))
    board.change_status(number, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1"))
    board.record_verification(number, "run-1", a_verification("the merge of c1"))
    assert board.begin_session(number, a_session("run-1")).verified == "c1"
