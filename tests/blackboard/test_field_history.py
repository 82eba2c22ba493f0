"""What the blackboard tells of the past: the same on SQLite and on PostgreSQL."""

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.triage.task_events import history
from genba.blackboard.triage.triage_board import FieldBoard
from genba.domain.facilitation import FacilitateAction
from genba.domain.tasks.task import StatusChange, TaskStatus
from tests.blackboard.acting import HUMAN, add


def test_changes_and_comments_of_people_are_reported_and_those_of_genba_are_not(board: Blackboard) -> None:
    number = add(board, "Boil water")
    board.comment(number, "100 % please: now", HUMAN)
    board.comment(number, "by hand\n<!-- genba:facilitator -->", HUMAN)
    board.change_status(number, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN, reason="no\ntea"))
    output = FacilitateAction(action="comment", issue=number, body="**State: done**")
    FieldBoard(board).say(number, [output], "done", "digest")
    found = [(fact.type, fact.issue, fact.who, fact.detail) for fact in history(board.store)]
    assert found == [
        ("status_changed", number, HUMAN.name, "open → cancelled: no tea"),
        ("commented", number, HUMAN.name, ""),
    ]
