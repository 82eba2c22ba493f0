"""The merge queue over a real blackboard: what a turn writes is what the orchestrator reads."""

from collections.abc import Iterator

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.merge_queue.queue import MergeQueue
from genba.domain.fleet.merge_queue import QueuePassOrder, QueuePassReport
from genba.domain.fleet.records import EntryStatus, MergeEntry
from genba.domain.tasks.task import Priority, StatusChange, TaskDraft, TaskStatus
from genba.testing.conformance import a_verification
from tests.blackboard.acting import HUMAN, ORCHESTRATOR
from tests.coordination.queue_floor import Killed, QueueFloor, Remembered, number
from tests.project import Project


class Board:
    """A blackboard with tasks in review, and the floor whose branches they are."""

    def __init__(self, floor: QueueFloor, fleet: FleetBoard) -> None:
        self.floor = floor
        self.fleet = fleet

    def queued(self, title: str, files: dict[str, str], priority: Priority = Priority.MEDIUM) -> int:
        """A task whose verified work is in the queue."""
        board = self.fleet.board
        task = board.add(TaskDraft(title=title, priority=priority), HUMAN).number
        commit = self.floor.branch(task, files)
        board.change_status(task, StatusChange(to=TaskStatus.IN_PROGRESS, actor=ORCHESTRATOR))
        board.record_verification(task, "", a_verification(commit))
        board.change_status(task, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit=commit))
        entry = MergeEntry(task=task, run=f"worker-{task}", branch=f"genba/{task}-work", commit=commit, target="main")
        self.fleet.enqueue_merge(entry)
        return task

    async def run(self, steps: Remembered | None = None, batch: int = 1) -> QueuePassReport:
        turn = MergeQueue(self.fleet, self.floor.target, self.floor.verify, self.floor.news.append)
        return await turn.run(QueuePassOrder(target="main", batch=batch), steps or Remembered())

    def row(self, task: int) -> MergeEntry:
        return next(row for row in self.fleet.entries(open_only=False) if row.task == task)


@pytest.fixture
async def floor(project: Project) -> QueueFloor:
    project.write("sum.txt", "0\n")
    project.write("shared.txt", "one\n")
    project.commit("Begin the sum")
    return await QueueFloor.make(project)


@pytest.fixture
def board(floor: QueueFloor, address: str) -> Iterator[Board]:
    opened = Blackboard.open(address, "a project")
    yield Board(floor, FleetBoard(opened))
    opened.close()


async def test_what_a_turn_found_stands_on_the_blackboard(board: Board) -> None:
    lands = board.queued("Lands", {"shared.txt": "eins\n"})
    conflicts = board.queued("Conflicts", {"shared.txt": "un\n"})
    red = board.queued("Is red", number(3, 3))

    report = await board.run()

    assert (report.merged, report.conflict, report.failed) == ((lands,), (conflicts,), (red,))
    tip = board.floor.project.git("rev-parse", "main")
    assert (board.row(lands).status, board.row(lands).landed) == (EntryStatus.MERGED, tip)
    assert (board.row(conflicts).paths, board.row(conflicts).over) == (("shared.txt",), tip)
    assert "sum.txt says 0" in board.row(red).detail
    assert board.fleet.entries() == []
    assert board.floor.log("-1") == ["Merge Lands (#1)"]


async def test_the_more_important_goes_first_and_the_others_are_passed_by(board: Board) -> None:
    low = board.queued("Later", {"low.txt": "x\n"}, Priority.LOW)
    critical = board.queued("Now", {"critical.txt": "x\n"}, Priority.CRITICAL)

    report = await board.run()

    assert report.merged == (critical, low)
    assert (board.row(low).turns, board.row(critical).turns) == (1, 0)


async def test_what_is_in_the_way_is_written_to_everything_that_waits(board: Board) -> None:
    tasks = tuple(board.queued(f"Task {letter}", {f"{letter}.txt": "x\n"}) for letter in "abc")
    board.floor.project.write("shared.txt", "half a thought\n")

    assert (await board.run()).stuck == tasks
    assert {board.row(task).status for task in tasks} == {EntryStatus.STUCK}
    assert all("uncommitted changes (shared.txt)" in board.row(task).detail for task in tasks)

    board.floor.project.git("checkout", "-q", "shared.txt")
    assert (await board.run()).merged == tasks


@pytest.mark.parametrize("remembered", [True, False])
async def test_who_dies_again_and_again_still_merges_each_once(board: Board, remembered: bool) -> None:
    tasks = [board.queued(f"Task {letter}", {f"{letter}.txt": "x\n"}) for letter in "abcd"]
    steps, deaths = Remembered(), 0
    for _ in range(200):
        steps = steps if remembered else Remembered()
        steps.dies_at = steps.done + (2 if remembered else 4 + deaths % 4)
        try:
            await board.run(steps)
            break
        except Killed:
            deaths += 1

    assert deaths > 3
    assert [board.row(task).status for task in tasks] == [EntryStatus.MERGED] * 4
    landed = board.floor.project.git("rev-list", "--first-parent", "--reverse", "main").splitlines()[2:]
    assert sorted(board.row(task).landed for task in tasks) == sorted(landed)
