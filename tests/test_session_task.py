"""A session that names a task is held to the goals of that task, whichever agent it runs and however it names it."""

import json
from typing import Any

import pytest

from genba.domain.goals.goal import FileExists
from tests.fields.flows import EXTERNAL_STATE, ISSUE
from tests.project import COMMIT, Project, says

BUDGET = {"type": "iterationBudget", "config": {"maxIterations": 1}}
CHECKED = {"type": "checkBudget", "config": {"maxChecks": 1}}
KEYWORD = {"type": "keywordSignal", "config": {"completionKeyword": "done"}}
STEPS = {"type": "stepMachine"}
GATE = {"allowedIntents": ["closing", "repeat"], "fallbackIntent": "repeat"}
CLOSING = {"work": {"stepKind": "closure", "structuredGate": GATE}}


def _replying(reply: Any) -> dict[str, Any]:
    return {"turns": [{"do": [{"run": COMMIT}], "reply": reply}], "repeat": True}


def _wants_a_menu(project: Project, number: int = 1, **draft: Any) -> None:
    project.issue(number, "Write the menu", goals=(FileExists(path="menu.txt"),), **draft)


def _left_alone(project: Project, before: str) -> None:
    assert project.git("rev-parse", "main") == before
    assert str(project.task(1).status) in ("open", "blocked")


@pytest.mark.parametrize(
    ("completion", "more"),
    [
        (BUDGET, {}),
        (CHECKED, {}),
        (KEYWORD, {"script": _replying({"status": "done"})}),
        (EXTERNAL_STATE, {}),
        (STEPS, {"steps": CLOSING, "script": _replying(says("closing", status="completed"))}),
    ],
    ids=["iterationBudget", "checkBudget", "keywordSignal", "externalState", "stepMachine"],
)
@pytest.mark.parametrize("declares", [True, False], ids=["declares --issue", "declares nothing"])
def test_work_that_fails_an_acceptance_criterion_is_not_merged_by_any_agent(
    project: Project, completion: dict[str, Any], more: dict[str, Any], declares: bool
) -> None:
    if completion is EXTERNAL_STATE and not declares:
        pytest.skip("externalState needs the parameter")
    _wants_a_menu(project)
    limits: dict[str, Any] = {"limits": {"maxIterations": 2}} if completion is not BUDGET else {}
    project.agent(completion=completion, parameters=ISSUE if declares else {}, **more, **limits)
    before = project.git("rev-parse", "main")

    project.genba("run", "worker", "--issue", "1")

    _left_alone(project, before)
    with project.board() as board:
        last = board.last_verification(1)
    assert last is not None
    assert last.reason == "goals_not_met"


def test_the_agent_of_the_quickstart_does_not_merge_what_fails_the_goals_of_its_task(project: Project) -> None:
    project.genba("agent", "new", "writer", "--template", "simple", check=0)
    line = "cat > /dev/null; echo 'Pour hot water on it.' >> TEA.md"
    adapter = {"type": "custom", "command": line, "commit": True}
    project.write(".genba/config.yaml", json.dumps({"agents": {"writer": {"adapter": adapter}}}))
    project.commit("An agent")
    project.genba("task", "add", "Write the menu", "--goal", "file_exists:menu.txt", check=0)
    before = project.git("rev-parse", "main")

    project.genba("run", "writer", "--issue", "1")

    _left_alone(project, before)


def test_an_agent_that_declares_no_issue_learns_the_task_and_ends_it(project: Project) -> None:
    _wants_a_menu(project, body="With prices.")
    menu = "echo tea > menu.txt && git add -A && git commit -qm menu"
    project.agent(script={"turns": [{"do": [{"run": menu}], "reply": "done"}]}, prompts={"work.md": "Do it.\n"})

    result = project.run("worker", "--issue", "1")

    assert (result["issue"], str(project.task(1).status)) == (1, "done")
    [prompt] = project.prompts()
    assert "Task #1: Write the menu\n\nWith prices." in prompt
    assert "menu.txt" in prompt


@pytest.mark.parametrize("template", ["worker", "reviewer", "planner", "facilitator"])
@pytest.mark.parametrize("tasks", [0, 1], ids=["no tasks", "other tasks"])
def test_an_unknown_task_is_refused_before_anything_starts(project: Project, template: str, tasks: int) -> None:
    project.agent()
    adapter = {"type": "custom", "command": "touch started; cat"}
    project.write(".genba/config.yaml", json.dumps({"agents": {"default": {"adapter": adapter}}}))
    project.commit("An adapter")
    if tasks:
        project.issue(1, "Another one")
    before = project.git("rev-parse", "main")

    done = project.genba("run", template, "--issue", "77", check=4)

    assert "there is no task #77" in done.err
    assert "genba task add" in done.err
    assert project.git("rev-parse", "main") == before
    assert project.git("branch", "--format=%(refname:short)") == "main"
    assert project.genba("sessions", "--all", "--json").json == []


def test_the_branch_of_a_task_is_not_delivered_without_its_goals(project: Project) -> None:
    _wants_a_menu(project)
    project.agent(parameters={"issue": {"type": "number"}})
    first = project.run("worker", "--issue", "1", check=None)
    before = project.git("rev-parse", "main")

    done = project.genba("run", "worker", "--branch", first["branch"], check=5)

    assert "--issue 1" in done.err
    _left_alone(project, before)


def test_a_parameter_that_is_set_names_the_task_too(project: Project) -> None:
    _wants_a_menu(project)
    project.agent(parameters={"issue": {"type": "number"}})
    before = project.git("rev-parse", "main")

    project.genba("run", "worker", "--set", "parameters.issue.default=1")

    _left_alone(project, before)
    project.genba("run", "worker", "--set", "parameters.issue.default=77", check=4)


def test_an_option_of_another_name_is_the_same_task(project: Project) -> None:
    _wants_a_menu(project)
    project.issue(2, "Another")
    project.agent(parameters={"issue": {"type": "number", "cli": "--ticket"}})
    before = project.git("rev-parse", "main")

    project.genba("run", "worker", "--ticket", "1")
    _left_alone(project, before)
    project.genba("run", "worker", "--issue", "1")
    _left_alone(project, before)
    assert "two tasks" in project.genba("run", "worker", "--ticket", "1", "--issue", "2", check=2).err


def test_no_other_parameter_takes_the_option_of_the_task(project: Project) -> None:
    project.agent(parameters={"ticket": {"type": "string", "cli": "--issue"}})

    assert "--issue is an option of genba run itself" in project.genba("agent", "check", "worker", check=3).err


def test_a_session_that_is_resumed_is_held_to_its_task(project: Project) -> None:
    _wants_a_menu(project)
    project.agent()
    before = project.git("rev-parse", "main")
    first = project.run("worker", "--issue", "1", check=None)

    project.genba("run", "--resume", first["run"], "--set", "runner.completion.config.maxIterations=2")

    _left_alone(project, before)


def test_commits_of_an_agent_that_only_reads_are_held_to_the_task_too(project: Project) -> None:
    _wants_a_menu(project)
    project.agent(boundaries={"permissionMode": "plan"}, execution={"finalize": {"autoMerge": False}}, parameters=ISSUE)

    result = project.run("worker", "--issue", "1", check=1)

    assert "goals_not_met (file_exists)" in result["reason"]
    assert str(project.task(1).status) == "open"
