"""What agents tell each other, and the pulse that says whether anything was written."""

import threading
from collections.abc import Callable

import pytest

from genba.blackboard.board import Blackboard
from genba.blackboard.fleet import FleetBoard
from genba.blackboard.workflow import WorkflowBoard
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.fleet import FleetSession, Purpose
from genba.domain.tasks import TaskDraft
from genba.domain.workflow import ErrorCode, Seat, WorkflowError
from tests.blackboard.acting import HUMAN, add, cancel
from tests.blackboard.seating import at_work, guest


@pytest.fixture
def workflow(board: Blackboard) -> WorkflowBoard:
    return WorkflowBoard(board)


def family(board: Blackboard) -> tuple[tuple[FleetSession, Seat], tuple[FleetSession, Seat]]:
    manager = at_work(board, Purpose.MANAGE)
    part = board.add(TaskDraft(title="Part", parent=manager[0].task), HUMAN).number
    return manager, at_work(board, task=part)


def test_a_message_goes_to_a_task_and_is_read_once(board: Blackboard, workflow: WorkflowBoard) -> None:
    (managing, manager), (working, worker) = family(board)
    for _ in range(2):
        workflow.send_message(manager.id, working.task, "use blue")
    workflow.send_message(worker.id, managing.task, "which blue?", "broadcast")
    assert workflow.snapshot(worker.id).messages == 1
    for _ in range(2):
        (shown,) = workflow.messages(worker.id, mark_read=False)
        assert (shown.sender, shown.type, shown.content, shown.task) == (
            "writer",
            "instruction",
            "use blue",
            managing.task,
        )
    assert workflow.messages(worker.id) == (shown,)
    assert workflow.messages(worker.id) == ()
    assert workflow.snapshot(worker.id).messages == 0
    assert [message.content for message in workflow.messages(manager.id)] == ["which blue?"]
    assert sum(event.kind == "messaged" for event in board.events(working.task)) == 1


def test_notes_for_successors_are_no_messages(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, seat = at_work(board)
    FleetBoard(board).hand_over(session.task, session.run, "it was hard")
    assert workflow.messages(seat.id) == ()
    assert workflow.snapshot(seat.id).messages == 0


def test_what_cannot_be_sent_is_refused(board: Blackboard, workflow: WorkflowBoard) -> None:
    _, seat = at_work(board)
    ended, other = add(board), add(board)
    cancel(board, ended)
    with pytest.raises(StateConflictError, match="nobody would read it"):
        workflow.send_message(seat.id, ended, "hello")
    for sender, to in ((seat.id, 999), ("no-seat", other), (guest(board).id, other)):
        with pytest.raises(NotFoundError):
            workflow.send_message(sender, to, "hello")
    for content, kind in (("", "instruction"), ("a\0b", "instruction"), ("hello", "handover")):
        with pytest.raises(UsageError):
            workflow.send_message(seat.id, other, content, kind)
    assert workflow.messages(guest(board).id) == ()


def test_whoever_floods_a_task_is_told_so(board: Blackboard, workflow: WorkflowBoard) -> None:
    _, seat = at_work(board)
    other = add(board)
    for at in range(200):
        workflow.send_message(seat.id, other, f"message {at}")
    with pytest.raises(WorkflowError) as caught:
        workflow.send_message(seat.id, other, "one more")
    assert caught.value.code is ErrorCode.LIMIT


def test_the_pulse_beats_when_anybody_writes_and_only_then(
    board: Blackboard, open_board: Callable[..., Blackboard]
) -> None:
    pulse = WorkflowBoard(board).pulse()
    try:
        before = pulse.now()
        assert [pulse.now() for _ in range(3)] == [before] * 3
        board.find()
        assert pulse.now() == before
        beats = [before]
        for writer in (board, open_board(), board):
            add(writer)
            beats.append(pulse.now())
        assert len(set(beats)) == 4
    finally:
        pulse.close()
    again = pulse.now()
    assert again not in beats or board.store.on_postgres
    pulse.close()


def test_many_threads_feel_the_same_pulse(board: Blackboard) -> None:
    pulse = WorkflowBoard(board).pulse()
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(pulse.now())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pulse.close()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_every_event_raises_the_number_of_changes(board: Blackboard) -> None:
    workflow = WorkflowBoard(board)
    seen = [workflow.changes()]
    for _ in range(70):
        add(board)
        seen.append(workflow.changes())
    assert seen == sorted(set(seen))
