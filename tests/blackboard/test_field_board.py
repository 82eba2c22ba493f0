"""What the facilitator reads and keeps on the blackboard: the same on SQLite and on PostgreSQL."""

from genba.blackboard.board import Blackboard
from genba.blackboard.field_board import FieldBoard
from genba.blackboard.outbox import Outbox
from genba.domain.facilitation import FacilitateAction, How, IssueAssessment, IssueState, SeenCommit
from genba.domain.outbox import KeepComment
from genba.domain.tasks import StatusChange, TaskDraft, TaskStatus
from tests.blackboard.acting import HUMAN, add

COMMIT = SeenCommit(sha="a" * 40, time="2026-01-05T08:00:00.000000Z", how=How.TRAILER, on_base=True)
BLOCKED = IssueAssessment(issue=2, state=IssueState.BLOCKED, evidence=("waits for #1",), recommendation="wait")
ACTIONS = (
    FacilitateAction(action="comment", issue=2, body="**State: blocked**"),
    FacilitateAction(action="label", issue=2, body="waits for #1", label="blocked"),
)


def test_it_reads_tasks_with_what_they_wait_for_and_what_happened_to_them(board: Blackboard) -> None:
    first, second = board.get(add(board, "Boil water")), board.get(add(board, "Make tea"))
    board.depend(second.number, first.number, HUMAN)
    ground = FieldBoard(board).read()
    assert [task.title for task in ground.tasks.values()] == ["Boil water", "Make tea"]
    assert ground.dependencies == {second.id: [first.id]}
    assert set(ground.happened) == {first.id, second.id}
    assert ground.newest_event > 0


def test_a_task_that_came_back_says_when(board: Blackboard) -> None:
    task = board.get(add(board, "Boil water"))
    board.change_status(task.number, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    assert FieldBoard(board).read().reopened == {}
    board.change_status(task.number, StatusChange(to=TaskStatus.OPEN, actor=HUMAN))
    assert set(FieldBoard(board).read().reopened) == {task.id}


def test_what_is_kept_is_there_at_the_next_look(board: Blackboard) -> None:
    add(board, "Boil water")
    add(board, "Make tea")
    kept = FieldBoard(board)
    kept.keep({2: "stamp"}, {2: BLOCKED}, {1: [COMMIT]}, {"git": "here"}, anew=True)
    kept.keep({}, {}, {1: [COMMIT, COMMIT]}, {"git": "there"}, anew=False)
    ground = kept.read()
    assert (ground.kept[2].assessment, ground.kept[2].stamp) == (BLOCKED, "stamp")
    assert dict(kept.commits([1, 2])) == {1: [COMMIT, COMMIT]}
    assert dict(kept.commits([2])) == {}
    assert ground.positions == {"git": "there"}
    kept.keep({}, {}, {}, {}, anew=True, gone=[2])
    assert (kept.read().kept, dict(kept.commits([1]))) == ({}, {})


def test_what_is_said_twice_stands_there_once(board: Blackboard) -> None:
    add(board, "Boil water")
    add(board, "Make tea")
    kept = FieldBoard(board)
    for _ in range(2):
        kept.say(2, ACTIONS, "blocked", "digest")
    assert [comment.body for comment in board.comments(2)] == ["**State: blocked**"]
    assert board.get(2).labels == ("blocked",)
    assert (kept.read().kept[2].said, kept.read().kept[2].said_state) == ("digest", "blocked")
    assert Outbox(board.store).list() == ()


def test_of_an_issue_that_lives_elsewhere_it_goes_out_by_the_outbox(board: Blackboard) -> None:
    board.add(TaskDraft(title="Make tea", tracker="github", number=2), HUMAN)
    kept = FieldBoard(board)
    for _ in range(2):
        kept.say(2, ACTIONS, "blocked", "digest")
    comment, labels = Outbox(board.store).list()
    assert comment.deed == KeepComment(issue=2, name="facilitator", body="**State: blocked**")
    assert labels.lane == comment.lane == "issue:2"
    assert board.comments(2) == []
