from hypothesis import given
from hypothesis import strategies as st

from genba.domain.fleet.records import EntryStatus, MergeEntry
from genba.domain.tasks.task import Priority
from genba.judgement.scheduling.queue_order import TURNS_PER_RANK, halves, in_order, next_batch
from tests.coordination.queue_floor import QueueFloor
from tests.project import Project

LONGEST_AGEING = TURNS_PER_RANK * len(Priority)
"""After so many queue passes no newer entry goes first, whatever its priority."""

C, H, M, L = Priority.CRITICAL, Priority.HIGH, Priority.MEDIUM, Priority.LOW


def _entry(number: int, priority: Priority = M, turns: int = 0, status: EntryStatus = EntryStatus.QUEUED) -> MergeEntry:
    return MergeEntry(
        id=number, task=number, run="", branch="", commit="", target="main", priority=priority, turns=turns,
        status=status,
    )  # fmt: skip


def _ids(entries: tuple[MergeEntry, ...]) -> list[int]:
    return [entry.id for entry in entries]


def test_priority_comes_first_and_then_the_oldest() -> None:
    assert _ids(in_order([_entry(1, L), _entry(2, M), _entry(3, C), _entry(4, M), _entry(5, H)])) == [3, 5, 2, 4, 1]


def test_turns_that_pass_an_entry_by_raise_it() -> None:
    assert _ids(in_order([_entry(2, M), _entry(1, L, TURNS_PER_RANK - 1)])) == [2, 1]
    assert _ids(in_order([_entry(2, M), _entry(1, L, TURNS_PER_RANK)])) == [1, 2]


def test_what_was_stuck_goes_after_the_others_of_its_rank() -> None:
    stuck = _entry(1, M, status=EntryStatus.STUCK)
    assert _ids(in_order([stuck, _entry(2, M), _entry(3, L)])) == [2, 1, 3]


def test_what_has_ended_or_is_being_merged_is_not_taken() -> None:
    left = [_entry(number, status=status) for number, status in enumerate(EntryStatus)]
    assert {entry.status for entry in in_order(left)} == {EntryStatus.QUEUED, EntryStatus.STUCK}


def test_a_batch_is_no_larger_than_it_may_be_and_leaves_out_what_was_tried() -> None:
    waiting = [_entry(number) for number in range(1, 6)]
    assert _ids(next_batch(waiting, 2)) == [1, 2]
    assert _ids(next_batch(waiting, 2, tried={1, 3})) == [2, 4]
    assert _ids(next_batch(waiting, 0)) == [1]


def test_a_red_batch_is_cut_in_two_until_one_is_left() -> None:
    assert halves((1, 2, 3, 4, 5)) == ((1, 2, 3), (4, 5))
    assert halves((1, 2)) == ((1,), (2,))
    assert halves((1,)) == ((1,),)


@given(st.lists(st.sampled_from([C, H, M, L]), min_size=LONGEST_AGEING + 1, max_size=LONGEST_AGEING + 40))
def test_an_entry_of_the_lowest_priority_is_taken_after_a_bounded_number_of_turns(newcomers: list[Priority]) -> None:
    """Each turn takes one, and something newer comes in, as important as it likes."""
    waiting = [_entry(0, L)]
    for turn, priority in enumerate(newcomers):
        waiting.append(_entry(turn + 1, priority))
        taken = next_batch(waiting, 1)[0]
        if taken.id == 0:
            assert turn <= LONGEST_AGEING
            return
        waiting = [
            _entry(entry.id, entry.priority, entry.turns + 1) for entry in waiting if entry.id != taken.id
        ]  # fmt: skip
    raise AssertionError("it starved")


async def test_the_queue_itself_lets_nothing_starve(project: Project) -> None:
    """Each turn takes one of two critical ones, and another one comes in; the low one lands all the same."""
    floor = await QueueFloor.make(project)
    commit = floor.branch(1, {"low.txt": "x\n"})
    floor.queue(1, commit, priority=L)
    project.git("branch", "genba/0-work", commit)

    for turn in range(LONGEST_AGEING + 2):
        # Nothing is left to merge of these: they only stand in the way.
        floor.queue(1000 + turn, project.git("rev-parse", "main"), branch="main", priority=C)
        await floor.run(most_taken=1)
        if floor.status(1) is EntryStatus.MERGED:
            break

    assert floor.status(1) is EntryStatus.MERGED
    assert floor.row(1).turns <= LONGEST_AGEING
