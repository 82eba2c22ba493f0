"""What is looked at of one task, and of what was decided: bounded, and the same on both databases."""

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.views import task_views as windows
from genba.domain.fleet.records import EntryStatus, Escalation, EscalationKind, MergeEntry
from genba.domain.goals.verification import VerdictStatus
from genba.domain.tasks.task import TaskDraft
from genba.testing.conformance import a_verification
from tests.blackboard.acting import HUMAN
from tests.blackboard.fleets import begin, to_review


def test_the_relations_of_a_task_are_read_in_both_directions(board: Blackboard) -> None:
    for draft in (
        TaskDraft(title="Whole"),
        TaskDraft(title="First", parent=1),
        TaskDraft(title="Second", parent=1, dependencies=(2,)),
    ):
        board.add(draft, HUMAN)
    whole, first, second = (board.get(number).id for number in (1, 2, 3))

    read = board.store.read
    above = read(lambda tx: windows.parent(tx, second))
    assert above is not None
    assert (above.number, above.title) == (1, "Whole")
    assert read(lambda tx: windows.parent(tx, whole)) is None
    assert [each.number for each in read(lambda tx: windows.parts(tx, whole))] == [2, 3]
    assert [each.number for each in read(lambda tx: windows.waits_for(tx, second))] == [2]
    assert [each.number for each in read(lambda tx: windows.waited_for_by(tx, first))] == [3]


def test_of_verdicts_comments_and_events_the_newest_are_read(board: Blackboard) -> None:
    task = board.add(TaskDraft(title="Make tea"), HUMAN)
    other = board.add(TaskDraft(title="Another"), HUMAN)
    for each in range(5):
        board.comment(1, f"comment {each}", HUMAN)
        board.record_verification(1, "", a_verification(f"c{each}"))

    read = board.store.read
    verdicts = read(lambda tx: windows.verdicts(tx, task.id, 3))
    assert [each.commit for each in verdicts] == ["c4", "c3", "c2"]
    found = read(lambda tx: windows.verdict(tx, task.id, verdicts[0].id))
    assert found is not None
    assert (found.subject.commit, found.status) == ("c4", VerdictStatus.DONE)
    assert read(lambda tx: windows.verdict(tx, other.id, verdicts[0].id)) is None, "it is the verdict of another task"
    assert [each.body for each in read(lambda tx: windows.comments(tx, task.id, 2))] == ["comment 3", "comment 4"]
    events, total = read(lambda tx: windows.events(tx, task.id, 4))
    assert (len(events), total) == (4, len(board.events(1)))
    assert list(events) == board.events(1)[:-5:-1]


def test_places_in_the_merge_queue_and_decisions_are_read_newest_first(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    task = board.add(TaskDraft(title="Make tea"), HUMAN)
    session = to_review(board, fleet, begin(fleet, 1), "c1")
    entry = MergeEntry(task=1, run=session.run, branch="genba/1", commit="c1", target="main")
    first = fleet.enqueue_merge(entry)
    fleet.settle(first.id, EntryStatus.CONFLICT, paths=("tea.py",))
    for number, kind in enumerate((EscalationKind.ATTEMPTS, EscalationKind.BUDGET)):
        fleet.escalate(Escalation(task=1, kind=kind, question=f"question {number}"))
        fleet.decide(1, True, f"yes {number}", HUMAN)
    fleet.escalate(Escalation(task=1, kind=EscalationKind.QUESTION, question="still open"))

    (kept,) = board.store.read(lambda tx: windows.entries(tx, task.id))
    decided, titles = board.store.read(windows.decided)

    assert (kept.status, kept.paths) == (EntryStatus.CONFLICT, ("tea.py",))
    assert [each.answer for each in decided] == ["yes 1", "yes 0"]
    assert titles == {1: "Make tea"}
    assert board.store.read(lambda tx: windows.messages(tx, task.id)) == ()
