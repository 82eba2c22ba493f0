"""Credentials and seats: once, for one run, and by one instance at a time."""

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
from tests.blackboard.fleets import go_on
from tests.blackboard.seating import LATER, LONG_AGO, begin, guest, seat_for, sit_down


@pytest.fixture
def workflow(board: Blackboard) -> WorkflowBoard:
    return WorkflowBoard(board)


def test_a_credential_is_good_for_one_seat_of_its_run(board: Blackboard, workflow: WorkflowBoard) -> None:
    session = begin(board)
    workflow.issue("c1", session.run, "hash", LATER)
    found = workflow.credential("c1")
    assert found is not None
    assert (found.run, found.agent, found.task, found.secret_hash) == (session.run, "writer", session.task, "hash")
    assert found.is_good(LONG_AGO)

    wanted = seat_for(board, session)
    seat = workflow.take_seat(wanted, "t", LATER, "c1")
    assert (seat.run, seat.task, seat.agent, seat.status) == (session.run, session.task, "writer", "active")
    assert workflow.take_seat(wanted, "t", LATER, "c1") == seat
    used = workflow.credential("c1")
    assert used is not None
    assert not used.is_good(LONG_AGO)
    with pytest.raises(StateConflictError, match="good no more"):
        workflow.take_seat(seat_for(board, session), "t2", LATER, "c1")
    known = workflow.seat(seat.id)
    assert known is not None
    assert (known.token_hash, known.is_good(LONG_AGO)) == ("t", True)


def test_of_two_who_come_with_one_credential_one_is_seated(
    board: Blackboard, open_board: Callable[..., Blackboard]
) -> None:
    session = begin(board)
    WorkflowBoard(board).issue("c1", session.run, "hash", LATER)
    won: list[AgentConnection] = []
    lost: list[StateConflictError] = []
    line = threading.Barrier(4)
    others = [open_board() for _ in range(4)]

    def come(other: Blackboard) -> None:
        seat = seat_for(other, session)
        line.wait()
        try:
            won.append(WorkflowBoard(other).take_seat(seat, "t", LATER, "c1"))
        except StateConflictError as error:
            lost.append(error)

    threads = [threading.Thread(target=come, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 3)


def test_a_credential_that_is_expired_revoked_or_of_another_run_seats_nobody(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, other = begin(board), begin(board, agent="painter")
    workflow.issue("old", session.run, "hash", LONG_AGO)
    workflow.issue("gone", other.run, "hash", LATER)
    workflow.issue("new", other.run, "hash", LATER)
    for seat, credential in (
        (seat_for(board, session), "old"),
        (seat_for(board, session), ""),
        (seat_for(board, session), "nothing"),
        (seat_for(board, session), "new"),
        (seat_for(board, other), "gone"),
    ):
        with pytest.raises(StateConflictError):
            workflow.take_seat(seat, "t", LATER, credential)
        assert workflow.seat(seat.id) is None
    assert workflow.take_seat(seat_for(board, other), "t", LATER, "new").agent == "painter"
    assert workflow.credential("nothing") is None
    with pytest.raises(NotFoundError):
        workflow.issue("x", "no-such-run", "h", LATER)


def test_a_run_has_one_seat_and_the_newer_one_counts(board: Blackboard, workflow: WorkflowBoard) -> None:
    session = begin(board)
    first = sit_down(board, session)
    second = sit_down(board, session)
    known, newer = workflow.seat(first.id), workflow.seat(second.id)
    assert known is not None
    assert newer is not None
    assert (known.seat.status, newer.seat.status) == ("closed", "active")
    assert workflow.snapshot(first.id).ending is ExitReason.TAKEN


def test_nobody_is_seated_for_a_run_that_has_ended(board: Blackboard, workflow: WorkflowBoard) -> None:
    session = begin(board)
    workflow.issue("c1", session.run, "hash", LATER)
    FleetBoard(board).end_part(SegmentEnd(run=session.run, part=1, outcome="failed"))
    with pytest.raises(StateConflictError, match="has ended"):
        workflow.take_seat(seat_for(board, session), "t", LATER, "c1")


def test_what_an_instance_is_follows_from_its_session_and_what_a_guest_is_from_its_agent(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    managing = sit_down(board, begin(board, Purpose.MANAGE))
    assert managing.hierarchy is Hierarchy.MANAGER
    assert guest(board, "boss", Hierarchy.MANAGER).hierarchy is Hierarchy.MANAGER
    assert guest(board, "hand").hierarchy is Hierarchy.WORKER


def test_a_guest_is_bound_to_a_session_and_leaves_it_again(board: Blackboard, workflow: WorkflowBoard) -> None:
    seat, session = guest(board), begin(board, agent="guest")
    bound = workflow.bind(seat.id, session.run, session.task)
    assert (bound.run, bound.task) == (session.run, session.task)
    assert workflow.bind(seat.id, session.run, session.task) == bound

    other = guest(board)
    workflow.bind(other.id, session.run, session.task)
    before = workflow.seat(seat.id)
    assert before is not None
    assert before.seat.status == "closed"
    with pytest.raises(StateConflictError):
        workflow.bind(seat.id, session.run, session.task)
    with pytest.raises(StateConflictError, match="works on"):
        workflow.bind(other.id, session.run, session.task + 1)

    workflow.send_home(other.id, ExitReason.NO_PROGRESS)
    free = workflow.unbind(other.id)
    assert (free.run, free.task, free.status) == ("", None, "active")
    assert workflow.unbind(other.id) == free
    assert workflow.snapshot(other.id).ending is None


def test_whoever_leaves_closes_every_seat_of_the_run_and_takes_its_credential_back(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session = begin(board)
    seat = sit_down(board, session)
    workflow.issue("next", session.run, "hash", LATER)
    for _ in range(2):
        workflow.leave(session.run, "its process ended")
    known, credential = workflow.seat(seat.id), workflow.credential("next")
    assert known is not None
    assert credential is not None
    assert (known.seat.status, known.seat.closed) == ("closed", "its process ended")
    assert credential.revoked_at
    assert workflow.snapshot(seat.id).ending is ExitReason.REVOKED


@pytest.mark.parametrize("end", [{"outcome": "failed"}, {"waits_for": WaitsFor.RESUME}], ids=["ended", "waiting"])
def test_no_instance_outlives_its_part_however_that_ended(
    board: Blackboard, workflow: WorkflowBoard, end: dict[str, str]
) -> None:
    session = begin(board)
    seat = sit_down(board, session)
    workflow.issue("next", session.run, "hash", LATER)

    FleetBoard(board).end_part(SegmentEnd(run=session.run, part=1, **end))  # type: ignore[arg-type]

    known, credential = workflow.seat(seat.id), workflow.credential("next")
    assert known is not None
    assert credential is not None
    assert (known.seat.status, known.seat.closed) == ("closed", "its part is over")
    assert credential.revoked_at


def test_a_guest_keeps_its_seat_when_its_part_is_over(board: Blackboard, workflow: WorkflowBoard) -> None:
    seat, session = guest(board), begin(board, agent="guest")
    workflow.bind(seat.id, session.run, session.task)

    FleetBoard(board).end_part(SegmentEnd(run=session.run, part=1, outcome="failed"))

    known = workflow.seat(seat.id)
    assert known is not None
    assert known.seat.status == "active"


def test_signs_of_life_are_kept_and_whoever_gives_none_is_found(board: Blackboard, workflow: WorkflowBoard) -> None:
    seat = guest(board)
    assert workflow.expired() == ()
    workflow.beat({seat.id: (LONG_AGO, 7, "wait"), "nobody": (LATER, 1, "")})
    known = workflow.seat(seat.id)
    assert known is not None
    assert (known.calls, known.last_action, known.seat.lease_until) == (7, "wait", LONG_AGO)
    assert [one.id for one in workflow.expired()] == [seat.id]
    workflow.close_seat(seat.id, "it was silent")
    workflow.close_seat(seat.id, "again")
    assert workflow.expired() == ()
    closed = workflow.seat(seat.id)
    assert closed is not None
    assert closed.seat.closed == "it was silent"


def test_a_seat_of_another_project_is_not_there(board: Blackboard, open_board: Callable[..., Blackboard]) -> None:
    if not board.store.on_postgres:
        pytest.skip("an SQLite file belongs to one project")
    session = begin(board)
    seat = sit_down(board, session)
    WorkflowBoard(board).issue("mine", session.run, "h", LATER)
    other = WorkflowBoard(open_board("another project"))
    assert other.seat(seat.id) is None
    assert other.credential("mine") is None
    with pytest.raises(NotFoundError):
        other.snapshot(seat.id)
    with pytest.raises(NotFoundError):
        other.standing(session.run)


class TestStanding:
    def test_nobody_was_there(self, board: Blackboard, workflow: WorkflowBoard) -> None:
        session = begin(board)
        workflow.issue("c", session.run, "h", LATER)
        assert not workflow.standing(session.run).seated

    def test_somebody_was_there_whether_or_not_it_has_left(self, board: Blackboard, workflow: WorkflowBoard) -> None:
        session = begin(board)
        seat = sit_down(board, session)
        workflow.beat({seat.id: (LATER, 3, "execute_subtask")})
        for _ in range(2):
            standing = workflow.standing(session.run)
            assert (standing.seated, standing.calls, standing.last_action) == (True, 3, "execute_subtask")
            assert [standing.completed, standing.blocked, standing.parked, standing.refused] == [False, "", "", ""]
            workflow.leave(session.run, "it ended")
        workflow.issue("next", session.run, "h", LATER)
        assert not workflow.standing(session.run).seated

    @pytest.mark.parametrize(
        ("reason", "said", "field", "told"),
        [
            (ExitReason.BLOCKED, "which colour?", "blocked", "which colour?"),
            (ExitReason.PARKED, "", "parked", "others carry out the parts of its task"),
            (ExitReason.NO_PROGRESS, "", "refused", "it asked again and again, and nothing changed"),
            (ExitReason.CANCELLED, "", "refused", "its task was cancelled"),
            (ExitReason.PAUSED, "", "", ""),
        ],
    )
    def test_the_first_reason_to_go_home_counts(
        self, board: Blackboard, workflow: WorkflowBoard, reason: ExitReason, said: str, field: str, told: str
    ) -> None:
        session = begin(board)
        seat = sit_down(board, session)
        workflow.send_home(seat.id, reason, said)
        workflow.send_home(seat.id, ExitReason.TAKEN, "another")
        standing = workflow.standing(session.run)
        found = {name: getattr(standing, name) for name in ("blocked", "parked", "refused")}
        assert {name: words for name, words in found.items() if words} == ({field: told} if field else {})
        assert workflow.snapshot(seat.id).ending is reason

        again = sit_down(board, session)
        assert not workflow.standing(session.run).blocked
        assert workflow.snapshot(again.id).ending is None


def test_what_an_instance_did_in_an_earlier_part_says_nothing_of_the_next(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    fleet, session = FleetBoard(board), begin(board)
    seat = sit_down(board, session)
    board.record_verification(session.task, session.run, a_verification("c1"))
    workflow.mark(session.task, session.run, "writer", Phase.COMPLETED)
    workflow.send_home(seat.id, ExitReason.BLOCKED, "which?")
    before = workflow.standing(session.run)
    assert (before.completed, before.blocked, before.seated) == (True, "which?", True)

    fleet.end_part(SegmentEnd(run=session.run, part=1, waits_for=WaitsFor.RESUME))
    fleet.continue_(go_on(fleet.session(session.run)), executor="here")
    after = workflow.standing(session.run)
    assert (after.completed, after.blocked, after.seated) == (False, "", False)
    sit_down(board, session)
    assert workflow.standing(session.run).seated


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


def test_a_passkey_that_was_changed_while_somebody_came_with_it_seats_nobody(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    seat = msgspec.structs.replace(guest(board), id="late")
    workflow.set_passkey(seat.agent_id, "new")

    with pytest.raises(StateConflictError, match="passkey is good no more"):
        workflow.take_seat(seat, "token-hash", LATER, passkey_hash="p")

    assert workflow.seat("late") is None
    assert workflow.take_seat(seat, "token-hash", LATER, passkey_hash="new").status == "active"
