"""Dependencies, sub-issues and what stands in the way outside follow the tracker."""

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.domain.tasks.task import Actor, ActorKind, BlockerKind, TaskDraft, TaskStatus
from genba.testing.tracker_doubles import MemoryIssues
from tests.github.syncing.conftest import Syncing

_ALICE = Actor(ActorKind.HUMAN, "alice")


async def test_what_blocks_an_issue_is_what_its_task_waits_for(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    first = remote.add(blocked_by=(2,))
    second = remote.add()
    await syncing().sync()
    assert board.get(first).dependencies == (second,)

    remote.change(first, blocked_by=())
    await syncing().sync()
    assert board.get(first).dependencies == ()


async def test_dependencies_that_people_set_here_stay_in_both_directions(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    one, two, three = remote.add(blocked_by=(2,)), remote.add(), remote.add()
    await syncing().sync()
    board.relate(one, (three,), (two,), _ALICE)

    remote.change(one, title="changed")
    await syncing().sync()

    assert board.get(one).dependencies == (three,)


async def test_a_blocker_that_was_not_planned_after_all_stands_in_nobodys_way(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    one, two = remote.add(blocked_by=(2,)), remote.add()
    await syncing().sync()
    remote.close(two, "not_planned")
    await syncing().sync()

    assert board.get(one).dependencies == ()
    assert [task.number for task in board.ready()] == [one]


async def test_circles_are_noted_and_left_out(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    one, two = remote.add(blocked_by=(2,)), remote.add(blocked_by=(1,))
    result = await syncing().sync()

    assert (board.get(one).dependencies, board.get(two).dependencies) == ((two,), ())
    assert any("#2" in note and "wait for itself" in note for note in result.notes)


async def test_an_open_issue_outside_of_the_field_blocks_until_it_is_closed(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    inside = remote.add(labels=("genba",), blocked_by=(2,), blocked_elsewhere=("https://github.test/other/7",))
    outside = remote.add()
    await syncing(label="genba").sync()

    task = board.get(inside)
    assert task.status is TaskStatus.BLOCKED
    assert task.blocker is not None
    assert task.blocker.kind is BlockerKind.DEPENDENCY
    assert "#2, https://github.test/other/7" in task.blocker.reason

    remote.close(outside)
    remote.change(inside, blocked_elsewhere=())
    await syncing(label="genba").sync()
    assert board.get(inside).status is TaskStatus.OPEN


async def test_sub_issues_are_parts_whatever_their_numbers(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    part, other = remote.add(parent=3), remote.add(parent=3)
    whole = remote.add(sub_issues=(1, 2))
    await syncing().sync()
    assert set(board.get(whole).children) == {part, other}

    remote.change(part, parent=None)
    await syncing().sync()
    assert board.get(part).parent is None
    assert board.get(whole).children == (other,)


async def test_a_part_goes_on_by_itself_when_its_parent_is_closed(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    whole = remote.add()
    part = remote.add(parent=whole)
    await syncing().sync()
    remote.close(whole)
    await syncing().sync()

    assert board.get(whole).status is TaskStatus.DONE
    assert (board.get(part).status, board.get(part).parent) == (TaskStatus.OPEN, None)


@pytest.mark.parametrize("way", ["parents", "mixed"])
async def test_families_in_a_circle_are_noted(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, way: str
) -> None:
    remote.add(parent=2)
    remote.add(parent=1) if way == "parents" else remote.add(blocked_by=(3,))
    remote.add(parent=1)
    result = await syncing().sync()

    assert (way == "parents") == bool(result.notes)
    assert all(task.number not in task.dependencies for task in board.find())


async def test_parts_of_our_own_are_left_alone(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    number = remote.add()
    await syncing().sync()
    part = board.add(TaskDraft(title="a part", parent=number), _ALICE)
    remote.change(number, title="changed")
    await syncing().sync()
    assert board.get(part.number).parent == number

    remote.close(number)
    await syncing().sync()
    assert board.get(part.number).status is TaskStatus.CANCELLED
