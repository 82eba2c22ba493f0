"""The blackboard as a tracker: the suite of every tracker, and what closing means here."""

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.local_tracker import BlackboardTracker
from genba.domain.errors import GenbaError, StateConflictError
from genba.domain.ports import Tracker
from genba.domain.tasks.task import TaskDraft, TaskStatus
from genba.domain.tracker.issues import IssueChange
from genba.testing.conformance import TrackerSuite
from tests.blackboard.acting import HUMAN, add, cancel, everything, review


class TestBlackboardTracker(TrackerSuite):
    @pytest.fixture
    def tracker(self, board: Blackboard) -> Tracker:
        board.add(TaskDraft(title="One", body="Text", labels=("docs", "old")), HUMAN)
        review(board, 1)
        return BlackboardTracker(board)


async def test_an_issue_is_closed_when_its_task_has_ended(board: Blackboard) -> None:
    first, second = add(board), add(board)
    cancel(board, second)
    tracker = BlackboardTracker(board)
    assert (await tracker.read(first)).state == "open"
    assert (await tracker.read(second)).state == "closed"
    before = everything(board)
    await tracker.change(second, IssueChange(close=True))
    assert everything(board) == before


async def test_closing_is_the_way_from_review_to_done(board: Blackboard) -> None:
    number = add(board)
    review(board, number, "c7")
    await BlackboardTracker(board).change(number, IssueChange(close=True))
    last = board.events(number)[-1]
    assert board.get(number).status is TaskStatus.DONE
    assert (last.data["commit"], last.data["finalized"], last.actor.kind) == (
        "c7",
        "closed by its run",
        "orchestrator",
    )


async def test_what_the_gateway_refuses_is_not_closed_and_nothing_of_the_change_stays(board: Blackboard) -> None:
    number = add(board)
    change = IssueChange(add_labels=("new",), comment="Done!", close=True)
    before = everything(board)
    with pytest.raises(GenbaError):
        await BlackboardTracker(board).change(number, change)
    assert everything(board) == before

    careful = board.add(TaskDraft(title="Careful", requires_review=True), HUMAN).number
    review(board, careful)
    with pytest.raises(StateConflictError, match="no reviewer has approved"):
        await BlackboardTracker(board).change(careful, IssueChange(close=True))


async def test_the_same_comment_is_written_once(board: Blackboard) -> None:
    number = add(board)
    tracker = BlackboardTracker(board)
    for text in ("Blocked: a", "Blocked: b", "Blocked: a"):
        await tracker.change(number, IssueChange(comment=text))
    assert [message.body for message in board.comments(number)] == ["Blocked: a", "Blocked: b"]
