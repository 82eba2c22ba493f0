"""Verdicts and their evidence, as they were found."""

import msgspec
import pytest

from genba.blackboard.database.store import Statement
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import NotFoundError
from genba.domain.goals.goal import CommitsExist, FrozenGoal, GoalLevel, GoalSource, ResponseContains, TestsPass
from genba.domain.goals.verification import (
    BranchArtifact,
    CommitArtifact,
    FileArtifact,
    GoalResult,
    RejectionReason,
    Subject,
    VerdictStatus,
    Verification,
)
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.tasks.task import TaskDraft
from genba.testing.conformance import a_session, a_verification
from tests.blackboard.acting import HUMAN, add, everything

CRITERION = ResponseContains(url="/x", text="hello")


def result(goal: FrozenGoal, status: CheckStatus, output: str = "") -> GoalResult:
    return GoalResult(goal=goal, result=CheckResult("x", status, "detail", output, 1.5), log="log-1")


def frozen(level: GoalLevel, goal: TestsPass | CommitsExist | ResponseContains) -> FrozenGoal:
    return FrozenGoal(level=level, source=GoalSource.PROJECT_CONFIG, origin="config at main", goal=goal)


REJECTED = Verification(
    status=VerdictStatus.REJECTED,
    reason=RejectionReason.GOALS_NOT_MET,
    subject=Subject(commit="c1", base="c0", branch="genba/1", base_branch="main", dirty=("a",)),
    tree="t1",
    commits=2,
    findings=("an empty commit",),
    artifacts=(
        CommitArtifact(sha="c1", branch="genba/1"),
        FileArtifact(path="a", checksum="b1"),
        BranchArtifact(name="genba/1", base_branch="main"),
    ),
    results=(
        result(frozen(GoalLevel.DOD, TestsPass(command="pytest")), CheckStatus.FAILED, "1 failed\0"),
        result(frozen(GoalLevel.TYPE_RULE, CommitsExist(required=False)), CheckStatus.ERROR),
        result(frozen(GoalLevel.ACCEPTANCE_CRITERIA, CRITERION), CheckStatus.PASSED),
    ),
    seconds=3.25,
)


def count(board: Blackboard, statement: str) -> list[tuple[object, ...]]:
    return board.store.read(lambda tx: tx.all(Statement(statement)))


def test_a_verdict_is_read_as_it_was_written(board: Blackboard) -> None:
    number = board.add(TaskDraft(title="x", goals=(CRITERION,)), HUMAN).number
    assert board.last_verification(number) is None
    board.begin_session(number, a_session("run-1"))
    before = board.get(number)
    board.record_verification(number, "run-1", REJECTED)

    assert board.last_verification(number) == REJECTED
    assert board.get(number) == before
    assert board.events(number)[-1].kind == "verified"
    assert board.events(number)[-1].data["reason"] == "goals_not_met"
    assert [row[0] for row in count(board, "SELECT type FROM artifacts ORDER BY id")] == ["commit", "file", "branch"]
    results = count(
        board,
        "SELECT g.level, g.type, r.status, r.passed, r.details, r.log FROM goal_results r"
        " JOIN task_goals g ON g.id = r.goal_id"
        " JOIN sessions s ON s.id = r.session_id WHERE s.run = 'run-1' ORDER BY r.id",
    )
    assert results == [
        ("dod", "tests_pass", "failed", False, "detail", "log-1"),
        ("type_rule", "commits_exist", "error", False, "detail", "log-1"),
        ("acceptance_criteria", "response_contains", "passed", True, "detail", "log-1"),
    ]


def test_the_same_goal_is_written_down_once_however_often_it_is_checked(board: Blackboard) -> None:
    number = board.add(TaskDraft(title="x", goals=(CRITERION, CRITERION)), HUMAN).number
    board.record_verification(number, "", REJECTED)
    board.record_verification(number, "", REJECTED)
    assert count(board, "SELECT count(*) FROM task_goals") == [(3,)]
    assert count(board, "SELECT count(*) FROM goal_results") == [(6,)]
    assert board.get(number).goals == (CRITERION,)


def test_the_newest_verdict_is_the_last_one(board: Blackboard) -> None:
    number = add(board)
    board.record_verification(number, "", a_verification("c1"))
    board.record_verification(number, "run-unknown", a_verification("c2"))
    last = board.last_verification(number)
    assert last is not None
    assert last.subject.commit == "c2"


def test_output_that_is_no_text_is_kept_as_far_as_it_can_be(board: Blackboard) -> None:
    number = add(board)
    strange = result(frozen(GoalLevel.DOD, CommitsExist()), CheckStatus.FAILED, "half \udcff")
    board.record_verification(number, "r\0", msgspec.structs.replace(REJECTED, results=(strange,)))
    last = board.last_verification(number)
    assert last is not None
    assert last.results[0].result.output == "half ?"


def test_a_verdict_on_nothing_is_refused_and_leaves_nothing(board: Blackboard) -> None:
    before = everything(board)
    with pytest.raises(NotFoundError):
        board.record_verification(9, "", REJECTED)
    with pytest.raises(NotFoundError):
        board.last_verification(9)
    assert everything(board) == before
    assert count(board, "SELECT count(*) FROM verifications") == [(0,)]
