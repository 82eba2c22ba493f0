from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.scheduler.planning import finish_plan, limits_of, plan_parameters
from genba.definitions.project.work_sections import DecomposeSettings
from genba.domain.fleet.records import Purpose, SegmentOrder
from genba.domain.goals.goal import FileExists, TestsPass
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.tasks.task import StatusChange, Task, TaskDraft, TaskStatus
from genba.execution.run_values import RunResult
from tests.blackboard.acting import HUMAN, ORCHESTRATOR

SETTINGS = DecomposeSettings(max_parts=3)
DECLARED = ("issue", "max_parts", "task_types", "agents", "parts", "criteria")


@pytest.fixture
def board(address: str) -> Iterator[FleetBoard]:
    with Blackboard.open(address, "a project") as opened:
        yield FleetBoard(opened)


@pytest.fixture
def planned(board: FleetBoard) -> Callable[..., tuple[Task, SegmentOrder]]:
    """A task of which a planner has a session."""

    def make(**draft: Any) -> tuple[Task, SegmentOrder]:
        task = board.board.add(TaskDraft(title="Add a login", decompose=True, **draft), HUMAN)
        run = f"planner-{task.number}-1"
        order = SegmentOrder(run=run, task=task.number, agent="planner", attempt=1, purpose=Purpose.PLAN)
        board.start(order, executor="one", host="here", provider="", plan="{}", base_branch="main", enqueue=None)
        return board.board.get(task.number), order

    return make


def result(order: SegmentOrder, output: dict[str, Any] | None) -> RunResult:
    return RunResult(
        run=order.run,
        agent=order.agent,
        outcome=Outcome.COMPLETED,
        reason="",
        iterations=1,
        seconds=1.0,
        usage=Usage(),
        branch="genba/plan-1",
        workdir="/w",
        output=output,
    )


def part(key: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "title": f"Part {key}", "body": "Do it.", "goals": ["tests_pass"], **more}


def proposal(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"status": "completed", "summary": "In steps.", "subtasks": list(parts)}


def test_a_plan_is_proposed_once_however_often_its_session_ends(board: FleetBoard, planned: Any) -> None:
    task, order = planned()
    limits = limits_of(board, task, SETTINGS)
    outcome = result(order, proposal(part("ui", depends_on=["api"]), part("api", scope=["src/**"])))

    ends = [finish_plan(outcome, order, board, limits) for _ in range(3)]

    assert [(end.outcome, end.reason, end.run, end.part) for end in ends] == [
        (Outcome.COMPLETED, "proposes 2 parts", order.run, 1)
    ] * 3
    [plan] = board.field().plans
    assert (plan.task, plan.run, plan.status, plan.summary) == (task.number, order.run, "proposed", "In steps.")
    assert [found.key for found in plan.subtasks] == ["api", "ui"]
    assert plan.subtasks[0].goals == (TestsPass(),)


def test_what_is_no_plan_is_not_proposed_and_says_why(board: FleetBoard, planned: Any) -> None:
    task, order = planned()
    circle = proposal(part("a", depends_on=["b"]), part("b", depends_on=["a"]))

    end = finish_plan(result(order, circle), order, board, limits_of(board, task, SETTINGS))

    assert end.outcome == Outcome.INCOMPLETE
    assert "in a circle: a → b → a" in end.reason
    assert board.field().plans == ()
    nothing = finish_plan(result(order, None), order, board, limits_of(board, task, SETTINGS))
    assert "subtasks: is required and missing" in nothing.reason


def test_a_plan_for_a_task_that_was_given_up_is_not_wanted(board: FleetBoard, planned: Any) -> None:
    task, order = planned()
    board.board.change_status(task.number, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))

    end = finish_plan(result(order, proposal(part("a"))), order, board, limits_of(board, task, SETTINGS))

    assert end.outcome == Outcome.ABORTED
    assert end.reason.startswith("the plan is not wanted any more")
    assert board.field().plans == ()


def test_the_limits_know_the_parts_and_the_tasks_above(board: FleetBoard, planned: Any) -> None:
    whole = board.board.add(TaskDraft(title="All of it"), HUMAN)
    task, _ = planned(parent=whole.number)
    board.board.add(TaskDraft(title="A part by hand", parent=task.number), HUMAN)

    limits = limits_of(board, board.board.get(task.number), SETTINGS, ("iterator",))

    assert (limits.depth, limits.max_depth, limits.max_parts) == (1, 2, 3)
    assert (limits.titles, limits.agents) == (("A part by hand",), ("iterator",))


def test_a_planner_gets_the_limits_that_it_asks_for(board: FleetBoard, planned: Any) -> None:
    task, _ = planned(goals=(TestsPass(command="pytest -q"), FileExists(path="docs/login.md")))
    limits = msgspec.structs.replace(limits_of(board, task, SETTINGS, ("iterator",)), titles=("A", "B"))

    assert plan_parameters(task, limits, DECLARED) == {
        "issue": task.number,
        "max_parts": 3,
        "task_types": "task, feature, bug, refactor, docs",
        "agents": "iterator",
        "parts": "A; B",
        "criteria": "- tests_pass: pytest -q\n- file_exists: docs/login.md",
    }
    assert plan_parameters(task, limits, ("issue",)) == {"issue": task.number}


def test_what_is_proposed_can_be_made_into_tasks(board: FleetBoard, planned: Any) -> None:
    task, order = planned()
    outcome = proposal(part("ui", depends_on=["api"], priority="high"), part("api", scope=["src/**"], type="feature"))
    end = finish_plan(result(order, outcome), order, board, limits_of(board, task, SETTINGS))
    board.board.change_status(task.number, StatusChange(to=TaskStatus.OPEN, actor=ORCHESTRATOR, session=order.run))
    board.end_part(end)

    [plan] = board.field().plans
    api, ui = (board.board.get(number) for number in board.create_parts(plan.id, ORCHESTRATOR))

    assert (api.title, api.scope, api.type, api.parent) == ("Part api", ("src/**",), "feature", task.number)
    assert (ui.dependencies, str(ui.priority)) == ((api.number,), "high")
    assert ui.goals == (TestsPass(),)
    again = limits_of(board, board.board.get(task.number), SETTINGS)
    assert again.titles == ("Part api", "Part ui")
