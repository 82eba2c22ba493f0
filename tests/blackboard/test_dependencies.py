import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError
from genba.domain.tasks.task import Actor, ActorKind, TaskDraft
from tests.blackboard.acting import HUMAN, add, everything


def refused(board: Blackboard, number: int, on: int) -> str:
    before = everything(board)
    with pytest.raises(StateConflictError) as caught:
        board.depend(number, on, HUMAN)
    assert everything(board) == before
    return caught.value.message


def test_a_dependency_is_added_and_removed(board: Blackboard) -> None:
    first, second = add(board), add(board)
    task = board.depend(second, first, HUMAN)
    assert (task.dependencies, task.version) == ((first,), 2)
    assert "already" in refused(board, second, first)
    task = board.undepend(second, first, HUMAN)
    assert (task.dependencies, task.version) == ((), 3)
    assert [event.kind for event in board.events(second)] == ["created", "dependency_added", "dependency_removed"]
    with pytest.raises(StateConflictError, match="does not depend on #1"):
        board.undepend(second, first, HUMAN)


def test_a_cycle_is_refused_and_nothing_changes(board: Blackboard) -> None:
    first, second, third = add(board), add(board), add(board)
    board.depend(second, first, HUMAN)
    board.depend(third, second, HUMAN)
    assert "#1 → #3 → #2 → #1" in refused(board, first, third)
    assert "#1 → #1" in refused(board, first, first)


def test_a_task_does_not_depend_on_its_own_family(board: Blackboard) -> None:
    parent = add(board)
    child = add(board, "Child", parent)
    grandchild = add(board, "Grandchild", child)
    assert "#3 → #1 → #3" in refused(board, grandchild, parent)
    assert "is a part of it" in refused(board, parent, grandchild)
    with pytest.raises(StateConflictError, match="waits for it"):
        board.add(TaskDraft(title="x", parent=child, dependencies=(parent,)), HUMAN)


def test_a_way_round_by_the_parts_of_a_task_is_a_cycle_too(board: Blackboard) -> None:
    parent, other = add(board), add(board)
    child = add(board, "Child", parent)
    board.depend(other, parent, HUMAN)
    assert "#3 → #2 → #1 → #3" in refused(board, child, other)
    with pytest.raises(StateConflictError, match="#1 → #2 → #1"):
        board.add(TaskDraft(title="x", parent=parent, dependencies=(other,)), HUMAN)
    sibling = add(board, "Sibling", parent)
    board.depend(child, sibling, HUMAN)


def test_what_is_not_there_is_not_found(board: Blackboard) -> None:
    number = add(board)
    for act in (board.depend, board.undepend):
        for pair in ((number, 9), (9, number), (number, 10**30)):
            with pytest.raises(NotFoundError):
                act(*pair, HUMAN)
    with pytest.raises(GenbaError):
        board.depend(number, number, Actor(ActorKind.HUMAN, ""))


def test_several_changes_of_what_a_task_waits_for_happen_together_or_not_at_all(board: Blackboard) -> None:
    first, second, third = add(board), add(board), add(board)
    board.relate(third, (first,), (), HUMAN)
    board.depend(second, third, HUMAN)
    before = everything(board)
    with pytest.raises(StateConflictError, match="#3 → #2 → #3"):
        board.relate(third, (second,), (first,), HUMAN)
    assert everything(board) == before
    fourth = add(board)
    assert board.relate(third, (fourth, fourth), (first,), HUMAN).dependencies == (fourth,)
