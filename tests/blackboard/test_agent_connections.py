"""Credentials and connections: once, for one run, and by one instance at a time."""

import threading
from collections.abc import Callable

import msgspec
import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import Purpose, SegmentEnd, WaitsFor
from genba.domain.workflow.actions import AgentConnection, ExitReason, Hierarchy, Phase
from genba.testing.conformance import a_verification
from tests.blackboard.connecting import LATER, LONG_AGO, begin, connection_for, external_agent, sit_down
from tests.blackboard.fleets import go_on


@pytest.fixture
def workflow(board: Blackboard) -> WorkflowBoard:
    return WorkflowBoard(board)


def test_a_credential_is_good_for_one_connection_of_its_run(board: Blackboard, workflow: WorkflowBoard) -> None:
    session = begin(board)
    workflow.issue("c1", session.run, "hash", LATER)
    found = workflow.credential("c1")
    assert found is not None
    assert (found.run, found.agent, found.task, found.secret_hash) == (session.run, "writer", session.task, "hash")
    assert found.is_good(LONG_AGO)

    wanted = connection_for(board, session)
    connection = workflow.open_connection(wanted, "t", LATER, "c1")
    assert (connection.run, connection.task, connection.agent, connection.status) == (
        session.run,
        session.task,
        "writer",
        "active",
    )
    assert workflow.open_connection(wanted, "t", LATER, "c1") == connection
    used = workflow.credential("c1")
    assert used is not None
    assert not used.is_good(LONG_AGO)
    with pytest.raises(StateConflictError, match="good no more"):
        workflow.open_connection(connection_for(board, session), "t2", LATER, "c1")
    known = workflow.connection(connection.id)
    assert known is not None
    assert (known.token_hash, known.is_good(LONG_AGO)) == ("t", True)


def test_of_two_who_come_with_one_credential_one_is_connected(
    board: Blackboard, open_board: Callable[..., Blackboard]
) -> None:
    session = begin(board)
    WorkflowBoard(board).issue("c1", session.run, "hash", LATER)
    won: list[AgentConnection] = []
    lost: list[StateConflictError] = []
    line = threading.Barrier(4)
    others = [open_board() for _ in range(4)]

    def come(other: Blackboard) -> None:
        connection = connection_for(other, session)
        line.wait()
        try:
            won.append(WorkflowBoard(other).open_connection(connection, "t", LATER, "c1"))
        except StateConflictError as error:
            lost.append(error)

    threads = [threading.Thread(target=come, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 3)


def test_a_credential_that_is_expired_revoked_or_of_another_run_connections_no_one(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, other = begin(board), begin(board, agent="painter")
    workflow.issue("old", session.run, "hash", LONG_AGO)
    workflow.issue("gone", other.run, "hash", LATER)
    workflow.issue("new", other.run, "hash", LATER)
    for connection, credential in (
        (connection_for(board, session), "old"),
        (connection_for(board, session), ""),
        (connection_for(board, session), "nothing"),
        (connection_for(board, session), "new"),
        (connection_for(board, other), "gone"),
    ):
        with pytest.raises(StateConflictError):
            workflow.open_connection(connection, "t", LATER, credential)
        assert workflow.connection(connection.id) is None
    assert workflow.open_connection(connection_for(board, other), "t", LATER, "new").agent == "painter"
    assert workflow.credential("nothing") is None
    with pytest.raises(NotFoundError):
        workflow.issue("x", "no-such-run", "h", LATER)


def test_a_run_has_one_connection_and_the_newer_one_counts(board: Blackboard, workflow: WorkflowBoard) -> None:
    session = begin(board)
    first = sit_down(board, session)
    second = sit_down(board, session)
    known, newer = workflow.connection(first.id), workflow.connection(second.id)
    assert known is not None
    assert newer is not None
    assert (known.connection.status, newer.connection.status) == ("closed", "active")
    assert workflow.snapshot(first.id).ending is ExitReason.TAKEN


def test_no_one_is_connected_for_a_run_that_has_ended(board: Blackboard, workflow: WorkflowBoard) -> None:
    session = begin(board)
    workflow.issue("c1", session.run, "hash", LATER)
    FleetBoard(board).end_part(SegmentEnd(run=session.run, part=1, outcome="failed"))
    with pytest.raises(StateConflictError, match="has ended"):
        workflow.open_connection(connection_for(board, session), "t", LATER, "c1")


def test_what_an_instance_is_follows_from_its_session_and_what_an_external_agent_is_from_its_agent(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    managing = sit_down(board, begin(board, Purpose.MANAGE))
    assert managing.hierarchy is Hierarchy.MANAGER
    assert external_agent(board, "boss", Hierarchy.MANAGER).hierarchy is Hierarchy.MANAGER
    assert external_agent(board, "hand").hierarchy is Hierarchy.WORKER


def test_an_external_agent_is_bound_to_a_session_and_leaves_it_again(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    connection, session = external_agent(board), begin(board, agent="external_agent")
    bound = workflow.bind(connection.id, session.run, session.task)
    assert (bound.run, bound.task) == (session.run, session.task)
    assert workflow.bind(connection.id, session.run, session.task) == bound

    other = external_agent(board)
    workflow.bind(other.id, session.run, session.task)
    before = workflow.connection(connection.id)
    assert before is not None
    assert before.connection.status == "closed"
    with pytest.raises(StateConflictError):
        workflow.bind(connection.id, session.run, session.task)
    with pytest.raises(StateConflictError, match="works on"):
        workflow.bind(other.id, session.run, session.task + 1)

    workflow.stop_instance(other.id, ExitReason.NO_PROGRESS)
    free = workflow.unbind(other.id)
    assert (free.run, free.task, free.status) == ("", None, "active")
    assert workflow.unbind(other.id) == free
    assert workflow.snapshot(other.id).ending is None


def test_one_that_leaves_closes_every_connection_of_the_run_and_takes_its_credential_back(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session = begin(board)
    connection = sit_down(board, session)
    workflow.issue("next", session.run, "hash", LATER)
    for _ in range(2):
        workflow.leave(session.run, "its process ended")
    known, credential = workflow.connection(connection.id), workflow.credential("next")
    assert known is not None
    assert credential is not None
    assert (known.connection.status, known.connection.closed) == ("closed", "its process ended")
    assert credential.revoked_at
    assert workflow.snapshot(connection.id).ending is ExitReason.REVOKED


@pytest.mark.parametrize("end", [{"outcome": "failed"}, {"waits_for": WaitsFor.RESUME}], ids=["ended", "waiting"])
def test_no_instance_outlives_its_part_however_that_ended(
    board: Blackboard, workflow: WorkflowBoard, end: dict[str, str]
) -> None:
    session = begin(board)
    connection = sit_down(board, session)
    workflow.issue("next", session.run, "hash", LATER)

    FleetBoard(board).end_part(SegmentEnd(run=session.run, part=1, **end))  # type: ignore[arg-type]

    known, credential = workflow.connection(connection.id), workflow.credential("next")
    assert known is not None
    assert credential is not None
    assert (known.connection.status, known.connection.closed) == ("closed", "its part is over")
    assert credential.revoked_at


def test_an_external_agent_keeps_its_connection_when_its_part_is_over(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    connection, session = external_agent(board), begin(board, agent="external_agent")
    workflow.bind(connection.id, session.run, session.task)

    FleetBoard(board).end_part(SegmentEnd(run=session.run, part=1, outcome="failed"))

    known = workflow.connection(connection.id)
    assert known is not None
    assert known.connection.status == "active"


def test_heartbeats_are_kept_and_silent_agents_are_found(board: Blackboard, workflow: WorkflowBoard) -> None:
    connection = external_agent(board)
    assert workflow.expired() == ()
    workflow.beat({connection.id: (LONG_AGO, 7, "wait"), "nobody": (LATER, 1, "")})
    known = workflow.connection(connection.id)
    assert known is not None
    assert (known.calls, known.last_action, known.connection.lease_until) == (7, "wait", LONG_AGO)
    assert [one.id for one in workflow.expired()] == [connection.id]
    workflow.close_connection(connection.id, "it was silent")
    workflow.close_connection(connection.id, "again")
    assert workflow.expired() == ()
    closed = workflow.connection(connection.id)
    assert closed is not None
    assert closed.connection.closed == "it was silent"


def test_a_connection_of_another_project_is_not_there(board: Blackboard, open_board: Callable[..., Blackboard]) -> None:
    if not board.store.on_postgres:
        pytest.skip("an SQLite file belongs to one project")
    session = begin(board)
    connection = sit_down(board, session)
    WorkflowBoard(board).issue("mine", session.run, "h", LATER)
    other = WorkflowBoard(open_board("another project"))
    assert other.connection(connection.id) is None
    assert other.credential("mine") is None
    with pytest.raises(NotFoundError):
        other.snapshot(connection.id)
    with pytest.raises(NotFoundError):
        other.standing(session.run)


class TestStanding:
    def test_no_process_was_there(self, board: Blackboard, workflow: WorkflowBoard) -> None:
        session = begin(board)
        workflow.issue("c", session.run, "h", LATER)
        assert not workflow.standing(session.run).connected

    def test_an_agent_was_there_whether_or_not_it_has_left(self, board: Blackboard, workflow: WorkflowBoard) -> None:
        session = begin(board)
        connection = sit_down(board, session)
        workflow.beat({connection.id: (LATER, 3, "execute_subtask")})
        for _ in range(2):
            standing = workflow.standing(session.run)
            assert (standing.connected, standing.calls, standing.last_action) == (True, 3, "execute_subtask")
            assert [standing.completed, standing.blocked, standing.suspended, standing.refused] == [False, "", "", ""]
            workflow.leave(session.run, "it ended")
        workflow.issue("next", session.run, "h", LATER)
        assert not workflow.standing(session.run).connected

    @pytest.mark.parametrize(
        ("reason", "message", "field", "expected"),
        [
            (ExitReason.BLOCKED, "which colour?", "blocked", "which colour?"),
            (ExitReason.SUSPENDED, "", "suspended", "others carry out the parts of its task"),
            (ExitReason.NO_PROGRESS, "", "refused", "it asked again and again, and nothing changed"),
            (ExitReason.CANCELLED, "", "refused", "its task was cancelled"),
            (ExitReason.PAUSED, "", "", ""),
        ],
    )
    def test_the_first_reason_to_go_home_counts(
        self, board: Blackboard, workflow: WorkflowBoard, reason: ExitReason, message: str, field: str, expected: str
    ) -> None:
        session = begin(board)
        connection = sit_down(board, session)
        workflow.stop_instance(connection.id, reason, message)
        workflow.stop_instance(connection.id, ExitReason.TAKEN, "another")
        standing = workflow.standing(session.run)
        found = {name: getattr(standing, name) for name in ("blocked", "suspended", "refused")}
        assert {name: words for name, words in found.items() if words} == ({field: expected} if field else {})
        assert workflow.snapshot(connection.id).ending is reason

        again = sit_down(board, session)
        assert not workflow.standing(session.run).blocked
        assert workflow.snapshot(again.id).ending is None


def test_what_an_instance_did_in_an_earlier_part_says_nothing_of_the_next(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    fleet, session = FleetBoard(board), begin(board)
    connection = sit_down(board, session)
    board.record_verification(session.task, session.run, a_verification("c1"))
    workflow.mark(session.task, session.run, "writer", Phase.COMPLETED)
    workflow.stop_instance(connection.id, ExitReason.BLOCKED, "which?")
    before = workflow.standing(session.run)
    assert (before.completed, before.blocked, before.connected) == (True, "which?", True)

    fleet.end_part(SegmentEnd(run=session.run, part=1, waits_for=WaitsFor.RESUME))
    fleet.continue_(go_on(fleet.session(session.run)), executor="here")
    after = workflow.standing(session.run)
    assert (after.completed, after.blocked, after.connected) == (False, "", False)
    sit_down(board, session)
    assert workflow.standing(session.run).connected


def test_an_instance_that_comes_after_the_work_was_verified_has_something_left_to_do(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session = begin(board)
    sit_down(board, session)
    workflow.mark(session.task, session.run, "writer", Phase.FETCHED)
    workflow.mark(session.task, session.run, "writer", Phase.COMPLETED)
    workflow.mark(session.task, session.run, "writer", Phase.EXECUTING)
    again = sit_down(board, session)
    assert workflow.snapshot(again.id).phase is Phase.EXECUTING
    workflow.mark(session.task, session.run, "writer", Phase.COMPLETED)
    assert workflow.snapshot(again.id).phase is Phase.COMPLETED


def test_a_passkey_that_was_changed_while_a_person_came_with_it_connections_no_one(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    connection = msgspec.structs.replace(external_agent(board), id="late")
    workflow.set_passkey(connection.agent_id, "new")

    with pytest.raises(StateConflictError, match="passkey is good no more"):
        workflow.open_connection(connection, "token-hash", LATER, passkey_hash="p")

    assert workflow.connection("late") is None
    assert workflow.open_connection(connection, "token-hash", LATER, passkey_hash="new").status == "active"
