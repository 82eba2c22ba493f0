"""Agents do not define goals that execute: they are declarative, unless a person enabled more for the task."""

import json
from typing import Any

import msgspec
import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.fleet.records import Plan, Subtask
from genba.domain.goals.goal import (
    GOAL_TYPES,
    CommandLine,
    CustomScript,
    EndpointResponds,
    FileExists,
    Goal,
    NoSecrets,
    ResponseContains,
    TestAdded,
    TestsPass,
    what_it_runs,
)
from genba.domain.tasks.task import Actor, ActorKind, Task, TaskDraft, TaskEdit
from genba.judgement.scheduling.plans import PlanLimits, plan_check
from tests.project import TESTER, Project

EXECUTE: tuple[Goal, ...] = (
    TestsPass(command="touch /tmp/owned"),
    TestsPass(command=("sh", "-c", "true")),
    CustomScript(script="true"),
    NoSecrets(command="true"),
    TestAdded(must_fail_on_base=True, command="true"),
    EndpointResponds(url="/", serve="true"),
    EndpointResponds(url="http://127.0.0.1:22/"),
    ResponseContains(url="https://example.com/", text="x"),
)
LOOK: tuple[Goal, ...] = (FileExists(path="menu.txt"), TestsPass(), TestAdded(), EndpointResponds(url="/api"))
AGENTS = [kind for kind in ActorKind if kind is not ActorKind.HUMAN]


def _board(project: Project) -> Blackboard:
    project.issue(1, "Whole")
    return Blackboard.open(str(project.root / ".genba" / "genba.db"), project.root.name)


def test_every_field_that_names_a_program_is_known() -> None:
    for kind in GOAL_TYPES.values():
        for field in msgspec.structs.fields(kind):
            if CommandLine == field.type or "tuple[str, ...]" in str(field.type):
                given: dict[str, Any] = {one.name: "/" for one in msgspec.structs.fields(kind) if one.required}
                assert what_it_runs(kind(**{**given, field.name: "true"})), f"{kind.__name__}.{field.name}"


@pytest.mark.parametrize("kind", AGENTS)
def test_the_gateway_refuses_goals_of_agents_that_execute(project: Project, kind: ActorKind) -> None:
    actor = Actor(kind, "a")
    with _board(project) as board:
        for goal in EXECUTE:
            with pytest.raises(UsageError, match="a goal that an agent writes runs nothing"):
                board.add(TaskDraft(title="Part", parent=1, goals=(goal,)), actor)
            with pytest.raises(UsageError, match="a goal that an agent writes runs nothing"):
                board.edit(1, TaskEdit(goals=(goal,)), actor)
        made = board.add(TaskDraft(title="Part", parent=1, goals=LOOK), actor)
        assert made.goals == made.agent_goals == LOOK
        assert [task.number for task in board.find(parent=1)] == [made.number]


def test_a_person_enables_them_for_one_task_and_what_is_below(project: Project) -> None:
    worker = Actor(ActorKind.WORKER, "a")
    with _board(project) as board:
        board.add(TaskDraft(title="Another"), TESTER)
        with pytest.raises(StateConflictError):
            board.enable_agent_commands(1, True, worker)
        board.enable_agent_commands(1, True, TESTER)
        made = board.add(TaskDraft(title="Part", parent=1, goals=EXECUTE[:1]), worker)
        assert made.agent_goals == made.enabled_goals == EXECUTE[:1]
        board.add(TaskDraft(title="Below", parent=made.number, goals=EXECUTE[:1]), worker)
        with pytest.raises(UsageError):
            board.add(TaskDraft(title="Elsewhere", parent=2, goals=EXECUTE[:1]), worker)
        board.enable_agent_commands(1, False, TESTER)
        with pytest.raises(UsageError):
            board.add(TaskDraft(title="Later", parent=1, goals=EXECUTE[:1]), worker)
        [event] = [each for each in board.events(1) if each.kind == "agent_commands_enabled"]
    assert (event.actor.kind, event.actor.name) == (ActorKind.HUMAN, "tester")


def test_an_agent_on_the_command_line_neither_writes_nor_enables_them(project: Project) -> None:
    project.issue(1, "Whole")
    project.environment |= {"GENBA_RUN": "worker-1", "GENBA_AGENT": "worker"}
    done = project.genba("task", "add", "Part", "--goal", "tests_pass:true", check=2)
    assert "runs nothing" in done.err
    project.genba("task", "edit", "1", "--agent-commands", check=5)
    project.genba("task", "add", "Part", "--agent-commands", check=5)
    project.genba("task", "add", "Part", "--goal", "tests_pass", check=0)


def test_an_executing_goal_in_an_old_database_is_an_error_until_a_person_enables_it(project: Project) -> None:
    project.write("a.txt", "a\n")
    project.commit("Begin")
    project.genba("task", "add", "One", "--goal", "custom_script:touch /tmp/genba-agent-goal", check=0)
    project.sql("UPDATE task_goals SET source = 'ai_inferred'")
    project.agent(parameters={"issue": {"type": "number"}})

    refused = project.run("worker", "--issue", "1", check=1)

    assert "an agent wrote its `script`" in json.dumps(project.events(refused["run"]))
    assert project.git("log", "--format=%s", "-1", "main") == "Declare worker"
    assert project.genba("verify", "1").code != 0
    project.genba("task", "edit", "1", "--agent-commands", check=0)
    assert project.run("worker", "--issue", "1")["merged"]


@pytest.mark.parametrize("actor", [TESTER, Actor(ActorKind.ORCHESTRATOR, "genba")])
def test_a_plan_that_a_person_approves_passes_the_same_gateway(project: Project, actor: Actor) -> None:
    with _board(project) as board:
        fleet = FleetBoard(board)
        part = Subtask(key="a", title="Part", goals=EXECUTE[:1])
        plan = fleet.propose(Plan(task=1, run="planner-1", subtasks=(part,)))
        with pytest.raises(UsageError, match="runs nothing"):
            fleet.create_parts(plan.id, actor)
        assert not board.get(1).children


def test_a_planner_learns_which_goals_it_may_write() -> None:
    raw = {"status": "completed", "subtasks": [{"key": "a", "title": "Part a", "body": "Do it."}]}
    about = Task(id=1, number=1, title="Whole")
    for line in ("tests_pass: true", "custom_script: ./x.sh", "endpoint_responds: GET http://127.0.0.1:1/ → 200"):
        raw["subtasks"][0]["goals"] = [line]  # type: ignore[index]
        found = plan_check(raw, about, PlanLimits())
        assert found is not None
        assert "allowed: file_exists" in found.output + found.detail
        assert plan_check(raw, about, PlanLimits(commands=True)) is None
