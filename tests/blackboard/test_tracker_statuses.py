"""What a tracker tells of its issues, and what follows from it here."""

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks import task_records
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.fleet.records import WaitsFor
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskDraft, TaskStatus
from genba.domain.tracker.issues import FIRST_OWN_NUMBER
from tests.blackboard.acting import ORCHESTRATOR, add, block, open_, review, start
from tests.blackboard.fleets import begin, fail, wait

ALICE = Actor(ActorKind.TRACKER, "alice")


def issue(board: Blackboard, number: int, parent: int | None = None) -> int:
    draft = TaskDraft(title="An issue", number=number, parent=parent, tracker="github", tracker_reference=f"I_{number}")
    return board.add(draft, ALICE).number


def report(board: Blackboard, number: int, to: TaskStatus, reason: str = "closed on GitHub by alice") -> Task:
    return board.change_status(number, StatusChange(to=to, actor=ALICE, reason=reason))


@pytest.mark.parametrize("to", [TaskStatus.DONE, TaskStatus.CANCELLED])
@pytest.mark.parametrize("start_at", ["backlog", "open", "in_progress", "review", "blocked"])
def test_an_issue_ends_from_every_status_when_its_tracker_says_so(
    board: Blackboard, start_at: str, to: TaskStatus
) -> None:
    if start_at == "backlog":
        draft = TaskDraft(title="Later", number=12, tracker="github", status=TaskStatus.BACKLOG)
        board.add(draft, ALICE)
    else:
        issue(board, 12)
    match start_at:
        case "in_progress":
            start(board, 12)
        case "review":
            review(board, 12)
        case "blocked":
            block(board, 12)
    assert report(board, 12, to).status is to
    last = board.events(12)[-1]
    assert (last.actor, last.data["reason"], last.data["commit"]) == (ALICE, "closed on GitHub by alice", "")


def test_a_tracker_says_what_happened_there(board: Blackboard) -> None:
    issue(board, 12)
    with pytest.raises(UsageError):
        report(board, 12, TaskStatus.DONE, reason="")


def test_a_tracker_tells_nothing_of_tasks_that_are_not_its_own(board: Blackboard) -> None:
    own = add(board)
    for to in (TaskStatus.DONE, TaskStatus.CANCELLED):
        with pytest.raises(StateConflictError):
            report(board, own, to)
    with pytest.raises(StateConflictError):
        report(board, issue(board, 12), TaskStatus.IN_PROGRESS)


@pytest.mark.parametrize("ended", [TaskStatus.DONE, TaskStatus.CANCELLED])
def test_an_issue_that_is_reopened_is_open_again_also_below_one_that_has_ended(
    board: Blackboard, ended: TaskStatus
) -> None:
    issue(board, 12)
    issue(board, 13, parent=12)
    report(board, 13, ended)
    report(board, 12, TaskStatus.DONE)
    assert report(board, 13, TaskStatus.OPEN, "reopened on GitHub by alice").status is TaskStatus.OPEN


def test_an_issue_that_is_reopened_below_a_blocked_one_is_blocked_together_with_it(board: Blackboard) -> None:
    issue(board, 12)
    issue(board, 13, parent=12)
    report(board, 13, TaskStatus.CANCELLED)
    block(board, 12)
    again = report(board, 13, TaskStatus.OPEN, "reopened on GitHub by alice")
    assert (again.status, again.blocker.task if again.blocker else None) == (TaskStatus.BLOCKED, 12)
    open_(board, 12)
    assert board.get(13).status is TaskStatus.OPEN


@pytest.mark.parametrize("to", [TaskStatus.DONE, TaskStatus.CANCELLED])
def test_with_an_issue_end_the_tasks_of_genba_below_it_and_no_other_issue(board: Blackboard, to: TaskStatus) -> None:
    board.store.write(task_records.leave_numbers_to_tracker)
    issue(board, 12)
    part = add(board, "A part", 12)
    deeper = add(board, "A part of a part", part)
    issue(board, 13, parent=12)
    below_other = add(board, "A part of the other issue", 13)
    report(board, 12, to)
    assert [board.get(number).status for number in (part, deeper)] == [TaskStatus.CANCELLED] * 2
    assert [board.get(number).status for number in (13, below_other)] == [TaskStatus.OPEN] * 2
    assert report(board, 13, TaskStatus.DONE).status is TaskStatus.DONE


def test_an_issue_that_stood_in_the_way_of_those_below_it_stands_there_no_more_when_it_ends(board: Blackboard) -> None:
    issue(board, 12)
    issue(board, 13, parent=12)
    block(board, 12)
    assert board.get(13).status is TaskStatus.BLOCKED
    report(board, 12, TaskStatus.DONE)
    assert board.get(13).status is TaskStatus.OPEN


def test_an_issue_can_be_found_below_one_that_was_closed_before(board: Blackboard) -> None:
    issue(board, 12)
    report(board, 12, TaskStatus.DONE)
    assert board.get(issue(board, 13, parent=12)).status is TaskStatus.OPEN
    with pytest.raises(StateConflictError):
        add(board, "A part", 12)


def test_the_work_on_an_issue_that_ended_on_its_tracker_waits_for_nothing_any_more(board: Blackboard) -> None:
    issue(board, 12)
    review(board, 12)
    report(board, 12, TaskStatus.CANCELLED)
    with pytest.raises(StateConflictError):
        board.change_status(12, StatusChange(to=TaskStatus.IN_PROGRESS, actor=ORCHESTRATOR))


def test_own_tasks_of_a_project_with_a_tracker_never_get_the_number_of_an_issue(board: Blackboard) -> None:
    first = add(board)
    for _ in range(2):
        board.store.write(task_records.leave_numbers_to_tracker)
    issue(board, 12)
    issue(board, 999_999)
    assert (first, add(board), add(board)) == (1, FIRST_OWN_NUMBER, FIRST_OWN_NUMBER + 1)


def test_reopening_an_issue_on_its_tracker_resets_its_failures(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    issue(board, 12)
    fail(fleet, begin(fleet, 12))
    assert len(fleet.field().failures[12]) == 1
    report(board, 12, TaskStatus.CANCELLED, "closed on GitHub by alice as not planned")
    report(board, 12, TaskStatus.OPEN, "reopened on GitHub by alice")
    assert fleet.field().failures == {}


def test_a_session_that_waits_ends_with_its_issue(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    issue(board, 12)
    wait(fleet, begin(fleet, 12), WaitsFor.ANSWER)
    report(board, 12, TaskStatus.DONE)
    assert [session.status for session in fleet.sessions(12)] == ["ended"]
