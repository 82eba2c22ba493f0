"""Plans: proposed once, made into tasks all together or not at all."""

from collections.abc import Callable
from functools import partial

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import Plan, Subtask
from genba.domain.goals.goal import FileExists
from genba.domain.tasks.task import Priority, TaskDraft
from tests.blackboard.acting import HUMAN, ORCHESTRATOR, add, cancel, everything
from tests.blackboard.test_at_once import at_once, check_laws

PARTS = (
    Subtask(key="use", title="Use it", depends_on=("make",), scope=("src/use/**",), priority=Priority.HIGH),
    Subtask(key="make", title="Make it", body="First", goals=(FileExists(path="made.txt"),), assignee="writer"),
)


@pytest.fixture
def fleet(board: Blackboard) -> FleetBoard:
    return FleetBoard(board)


def big(board: Blackboard) -> int:
    return board.add(TaskDraft(title="Big", decompose=True), HUMAN).number


def test_a_plan_becomes_tasks_with_goals_scopes_and_dependencies(board: Blackboard, fleet: FleetBoard) -> None:
    parent = big(board)
    plan = fleet.propose(Plan(task=parent, run="planner-1", subtasks=PARTS, summary="two parts"))
    assert (plan.status, plan.subtasks, plan.summary) == ("proposed", PARTS, "two parts")
    assert fleet.field().plans == (plan,)
    use, make = fleet.create_parts(plan.id, ORCHESTRATOR)
    first, second = board.get(make), board.get(use)
    assert (first.title, first.body, first.assignee, first.goals) == ("Make it", "First", "writer", PARTS[1].goals)
    assert (second.dependencies, second.scope, second.priority) == ((make,), ("src/use/**",), Priority.HIGH)
    assert board.get(parent).children == tuple(sorted((use, make)))
    assert not board.get(parent).decompose
    assert fleet.field().plans[0].status == "created"
    assert fleet.field().ready == (make,)
    check_laws(board)


def test_repeating_a_verb_on_a_plan_changes_nothing(board: Blackboard, fleet: FleetBoard) -> None:
    proposed = Plan(task=big(board), run="planner-1", subtasks=PARTS)
    plan = fleet.propose(proposed)
    assert fleet.propose(proposed) == plan
    made = fleet.create_parts(plan.id, ORCHESTRATOR)
    before = everything(board)
    assert fleet.create_parts(plan.id, ORCHESTRATOR) == made
    with pytest.raises(StateConflictError, match="there already"):
        fleet.reject_plan(plan.id, "late", HUMAN)
    assert everything(board) == before


def test_two_who_create_the_parts_at_once_create_them_once(open_board: Callable[..., Blackboard]) -> None:
    one, two = FleetBoard(open_board()), FleetBoard(open_board())
    for _ in range(4):
        parent = big(one.board)
        plan = one.propose(Plan(task=parent, subtasks=PARTS))
        results = at_once(
            partial(one.create_parts, plan.id, ORCHESTRATOR), partial(two.create_parts, plan.id, ORCHESTRATOR)
        )
        assert results[0] == results[1]
        assert len(one.board.get(parent).children) == 2


@pytest.mark.parametrize(
    ("parts", "reported"),
    [
        (
            (Subtask(key="a", title="A", depends_on=("b",)), Subtask(key="b", title="B", depends_on=("a",))),
            "its parts wait for each other",
        ),
        ((Subtask(key="a", title="A", depends_on=("c",)),), "'c', which is none of them"),
        ((Subtask(key="a", title="A"), Subtask(key="a", title="B")), "the same key"),
    ],
)
def test_a_plan_that_makes_no_sense_makes_nothing(
    board: Blackboard, fleet: FleetBoard, parts: tuple[Subtask, ...], reported: str
) -> None:
    plan = fleet.propose(Plan(task=big(board), subtasks=parts))
    before = everything(board)
    with pytest.raises(StateConflictError, match=reported):
        fleet.create_parts(plan.id, ORCHESTRATOR)
    assert everything(board) == before


def test_a_part_that_is_refused_takes_all_the_others_with_it(board: Blackboard, fleet: FleetBoard) -> None:
    parts = (*PARTS, Subtask(key="last", title="With a \0", depends_on=("use",)))
    plan = fleet.propose(Plan(task=big(board), subtasks=parts))
    before = everything(board)
    with pytest.raises(Exception, match="NUL"):
        fleet.create_parts(plan.id, ORCHESTRATOR)
    assert everything(board) == before


def test_a_rejected_plan_creates_nothing_and_a_newer_one_takes_its_place(board: Blackboard, fleet: FleetBoard) -> None:
    parent = big(board)
    first = fleet.propose(Plan(task=parent, run="planner-1", subtasks=PARTS))
    for _ in range(2):
        assert fleet.reject_plan(first.id, "too small", HUMAN).status == "rejected"
    with pytest.raises(StateConflictError, match="its plan was rejected"):
        fleet.create_parts(first.id, ORCHESTRATOR)
    second = fleet.propose(Plan(task=parent, run="planner-2", subtasks=PARTS[1:]))
    third = fleet.propose(Plan(task=parent, run="planner-3", subtasks=PARTS))
    assert fleet.field().plans == (third,)
    with pytest.raises(StateConflictError, match="rejected"):
        fleet.create_parts(second.id, ORCHESTRATOR)
    with pytest.raises(NotFoundError):
        fleet.create_parts(99, ORCHESTRATOR)


def test_what_has_ended_gets_no_parts(board: Blackboard, fleet: FleetBoard) -> None:
    parent = add(board)
    plan = fleet.propose(Plan(task=parent, subtasks=PARTS))
    cancel(board, parent)
    with pytest.raises(StateConflictError):
        fleet.create_parts(plan.id, ORCHESTRATOR)
    with pytest.raises(StateConflictError, match="needs no plan"):
        fleet.propose(Plan(task=parent, run="late", subtasks=PARTS))
