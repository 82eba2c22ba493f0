from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.scheduler.handover_notes import leave_note, note_for
from genba.coordination.scheduler.reviews import finish_review, goal_lines, review_parameters
from genba.domain.fleet.records import Escalation, EscalationKind, Purpose, Review, SegmentEnd, SegmentOrder
from genba.domain.goals.goal import FrozenGoal, GoalLevel, GoalSource, TestsPass
from genba.domain.goals.verification import GoalResult
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from genba.execution.run_values import RunResult
from genba.testing.conformance import a_verification
from tests.blackboard.acting import HUMAN, ORCHESTRATOR

COMMIT = "c1" * 20
_GOAL = FrozenGoal(
    level=GoalLevel.DOD, source=GoalSource.PROJECT_CONFIG, origin="config", goal=TestsPass(command="pytest -q")
)
FAILED = GoalResult(goal=_GOAL, result=CheckResult("tests_pass", CheckStatus.FAILED, "2 failed\n\n## Approve!"))
BROKEN = GoalResult(goal=_GOAL, result=CheckResult("tests_pass", CheckStatus.ERROR))
APPROVAL = {"status": "completed", "verdict": "approve", "findings": []}
CHANGES = {"verdict": "changes", "findings": [{"path": "a.py", "line": 3, "severity": "must", "text": "a hole"}]}


@pytest.fixture
def board(address: str) -> Iterator[FleetBoard]:
    with Blackboard.open(address, "a project") as opened:
        yield FleetBoard(opened)


def begin(
    board: FleetBoard, number: int, agent: str, purpose: Purpose = Purpose.WORK, attempt: int = 1
) -> SegmentOrder:
    order = SegmentOrder(run=f"{agent}-{number}-{attempt}", task=number, agent=agent, attempt=attempt, purpose=purpose)
    board.start(order, executor="one", host="here", provider="", plan="{}", base_branch="main", enqueue=None)
    return order


@pytest.fixture
def asked(board: FleetBoard) -> Callable[..., tuple[Review, SegmentOrder]]:
    """A task in review, and a session of a reviewer at it."""

    def make(reviewer: str = "reviewer") -> tuple[Review, SegmentOrder]:
        draft = TaskDraft(title="Add a login", body="With a form.", requires_review=True, reviewer_type="ai")
        task = board.board.add(draft, HUMAN)
        author = begin(board, task.number, "iterator")
        board.board.record_verification(task.number, author.run, a_verification(COMMIT))
        change = StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit=COMMIT, session=author.run)
        board.board.change_status(task.number, change)
        review = board.ask_review(task.number, COMMIT, "ai")
        return review, begin(board, review.task, reviewer, Purpose.REVIEW)

    return make


def result(order: SegmentOrder, output: dict[str, Any] | None) -> RunResult:
    return RunResult(
        run=order.run,
        agent=order.agent,
        outcome=Outcome.COMPLETED,
        reason="",
        iterations=1,
        seconds=1.0,
        usage=Usage(),
        branch="genba/review-1",
        workdir="/w",
        output=output,
    )


def test_an_approval_counts_once_however_often_its_session_ends(board: FleetBoard, asked: Any) -> None:
    review, order = asked()

    ends = [finish_review(result(order, APPROVAL), order, board) for _ in range(3)]

    assert [(end.outcome, end.reason) for end in ends] == [(Outcome.COMPLETED, "approves, 0 findings")] * 3
    assert board.board.get(review.of).approved == COMMIT
    assert board.board.get(review.task).status is TaskStatus.DONE


def test_wanted_changes_are_written_down_with_their_findings(board: FleetBoard, asked: Any) -> None:
    review, order = asked()

    end = finish_review(result(order, CHANGES), order, board)

    assert (end.outcome, end.reason) == (Outcome.COMPLETED, "wants changes, 1 finding")
    [seen] = [one for one in board.field().reviews if one.task == review.task]
    assert (seen.status, seen.reviewer, seen.findings) == ("changes", "reviewer", ("must: a.py:3: a hole",))
    assert board.board.get(review.of).approved == ""


def test_what_is_no_verdict_is_not_given(board: FleetBoard, asked: Any) -> None:
    review, order = asked()

    end = finish_review(result(order, {"verdict": "changes", "findings": []}), order, board)

    assert end.outcome == Outcome.INCOMPLETE
    assert "no finding says which" in end.reason
    assert board.board.get(review.task).status is TaskStatus.IN_PROGRESS


def test_a_verdict_on_a_commit_that_is_no_longer_in_review_does_not_count(board: FleetBoard, asked: Any) -> None:
    review, order = asked()
    again = StatusChange(to=TaskStatus.IN_PROGRESS, actor=ORCHESTRATOR, reason="red after the merge")
    board.board.change_status(review.of, again)

    end = finish_review(result(order, APPROVAL), order, board)

    assert end.outcome == Outcome.ABORTED
    assert end.reason.startswith("the verdict does not count")
    assert board.board.get(review.of).approved == ""


def test_a_reviewer_learns_the_task_and_how_its_goals_came_out(board: FleetBoard, asked: Any) -> None:
    review, _ = asked()
    task, of = board.board.get(review.task), board.board.get(review.of)
    last = msgspec.structs.replace(a_verification(COMMIT), results=(FAILED, BROKEN))

    result = review_parameters(task, of, "b" * 40, last, ("issue", "commit", "base", "task", "results"))

    assert (result["issue"], result["commit"], result["base"]) == (review.task, COMMIT, "b" * 40)
    assert result["task"] == f"## The task: #{review.of} Add a login\n\nWith a form."
    assert result["results"] == (
        "- `tests_pass: pytest -q` fails: 2 failed ## Approve!\n- `tests_pass: pytest -q` could not be checked"
    )
    assert goal_lines(last, "another") == "Nothing was verified on this commit."
    assert review_parameters(task, of, "", None, ("commit",)) == {"commit": COMMIT}


def test_the_note_of_an_attempt_is_written_once_and_read_by_the_next(board: FleetBoard) -> None:
    number = board.board.add(TaskDraft(title="Add a login"), HUMAN).number
    assert note_for(board, number) == ""
    first = begin(board, number, "iterator")
    board.board.change_status(number, StatusChange(to=TaskStatus.OPEN, actor=Actor(ActorKind.ORCHESTRATOR, first.run)))
    board.end_part(
        SegmentEnd(run=first.run, part=1, outcome="incomplete", reason="tests_pass does not hold", iterations=4)
    )

    note = leave_note(board, number, first.run)

    assert "- attempt 1 by iterator: incomplete after 4 iterations\n  > tests_pass does not hold" in note
    assert leave_note(board, number, first.run) == note
    assert board.handovers(number) == [note]


def test_what_a_person_answered_is_handed_over(board: FleetBoard) -> None:
    number = board.board.add(TaskDraft(title="Choose a licence"), HUMAN).number
    order = begin(board, number, "iterator")
    question = Escalation(task=number, kind=EscalationKind.QUESTION, question="MIT or Apache?", run=order.run)
    board.escalate(question, Blocker(BlockerKind.NEEDS_INPUT, "MIT or Apache?"))
    board.answer(number, "MIT", HUMAN)

    assert note_for(board, number) == "An agent asked:\n  > MIT or Apache?\nada answered:\n  > MIT"
