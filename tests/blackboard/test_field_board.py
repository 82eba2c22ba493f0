"""What the facilitator reads and keeps on the blackboard: the same on SQLite and on PostgreSQL."""

import msgspec

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.outbox import Outbox
from genba.blackboard.triage.triage_board import ENDED, BoardRecords, FieldBoard, Keeps
from genba.domain.facilitation import FacilitateAction, IssueAssessment, IssueState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionEnd, SessionStart
from genba.domain.tasks.task import StatusChange, TaskDraft, TaskEdit, TaskStatus
from genba.domain.tracker.outbox import KeepComment
from tests.blackboard.acting import HUMAN, add

COMMIT = "a" * 40
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
    here = Keeps(assessments={2: ("stamp", BLOCKED)}, commits={1: [COMMIT]}, positions={"git": "here"}, full=True)
    kept.keep(here)
    kept.keep(Keeps(assessments={}, commits={1: [COMMIT, "b" * 40]}, positions={"git": "there"}))
    ground = kept.read()
    assert (ground.kept[2].assessment, ground.kept[2].stamp) == (BLOCKED, "stamp")
    assert kept.kept([1, 2]) == ground.kept
    assert kept.commits([1, 2]) == {1: [COMMIT, "b" * 40]}
    assert kept.commits([2]) == {}
    assert ground.positions == kept.positions() == {"git": "there"}
    kept.keep(Keeps(assessments={}, commits={}, positions={}, full=True, gone=(2,)))
    assert (kept.read().kept, kept.commits([1])) == ({}, {})


def at_rest(board: Blackboard, *numbers: int) -> None:
    judged = {
        number: (
            board.get(number).updated_at,
            IssueAssessment(issue=number, state=IssueState.DONE, evidence=("closed",), recommendation="", closed=True),
        )
        for number in numbers
    }
    newest = str(FieldBoard(board).read().newest_event + 1000)
    FieldBoard(board).keep(Keeps(assessments=judged, commits={}, positions={"event": newest}))


def test_what_rests_is_left_out_until_it_changes(board: Blackboard) -> None:
    kept = FieldBoard(board)
    for title in ("Boil water", "Make tea", "Drink it"):
        add(board, title)
    for number in (1, 2):
        board.change_status(number, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    assert (numbers(kept.read([])), kept.read([]).resting) == ([1, 2, 3], frozenset())
    at_rest(board, 1, 2)
    assert (numbers(kept.read([])), kept.read([]).resting) == ([3], frozenset({1, 2}))
    assert (numbers(kept.read([2, 99])), kept.read([2]).resting) == ([2, 3], frozenset({1}))
    assert numbers(kept.read()) == [1, 2, 3]
    board.edit(1, TaskEdit(title="Boil more water"), HUMAN)
    assert (numbers(kept.read([])), kept.read([]).resting) == ([1, 3], frozenset({2}))


def test_what_rests_is_seen_beside_those_who_have_to_do_with_it(board: Blackboard) -> None:
    kept = FieldBoard(board)
    whole = board.add(TaskDraft(title="Have tea"), HUMAN).number
    parts = [board.add(TaskDraft(title=title, parent=whole), HUMAN).number for title in ("Boil water", "Make tea")]
    before = add(board, "Buy tea")
    board.depend(parts[1], before, HUMAN)
    for number in (parts[0], before):
        board.change_status(number, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    at_rest(board, parts[0], before)
    assert (numbers(kept.read([])), kept.read([]).resting) == ([whole, *parts, before], frozenset({parts[0], before}))


def test_which_tasks_rest_is_not_asked_again_while_none_of_them_changed(board: Blackboard) -> None:
    kept = FieldBoard(board)
    add(board, "Boil water")
    board.change_status(1, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    at_rest(board, 1)
    ended = kept.read([]).ended
    assert (ended.resting, ended.moving) == ([1], [])
    kept.keep(Keeps(assessments={}, commits={}, positions={ENDED: msgspec.json.encode(ended).decode()}))
    assert kept.read([]).ended == ended
    kept.say(1, (), "done", "digest")
    assert kept.read([]).ended.moving == [1]


def test_a_task_that_ended_is_looked_at_while_a_session_of_it_goes_on(board: Blackboard) -> None:
    kept = FieldBoard(board)
    add(board, "Boil water")
    start = SessionStart(run="run-1", agent="iterator", branch="genba/1-boil", base="main", workdir="")
    board.begin_session(1, start)
    board.change_status(1, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    at_rest(board, 1)
    held = numbers(kept.read([]))
    board.end_session(SessionEnd(run="run-1", outcome=Outcome.FAILED, reason="it was cancelled"))
    at_rest(board, 1)
    assert (held, numbers(kept.read([])), numbers(kept.read([], ["genba/1-boil"]))) == ([1], [], [1])
    assert kept.before()[1] == {"genba/1-boil"}


def numbers(ground: BoardRecords) -> list[int]:
    return [task.number for task in ground.tasks.values()]


def test_repeated_text_is_kept_once(board: Blackboard) -> None:
    add(board, "Boil water")
    add(board, "Make tea")
    kept = FieldBoard(board)
    for _ in range(2):
        kept.say(2, ACTIONS, "blocked", "digest")
    assert [comment.body for comment in board.comments(2)] == ["**State: blocked**"]
    assert board.get(2).labels == ("blocked",)
    assert (kept.read().kept[2].posted, kept.read().kept[2].posted_state) == ("digest", "blocked")
    assert Outbox(board.store).list() == ()


def test_of_an_issue_that_lives_elsewhere_it_goes_out_by_the_outbox(board: Blackboard) -> None:
    board.add(TaskDraft(title="Make tea", tracker="github", number=2), HUMAN)
    kept = FieldBoard(board)
    for _ in range(2):
        kept.say(2, ACTIONS, "blocked", "digest")
    comment, labels = Outbox(board.store).list()
    assert comment.change == KeepComment(issue=2, name="facilitator", body="**State: blocked**")
    assert labels.lane == comment.lane == "issue:2"
    assert board.comments(2) == []
