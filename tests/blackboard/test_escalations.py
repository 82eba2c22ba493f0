"""What only a person can decide: asked once, decided once, with what it does to the task."""

from collections.abc import Callable
from functools import partial

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.fleet.records import (
    Cause,
    Escalation,
    EscalationKind,
    FleetSession,
    Plan,
    SegmentEnd,
    Subtask,
    WaitsFor,
)
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskStatus
from tests.blackboard.acting import HUMAN, REVIEWER, add, cancel, everything, open_
from tests.blackboard.fleets import begin, fail, go_on, in_review, wait
from tests.blackboard.test_at_once import at_once

NEEDS_INPUT = Blocker(BlockerKind.NEEDS_INPUT, "which colour?")


@pytest.fixture
def fleet(board: Blackboard) -> FleetBoard:
    return FleetBoard(board)


def ask(fleet: FleetBoard, session: FleetSession, question: str = "which colour?") -> Escalation:
    asked = Escalation(
        task=session.task,
        kind=EscalationKind.QUESTION,
        question=question,
        run=session.run,
        evidence={"branch": "genba/1", "goals": ["a"]},
    )
    return fleet.escalate(asked, NEEDS_INPUT)


def test_a_question_blocks_its_task_and_an_answer_lets_the_session_go_on(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    asked = ask(fleet, session)
    wait(fleet, session, WaitsFor.ANSWER)
    task = board.get(session.task)
    assert task.status is TaskStatus.BLOCKED
    assert task.blocker == NEEDS_INPUT
    assert fleet.escalations() == [asked]
    assert fleet.escalation(session.task) == asked
    assert asked.evidence == {"branch": "genba/1", "goals": ["a"]}

    answered = fleet.answer(session.task, "green", HUMAN)
    assert (answered.status, answered.answer, answered.answered_by) == ("answered", "green", "ada")
    assert board.get(session.task).status is TaskStatus.OPEN
    assert fleet.escalations() == []
    assert fleet.escalations(open_only=False) == [answered]
    assert fleet.session(session.run).status == "waiting"
    assert fleet.field().escalations == (answered,)
    fleet.continue_(go_on(fleet.session(session.run), Cause.ANSWER), executor="here")
    assert board.get(session.task).status is TaskStatus.IN_PROGRESS


def test_asking_again_creates_no_second_question_even_after_the_answer(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    asked = ask(fleet, session)
    before = everything(board)
    assert ask(fleet, session) == ask(fleet, session, "another one?") == asked
    assert everything(board) == before
    answered = fleet.answer(session.task, "green", HUMAN)
    before = everything(board)
    assert ask(fleet, session) == answered  # the step that asked is repeated, and does not know
    assert everything(board) == before
    waiting = wait(fleet, session, WaitsFor.ANSWER)
    fleet.continue_(go_on(waiting, Cause.ANSWER), executor="here")
    assert ask(fleet, session).status == "open"  # the next part may ask the same


def test_a_question_without_words_is_asked_all_the_same(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    asked = Escalation(task=session.task, kind=EscalationKind.QUESTION, question=" ", run=session.run)
    fleet.escalate(asked, Blocker(BlockerKind.NEEDS_INPUT, ""))
    blocker = board.get(session.task).blocker
    assert blocker is not None
    assert blocker.reason == fleet.escalation(session.task).question == "it does not say what it needs"


def test_what_was_decided_or_never_asked_is_refused_clearly(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    with pytest.raises(NotFoundError, match="nothing of task #1 waits for a person") as caught:
        fleet.answer(task, "green", HUMAN)
    assert caught.value.hint == "genba decisions"
    ask(fleet, begin(fleet, task))
    for empty in ("", " "):
        with pytest.raises(UsageError):
            fleet.answer(task, empty, HUMAN)
    with pytest.raises(UsageError, match="a rejection needs a reason"):
        fleet.decide(task, False, "", HUMAN)
    fleet.answer(task, "green", HUMAN)
    for act in (partial(fleet.answer, task, "red", HUMAN), partial(fleet.decide, task, True, "", HUMAN)):
        with pytest.raises(StateConflictError, match="the last was answered by ada"):
            act()
    assert fleet.escalation(task).answer == "green"
    with pytest.raises(NotFoundError):
        fleet.escalation(99)


def test_of_two_simultaneous_answers_one_is_refused(open_board: Callable[..., Blackboard]) -> None:
    one, two = FleetBoard(open_board()), FleetBoard(open_board())
    for _ in range(4):
        session = begin(one, add(one.board))
        ask(one, session)
        results = at_once(
            partial(one.answer, session.task, "green", HUMAN), partial(two.answer, session.task, "red", HUMAN)
        )
        assert sum(isinstance(result, Escalation) for result in results) == 1


def test_attempts_that_came_to_nothing_are_forgiven_when_a_person_says_so(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    for attempt in (1, 2):
        fail(fleet, begin(fleet, task, attempt))
    assert [session.attempt for session in fleet.field().failures[task]] == [1, 2]
    asked = Escalation(task=task, kind=EscalationKind.ATTEMPTS, question="try again?")
    fleet.escalate(asked, Blocker(BlockerKind.FAILED, "twice"))
    assert board.get(task).status is TaskStatus.BLOCKED
    fleet.decide(task, True, "", HUMAN)
    assert board.get(task).status is TaskStatus.OPEN
    assert task not in fleet.field().failures
    fail(fleet, begin(fleet, task, 3))
    assert [session.attempt for session in fleet.field().failures[task]] == [3]


def test_what_is_rejected_stays_blocked(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    fleet.escalate(Escalation(task=task, kind=EscalationKind.BUDGET, question="more?"), NEEDS_INPUT)
    assert fleet.decide(task, False, "too dear", HUMAN).status == "rejected"
    assert board.get(task).status is TaskStatus.BLOCKED


def test_work_in_review_is_taken_back_before_it_is_blocked(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    asked = Escalation(task=session.task, kind=EscalationKind.CONFLICT, question="three rounds", run=session.run)
    fleet.escalate(asked, Blocker(BlockerKind.CONFLICT, "a.py"))
    assert board.get(session.task).status is TaskStatus.BLOCKED
    assert fleet.session(session.run).status == "waiting"


def test_unblocking_or_cancelling_a_task_by_hand_settles_its_question(board: Blackboard, fleet: FleetBoard) -> None:
    first, second = (begin(fleet, add(board)) for _ in range(2))
    ask(fleet, first)
    ask(fleet, second)
    open_(board, first.task)
    cancel(board, second.task)
    assert fleet.escalations() == []
    assert [one.status for one in fleet.escalations(open_only=False)] == ["approved", "withdrawn"]


def test_a_commit_is_approved_by_a_person_and_only_then_done(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    asked = Escalation(task=session.task, kind=EscalationKind.REVIEW, question="is it right?", commit="c1")
    fleet.escalate(asked)
    assert board.get(session.task).status is TaskStatus.REVIEW
    with pytest.raises(StateConflictError, match="not for an answer") as caught:
        fleet.answer(session.task, "yes", HUMAN)
    assert caught.value.hint.startswith(f"genba approve {session.task}")
    review = fleet.ask_review(session.task, "c1", "human")
    assert fleet.decide(review.task, True, "", HUMAN).status == "approved"  # the number of the review is as good
    assert board.get(session.task).approved == "c1"
    assert fleet.field().tasks[session.task].approved == "c1"
    assert board.get(review.task).status is TaskStatus.DONE


def test_a_commit_is_rejected_by_a_person_with_what_is_missing(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    review = fleet.ask_review(session.task, "c1", "human")
    fleet.escalate(Escalation(task=session.task, kind=EscalationKind.REVIEW, question="right?", commit="c1"))
    fleet.decide(session.task, False, "no tests", HUMAN)
    (found,) = fleet.field().reviews
    assert (found.task, found.status, found.findings) == (review.task, "changes", ("no tests",))
    assert board.get(review.task).status is TaskStatus.DONE
    assert board.get(session.task).approved == ""


def test_an_approval_by_hand_settles_the_review_and_the_question(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    review = fleet.ask_review(session.task, "c1", "human")
    fleet.escalate(Escalation(task=session.task, kind=EscalationKind.REVIEW, question="right?", commit="c1"))
    board.approve(session.task, "c1", HUMAN)
    assert fleet.escalation(session.task).status == "approved"
    assert board.get(review.task).status is TaskStatus.DONE
    assert board.get(session.task).approved == "c1"


def test_a_plan_is_approved_or_rejected(board: Blackboard, fleet: FleetBoard) -> None:
    for approved in (True, False):
        task = add(board)
        plan = fleet.propose(Plan(task=task, run=f"planner-{task}", subtasks=(Subtask(key="a", title="A"),)))
        fleet.escalate(Escalation(task=task, kind=EscalationKind.PLAN, question="so?"), NEEDS_INPUT)
        decided = fleet.decide(task, approved, "too many parts", HUMAN)
        assert decided.status == ("approved" if approved else "rejected")
        assert board.get(task).status is TaskStatus.OPEN
        (shown,) = [one for one in fleet.field().plans if one.task == task]
        assert (shown.id, shown.status) == (plan.id, "proposed" if approved else "rejected")


def test_a_task_that_was_stopped_goes_on_when_a_person_says_so(board: Blackboard, fleet: FleetBoard) -> None:
    first, second = add(board), add(board)
    for task in (first, second):
        fleet.hold(task, True, HUMAN)
        fleet.escalate(Escalation(task=task, kind=EscalationKind.STOPPED, question="ada stopped it"))
    assert fleet.field().held == {first, second}
    fleet.decide(first, True, "", HUMAN)
    fleet.hold(second, False, HUMAN)
    assert fleet.field().held == frozenset()
    assert [one.status for one in fleet.escalations(open_only=False)] == ["approved", "approved"]


def test_an_ended_task_asks_no_person(board: Blackboard, fleet: FleetBoard) -> None:
    task = add(board)
    board.change_status(task, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    with pytest.raises(StateConflictError, match="nothing left to decide"):
        fleet.escalate(Escalation(task=task, kind=EscalationKind.ATTEMPTS, question="?"))


def test_what_an_agent_says_is_kept_up_to_a_page_and_whatever_is_in_it(board: Blackboard, fleet: FleetBoard) -> None:
    session = begin(fleet, add(board))
    long = "which?\0" + "x" * 1_000_000
    asked = Escalation(
        task=session.task,
        kind=EscalationKind.QUESTION,
        question=long,
        run=session.run,
        evidence={"tried": [{"reason": long}]},
    )
    kept = fleet.escalate(asked, Blocker(BlockerKind.NEEDS_INPUT, long))
    fleet.end_part(SegmentEnd(run=session.run, part=1, waits_for=WaitsFor.ANSWER, reason=long))
    task = board.get(session.task)
    assert task.blocker is not None
    texts = (kept.question, kept.evidence["tried"][0]["reason"], task.blocker.reason, fleet.session(session.run).reason)
    for text in texts:
        assert text.startswith("which?\N{REPLACEMENT CHARACTER}xxx")
        assert text.endswith("characters are left out)")
        assert len(text) <= 4_000
    assert all(len(str(event.data)) < 10_000 for event in board.events(session.task))


def test_findings_are_kept_up_to_a_number_and_a_length(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    review = fleet.ask_review(session.task, "c1", "ai")
    given = fleet.verdict(review.task, False, ["y" * 100_000] * 60, "critic", REVIEWER)
    assert (len(given.findings), given.findings[-1]) == (51, "… and 10 more")
    assert all(len(finding) < 4_100 for finding in given.findings)
