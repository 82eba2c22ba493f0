"""The merge queue on the blackboard: queued once, taken by one, settled once."""

from collections.abc import Callable
from functools import partial

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import Cause, EntryStatus, FleetSession, MergeEntry
from genba.domain.tasks.task import Priority
from tests.blackboard.acting import add, cancel, everything, finish
from tests.blackboard.fleets import begin, go_on, in_review, to_review
from tests.blackboard.test_at_once import at_once


@pytest.fixture
def fleet(board: Blackboard) -> FleetBoard:
    return FleetBoard(board)


def entry_of(session: FleetSession, commit: str = "c1", round_: int = 1, target: str = "main") -> MergeEntry:
    return MergeEntry(task=session.task, run=session.run, branch="genba/1", commit=commit, target=target, round=round_)


def queue(board: Blackboard, fleet: FleetBoard, target: str = "main") -> MergeEntry:
    return fleet.enqueue_merge(entry_of(in_review(board, fleet, reviewed=False), target=target))


def test_verified_work_is_queued_once(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet)
    entry = fleet.enqueue_merge(entry_of(session))
    assert (entry.status, entry.title, entry.agent, entry.priority) == (
        EntryStatus.QUEUED,
        "Work",
        "writer",
        Priority.MEDIUM,
    )
    before = everything(board)
    assert fleet.enqueue_merge(entry_of(session)) == entry
    assert everything(board) == before
    assert fleet.entries() == fleet.entries("main") == [entry]
    assert fleet.entries("other") == []
    assert fleet.field().entries == (entry,)
    with pytest.raises(StateConflictError, match="only a task in review can land"):
        fleet.enqueue_merge(entry_of(begin(fleet, add(board))))


def test_an_entry_is_taken_by_one_and_settled_once(board: Blackboard, fleet: FleetBoard) -> None:
    entry = queue(board, fleet)
    assert [one.status for one in fleet.take([entry.id])] == [EntryStatus.MERGING]
    assert fleet.take([entry.id, 99]) == []
    merged = fleet.settle(entry.id, EntryStatus.MERGED, landed="m1", over="t0")
    assert (merged.status, merged.landed, merged.over) == (EntryStatus.MERGED, "m1", "t0")
    assert merged.finished_at
    before = everything(board)
    assert fleet.settle(entry.id, EntryStatus.FAILED, detail="late") == merged
    assert everything(board) == before
    fleet.release([entry.id])
    assert fleet.entries() == []
    assert fleet.entries(open_only=False) == [merged]
    assert fleet.field().entries == (merged,)  # its session waits to hear of it
    finish(board, entry.task)
    assert fleet.field().entries == ()
    with pytest.raises(NotFoundError, match="no entry 99"):
        fleet.settle(99, EntryStatus.MERGED)


def test_two_turns_take_an_entry_once(open_board: Callable[..., Blackboard]) -> None:
    one, two = FleetBoard(open_board()), FleetBoard(open_board())
    ids = [queue(one.board, one).id for _ in range(4)]
    taken = at_once(partial(one.take, ids), partial(two.take, list(reversed(ids))))
    found = [entry.id for each in taken if isinstance(each, list) for entry in each]
    assert sorted(found) == ids


def test_a_turn_that_died_puts_back_what_it_had_taken(board: Blackboard, fleet: FleetBoard) -> None:
    entry = queue(board, fleet)
    fleet.take([entry.id])
    fleet.release([entry.id])
    fleet.passed_by([entry.id])
    (now,) = fleet.entries()
    assert (now.status, now.turns) == (EntryStatus.QUEUED, 1)


def test_an_entry_that_is_stuck_is_tried_again(board: Blackboard, fleet: FleetBoard) -> None:
    entry = queue(board, fleet)
    fleet.take([entry.id])
    stuck = fleet.settle(entry.id, EntryStatus.STUCK, detail="a rebase is going on")
    assert (stuck.status, stuck.detail) == (EntryStatus.STUCK, "a rebase is going on")
    assert stuck.finished_at
    (taken,) = fleet.take([entry.id])
    assert (taken.status, taken.finished_at) == (EntryStatus.MERGING, "")


def test_a_conflict_names_its_paths_and_a_new_commit_is_a_new_entry(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet, reviewed=False)
    first = fleet.enqueue_merge(entry_of(session))
    result = fleet.settle(
        first.id, EntryStatus.CONFLICT, paths=("a.py", "b\udcff"), detail="both changed it", over="t1"
    )
    assert result.paths == ("a.py", "b?")
    again = fleet.continue_(go_on(session, Cause.CONFLICT), executor="here")
    assert again.rounds == 1
    assert fleet.field().entries == (result,)
    to_review(board, fleet, again, "c2")
    second = fleet.enqueue_merge(entry_of(session, "c2", 2))
    assert second.id != first.id
    assert fleet.field().entries == (second,)


def test_what_was_withdrawn_can_be_queued_again(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet, reviewed=False)
    entry = fleet.enqueue_merge(entry_of(session))
    for _ in range(2):
        fleet.withdraw(session.task)
    assert [one.status for one in fleet.entries(open_only=False)] == [EntryStatus.WITHDRAWN]
    again = fleet.enqueue_merge(entry_of(session))
    assert (again.id, again.status, again.finished_at) == (entry.id, EntryStatus.QUEUED, "")


def test_what_has_landed_has_landed(board: Blackboard, fleet: FleetBoard) -> None:
    entry = queue(board, fleet)
    fleet.take([entry.id])
    fleet.withdraw(entry.task)
    assert fleet.settle(entry.id, EntryStatus.MERGED, landed="m1").status is EntryStatus.MERGED


def test_work_that_leaves_review_leaves_the_queue(board: Blackboard, fleet: FleetBoard) -> None:
    session = in_review(board, fleet, reviewed=False)
    fleet.enqueue_merge(entry_of(session))
    fleet.continue_(go_on(session, Cause.FINDINGS), executor="here")
    cancelled = queue(board, fleet)
    cancel(board, cancelled.task)
    assert fleet.entries() == []
    assert {one.status for one in fleet.entries(open_only=False)} == {EntryStatus.WITHDRAWN}
