"""What agents tell each other, and the pulse that says whether anything was written."""

import threading
from collections.abc import Callable

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.scheduler.session import let_go
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.fleet.records import FleetSession, Purpose, SegmentEnd, SegmentOrder
from genba.domain.tasks.task import TaskDraft
from genba.domain.workflow.actions import AgentConnection, BroadcastScope, ErrorCode, WorkflowError
from tests.blackboard.acting import HUMAN, add, cancel
from tests.blackboard.connecting import at_work, external_agent, sit_down


@pytest.fixture
def workflow(board: Blackboard) -> WorkflowBoard:
    return WorkflowBoard(board)


def family(board: Blackboard) -> tuple[tuple[FleetSession, AgentConnection], tuple[FleetSession, AgentConnection]]:
    manager = at_work(board, Purpose.MANAGE)
    part = board.add(TaskDraft(title="Part", parent=manager[0].task), HUMAN).number
    return manager, at_work(board, task=part)


def test_a_message_goes_to_a_task_and_is_read_once(board: Blackboard, workflow: WorkflowBoard) -> None:
    (managing, manager), (working, worker) = family(board)
    for _ in range(2):
        workflow.send_message(manager.id, working.task, "use blue")
    workflow.send_message(worker.id, managing.task, "which blue?")
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
    assert [one.status for one in workflow.open_messages(working.run)] == ["read"]
    assert [message.content for message in workflow.messages(manager.id)] == ["which blue?"]
    assert sum(event.kind == "messaged" for event in board.events(working.task)) == 1


def test_the_next_session_of_a_task_is_given_what_the_last_one_read(board: Blackboard, workflow: WorkflowBoard) -> None:
    (_, manager), (working, worker) = family(board)
    workflow.send_message(manager.id, working.task, "use blue")
    assert len(workflow.messages(worker.id)) == 1
    let_go(FleetBoard(board), working.task, working.run, "it died")
    FleetBoard(board).end_part(SegmentEnd(run=working.run, part=1, outcome="failed"))

    order = SegmentOrder(run="the next one", task=working.task, agent="writer", attempt=2)
    connection = sit_down(board, FleetBoard(board).start(order, executor="here"))

    assert [one.content for one in workflow.messages(connection.id)] == ["use blue"]
    assert workflow.messages(connection.id) == ()


def test_a_message_is_resolved_by_an_answer_or_by_the_end_of_its_task(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    (managing, manager), (working, worker) = family(board)
    for content in ("use blue", "be quick"):
        workflow.send_message(manager.id, working.task, content)
    workflow.deliver(working.run, workflow.open_messages(working.run)[0].id)

    workflow.send_message(worker.id, managing.task, "there is no blue")

    (left,) = workflow.open_messages(working.run)
    assert (left.content, left.status) == ("be quick", "pending")
    cancel(board, working.task)
    assert workflow.open_messages(working.run) == ()


def test_notes_for_successors_are_no_messages(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, connection = at_work(board)
    FleetBoard(board).hand_over(session.task, session.run, "it was hard")
    assert workflow.messages(connection.id) == ()
    assert workflow.snapshot(connection.id).messages == 0


def test_what_cannot_be_sent_is_refused(board: Blackboard, workflow: WorkflowBoard) -> None:
    _, connection = at_work(board)
    ended, other = add(board), add(board)
    cancel(board, ended)
    with pytest.raises(StateConflictError, match="no agent would read it"):
        workflow.send_message(connection.id, ended, "hello")
    for sender, to in ((connection.id, 999), ("no-connection", other), (external_agent(board).id, other)):
        with pytest.raises(NotFoundError):
            workflow.send_message(sender, to, "hello")
    for content in ("", "a\0b"):
        with pytest.raises(UsageError):
            workflow.send_message(connection.id, other, content)
        with pytest.raises(UsageError):
            workflow.broadcast(connection.id, content, BroadcastScope.PROJECT)
    assert workflow.messages(external_agent(board).id) == ()


def test_an_agent_that_floods_a_task_is_warned(board: Blackboard, workflow: WorkflowBoard) -> None:
    _, connection = at_work(board)
    other = add(board)
    for at in range(200):
        workflow.send_message(connection.id, other, f"message {at}")
    with pytest.raises(WorkflowError) as caught:
        workflow.send_message(connection.id, other, "one more")
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


def test_a_broadcast_reaches_sessions_at_work_and_tasks_that_are_kept_for_an_agent(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    (managing, manager), (working, worker) = family(board)
    elsewhere, other = at_work(board)
    workflow.register("visitor", passkey_hash="p")
    kept = [board.add(TaskDraft(title=name, assignee="visitor"), HUMAN).number for name in ("One", "Two")]
    add(board)

    assert workflow.broadcast(manager.id, "stop", BroadcastScope.TREE) == (working.task,)
    everybody = (working.task, elsewhere.task, kept[0])
    for _ in range(2):
        assert workflow.broadcast(worker.id, "go on", BroadcastScope.PROJECT) == (managing.task, *everybody[1:])

    for connection, expected in ((manager, ["go on"]), (worker, ["stop"]), (other, ["go on"])):
        assert [one.content for one in workflow.messages(connection.id)] == expected
        assert workflow.messages(connection.id) == ()
