from collections.abc import Callable
from functools import partial

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.fleet.records import Cause, Purpose, Review
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, TaskDraft, TaskStatus
from tests.blackboard.acting import HUMAN, ORCHESTRATOR, REVIEWER, add, cancel, everything, finish, statuses
from tests.blackboard.fleets import begin, go_on, in_review, order, to_review
from tests.blackboard.test_at_once import at_once, check_laws

AUTHOR = Actor(ActorKind.REVIEWER, "writer")


@pytest.fixture
def fleet(board: Blackboard) -> FleetBoard:
    return FleetBoard(board)


def test_a_review_is_a_task_below_the_one_it_judges(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    review = fleet.ask_review(session.task, "c1", "ai", assignee="critic")
    task = board.get(review.task)
    assert (task.type, task.title, task.parent) == ("review", "Review: Work", session.task)
    assert (task.review_of, task.review_commit, task.assignee) == (session.task, "c1", "critic")
    before = everything(board)
    assert fleet.ask_review(session.task, "c1", "ai") == review
    assert everything(board) == before
    assert fleet.field().reviews == (review,)
    assert fleet.field().ready == (review.task,)
    assert [ready.number for ready in board.ready()] == [review.task]


def test_an_approval_counts_for_its_commit_and_ends_the_review(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    review = fleet.ask_review(session.task, "c1", "ai")
    fleet.start(order(review.task, agent="critic", purpose=Purpose.REVIEW), executor="here")
    given = fleet.verdict(review.task, True, (), "critic", REVIEWER, "critic-run")
    assert (given.status, given.reviewer) == ("approved", "critic")
    before = everything(board)
    assert fleet.verdict(review.task, False, ("late",), "critic", REVIEWER) == given
    assert everything(board) == before
    assert statuses(board, session.task, review.task) == ["review", "done"]
    assert board.get(session.task).approved == "c1"
    finish(board, session.task)
    assert fleet.session(session.run).status == "ended"
    check_laws(board)


def test_findings_are_kept_and_the_work_goes_back(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    review = fleet.ask_review(session.task, "c1", "ai")
    with pytest.raises(UsageError, match="a request for changes needs a reason"):
        fleet.verdict(review.task, False, (" ",), "critic", REVIEWER)
    given = fleet.verdict(review.task, False, ("no test", "slow"), "critic", REVIEWER)
    assert (given.status, given.findings) == ("changes", ("no test", "slow"))
    assert statuses(board, session.task, review.task) == ["review", "done"]
    again = fleet.continue_(go_on(session, Cause.FINDINGS), executor="here")
    assert fleet.field().reviews == (given,)
    to_review(board, fleet, again, "c2")
    second = fleet.ask_review(session.task, "c2", "ai")
    assert second.task != review.task
    assert fleet.verdict(second.task, True, (), "critic", REVIEWER).status == "approved"
    finish(board, session.task, "c2")
    check_laws(board)


def test_no_agent_reviews_its_own_work(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    before = everything(board)
    with pytest.raises(StateConflictError, match="no agent reviews its own work"):
        fleet.ask_review(session.task, "c1", "ai", assignee="writer")
    assert everything(board) == before
    review = fleet.ask_review(session.task, "c1", "ai")
    with pytest.raises(StateConflictError, match="no agent reviews its own work"):
        fleet.start(order(review.task, agent="writer", purpose=Purpose.REVIEW), executor="here")
    with pytest.raises(StateConflictError, match="no agent reviews its own work"):
        fleet.verdict(review.task, True, (), "writer", AUTHOR)
    assert board.get(session.task).approved == ""


def test_a_review_is_stale_when_its_work_goes_on(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    review = fleet.ask_review(session.task, "c1", "ai")
    again = fleet.continue_(go_on(session, Cause.CONFLICT), executor="here")
    assert statuses(board, session.task, review.task) == ["in_progress", "cancelled"]
    to_review(board, fleet, again, "c2")
    given = fleet.verdict(review.task, True, (), "critic", REVIEWER)
    assert given.status == "stale"
    assert board.get(session.task).approved == ""
    with pytest.raises(StateConflictError, match="in review with commit c2, not with c1"):
        fleet.ask_review(session.task, "c1", "ai")
    assert fleet.ask_review(session.task, "c2", "ai").status == "open"
    check_laws(board)


def test_an_approval_does_not_outlive_the_review(board: Blackboard, fleet: FleetBoard) -> None:
    """The same commit in review once more is judged once more."""
    session = in_review(board, fleet)
    first = fleet.ask_review(session.task, "c1", "ai")
    fleet.verdict(first.task, True, (), "critic", REVIEWER)
    again = fleet.continue_(go_on(session, Cause.FAILED), executor="here")
    to_review(board, fleet, again, "c1")
    assert board.get(session.task).approved == ""
    second = fleet.ask_review(session.task, "c1", "ai")
    assert (second.status, second.task == first.task) == ("open", False)


def test_an_open_review_hinders_neither_the_end_nor_the_way_back(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet, reviewed=False)
    review = fleet.ask_review(session.task, "c1", "ai")
    finish(board, session.task)
    assert statuses(board, session.task, review.task) == ["done", "cancelled"]
    other = in_review(board, fleet)
    review = fleet.ask_review(other.task, "c1", "ai")
    cancel(board, other.task)
    assert board.get(review.task).status is TaskStatus.CANCELLED
    assert fleet.verdict(review.task, True, (), "critic", REVIEWER).status == "stale"
    check_laws(board)


def test_a_review_is_done_by_a_verdict_and_by_nothing_else(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    review = fleet.ask_review(session.task, "c1", "ai")
    fleet.start(order(review.task, agent="critic", purpose=Purpose.REVIEW), executor="here")
    with pytest.raises(StateConflictError, match="it is a review without a verdict"):
        board.change_status(review.task, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1"))
    with pytest.raises(StateConflictError, match="it is no review"):
        fleet.verdict(session.task, True, (), "critic", REVIEWER)
    with pytest.raises(StateConflictError, match="only a task in review is reviewed"):
        fleet.ask_review(add(board), "c1", "ai")


def test_a_person_alone_approves_what_people_review(board: Blackboard, fleet: FleetBoard) -> None:
    task = board.add(TaskDraft(title="Work", requires_review=True, reviewer_type="human"), HUMAN).number
    to_review(board, fleet, begin(fleet, task))
    review = fleet.ask_review(task, "c1", "human")
    with pytest.raises(StateConflictError, match="the actor reviewer may not approve it"):
        fleet.verdict(review.task, True, (), "critic", REVIEWER)
    assert fleet.verdict(review.task, True, (), "ada", HUMAN).status == "approved"


def test_of_two_verdicts_at_once_one_counts(open_board: Callable[..., Blackboard]) -> None:
    one, two = FleetBoard(open_board()), FleetBoard(open_board())
    for _ in range(4):
        session = in_review(one.board, one)
        review = one.ask_review(session.task, "c1", "ai")
        results = at_once(
            partial(one.verdict, review.task, True, (), "critic", REVIEWER),
            partial(two.verdict, review.task, False, ("no",), "critic", REVIEWER),
        )
        assert all(isinstance(result, Review) for result in results), results
        assert len({result.status for result in results if isinstance(result, Review)}) == 1
    check_laws(one.board)
