"""The process dies at every boundary of every step: each merge is made once, and everything ends as it would have."""

import msgspec
import pytest

from genba.domain.fleet.merge_queue import MergeHistory
from genba.domain.fleet.records import EntryStatus
from tests.coordination.queue_floor import Killed, MemoryQueue, QueueFloor, Remembered, number
from tests.project import Project

HISTORIES = pytest.mark.parametrize("history", list(MergeHistory))
AFTERWARDS = {1: EntryStatus.MERGED, 2: EntryStatus.CONFLICT, 3: EntryStatus.FAILED, 4: EntryStatus.MERGED}


async def _floor(project: Project) -> QueueFloor:
    """Four entries: one that lands, one in conflict with it, one that is red, and one that lands."""
    project.write("sum.txt", "0\n")
    project.write("shared.txt", "one\n")
    project.commit("Begin the sum")
    floor = await QueueFloor.make(project)
    floor.entry(1, {"shared.txt": "eins\n"})
    floor.entry(2, {"shared.txt": "un\n"})
    floor.entry(3, number(3, 3))
    floor.entry(4, {"four.txt": "4\n"})
    project.git("tag", "before", "main")
    return floor


async def _again(before: QueueFloor) -> QueueFloor:
    """The same entries, and a target on which nothing has landed."""
    project, board = before.project, MemoryQueue()
    project.git("reset", "-q", "--hard", "before")
    for ref in project.git("for-each-ref", "--format=%(refname)", "refs/genba").splitlines():
        project.git("update-ref", "-d", ref)
    for row in before.board.rows.values():
        board.add(msgspec.structs.replace(row, status=EntryStatus.QUEUED, turns=0, landed="", over=""))
    return await QueueFloor.make(project, board=board)


async def _dies(floor: QueueFloor, history: MergeHistory, steps: Remembered, batch: int) -> bool:
    """Whether the turn was killed before it came to its end."""
    try:
        await floor.run(history=history, steps=steps, batch=batch)
    except Killed:
        return True
    return False


async def _rest(floor: QueueFloor, history: MergeHistory, batch: int) -> None:
    """The turn after the one that made a death good: it has ended with what the dead one had in hand."""
    assert not await _dies(floor, history, Remembered(), batch)


def _check(floor: QueueFloor, history: MergeHistory) -> None:
    assert {task: floor.status(task) for task in AFTERWARDS} == AFTERWARDS
    assert floor.board.merges == [1, 4], "each merge is written down once"
    first = "" if history is MergeHistory.LINEAR else "Merge "
    log = floor.log("--first-parent")
    assert log == [f"{first}Task 4 (#4)", f"{first}Task 1 (#1)", "Begin the sum", "Begin"]
    landed = floor.project.git("rev-list", "--first-parent", "main").splitlines()
    assert [floor.row(4).landed, floor.row(1).landed] == landed[:2]
    assert floor.project.git("status", "--porcelain") == ""
    assert floor.all_green()


async def _boundaries(floor: QueueFloor, history: MergeHistory, batch: int) -> int:
    steps = Remembered()
    assert not await _dies(floor, history, steps, batch)
    _check(floor, history)
    assert steps.done > 10
    return steps.done


@HISTORIES
@pytest.mark.parametrize("batch", [1, 4])
async def test_a_turn_that_is_killed_anywhere_goes_on_where_it_was(
    project: Project, history: MergeHistory, batch: int
) -> None:
    floor = await _floor(project)
    for at in range(await _boundaries(floor, history, batch)):
        floor, steps = await _again(floor), Remembered()
        steps.dies_at = at

        assert await _dies(floor, history, steps, batch)
        assert not await _dies(floor, history, steps, batch)
        await _rest(floor, history, batch)

        _check(floor, history)


@HISTORIES
async def test_a_lost_merge_attempt_is_completed_by_the_next_one(project: Project, history: MergeHistory) -> None:
    floor = await _floor(project)
    for at in range(await _boundaries(floor, history, 1)):
        floor, steps = await _again(floor), Remembered()
        steps.dies_at = at

        assert await _dies(floor, history, steps, 1)
        assert not await _dies(floor, history, Remembered(), 1)
        await _rest(floor, history, 1)

        _check(floor, history)


@HISTORIES
async def test_who_dies_again_and_again_still_merges_each_once(project: Project, history: MergeHistory) -> None:
    floor, steps = await _floor(project), Remembered()
    deaths = 0
    for _ in range(200):
        steps.dies_at = steps.done + 2
        if not await _dies(floor, history, steps, 1):
            break
        deaths += 1

    assert deaths > 5
    await _rest(floor, history, 1)
    _check(floor, history)
