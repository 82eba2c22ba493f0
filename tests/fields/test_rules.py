"""dod, task_types, verification and database of .genba/config.yaml: what a project calls done, and where it is kept."""

import sqlite3
from typing import Any

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.fields.branches import SERVE, SERVICE, branch, hold_to, result_of, verdict
from tests.fields.flows import EXTERNAL_STATE, ISSUE, configure, work
from tests.project import Project

PRICED = {"type": "custom_script", "script": "grep -q : work.txt"}


def worker(project: Project, *runs: str) -> None:
    """An agent that closes issues, and does these things one after the other."""
    turns = [work(run=f"{run} && git add -A && git commit -qm work") for run in runs]
    project.agent(
        completion=EXTERNAL_STATE,
        parameters=ISSUE,
        integrations={"github": {"enabled": True}},
        script={"turns": turns, "repeat": True},
        limits={"maxIterations": len(runs)},
    )


def add(project: Project, kind: str, *words: str) -> None:
    project.genba("task", "add", "Move the clock", "--type", kind, *words, check=0)


# ── dod ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_definition_of_done_holds_for_every_task(project: Project) -> None:
    hold_to(project, [PRICED])
    worker(project, "echo tea > work.txt")
    add(project, "task")
    before = project.git("rev-parse", "main")
    assert project.run("worker", "--issue", "1", check=6)["verdict"] == "rejected: goals_not_met"
    assert project.git("rev-parse", "main") == before
    assert project.task(1).status is TaskStatus.OPEN


def test_work_that_is_rejected_goes_back_with_the_evidence(project: Project) -> None:
    hold_to(project, [PRICED])
    worker(project, "echo tea > work.txt", "echo tea: 2 > work.txt")
    add(project, "task")
    result = project.run("worker", "--issue", "1")
    assert (result["verdict"], result["verified"]) == ("done", project.git("rev-parse", "main^2"))
    assert "custom_script (dod): exit code 1" in project.prompts()[1]
    assert project.task(1).status is TaskStatus.DONE


def test_the_definition_of_done_holds_for_a_run_without_a_task(project: Project) -> None:
    hold_to(project, [PRICED])
    project.agent(script={"turns": [work(run="echo tea > work.txt && git add -A && git commit -qm work")]})
    result = project.run("worker", check=1)
    assert (result["verdict"], result["merged"]) == ("rejected: goals_not_met", "")


def test_what_a_branch_says_of_done_does_not_count(project: Project) -> None:
    hold_to(project, [PRICED])
    branch(project, {"work.txt": "tea\n", ".genba/config.yaml": "dod: []\n"})
    found = verdict(project, "--may-change", ".genba/**")
    assert result_of(found, "custom_script")["status"] == "failed"


# ── task_types ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_type_has_goals_of_its_own_in_place_of_the_built_in_ones(project: Project) -> None:
    hold_to(project, [], task_types={"bug": {"goals": [PRICED]}})
    add(project, "bug")
    goals = project.genba("verify", "1", "--explain", "--json", check=0).json["policy"]["goals"]
    assert [(each["level"], each["goal"]["type"]) for each in goals if each["origin"] != "built in"] == [
        ("type_rule", "custom_script")
    ]
    worker(project, "echo tea > work.txt")
    assert project.run("worker", "--issue", "1", check=6)["verdict"] == "rejected: goals_not_met"


def test_a_type_of_your_own_is_a_type(project: Project) -> None:
    assert '"chore" is not a type of task' in project.genba("task", "add", "x", "--type", "chore", check=4).err
    hold_to(project, [], task_types={"chore": {}})
    add(project, "chore")
    assert project.task(1).type == "chore"


@pytest.mark.parametrize(("artifacts", "verdict_"), [(["commit"], "rejected: missing_artifacts"), ([], "done")])
def test_a_type_says_which_artifacts_must_be_there(project: Project, artifacts: list[str], verdict_: str) -> None:
    hold_to(project, [], task_types={"chore": {"artifacts": artifacts}})
    project.agent(
        completion={"type": "iterationBudget", "config": {"maxIterations": 1}},
        parameters=ISSUE,
        integrations={"github": {"enabled": True}},
        script={"turns": [{"reply": "done"}], "repeat": True},
    )
    add(project, "chore")
    assert project.run("worker", "--issue", "1", check=None)["verdict"] == verdict_


def test_a_type_says_which_protected_paths_may_be_changed(project: Project) -> None:
    hold_to(project, [], task_types={"chore": {"may_change": ["ruff.toml"]}})
    worker(project, "echo line-length = 88 > ruff.toml")
    add(project, "task")
    add(project, "chore")
    refused = project.run("worker", "--issue", "1", check=6)
    assert refused["verdict"] == "rejected: goals_not_met"
    assert project.run("worker", "--issue", "2")["verdict"] == "done"


def test_the_command_line_allows_it_for_one_run(project: Project) -> None:
    hold_to(project, [{"type": "commits_exist"}])
    run = "echo line-length = 88 > ruff.toml && git add -A && git commit -qm work"
    project.agent(script={"turns": [work(run=run)], "repeat": True})
    assert project.run("worker", check=1)["verdict"] == "rejected: goals_not_met"
    assert project.run("worker", "--may-change", "ruff.toml")["verdict"] == "done"


def test_a_type_can_require_a_review_before_anything_lands(project: Project) -> None:
    hold_to(project, [], task_types={"chore": {"requires_review": True}})
    worker(project, "echo tea > work.txt")
    add(project, "chore")
    before = project.git("rev-parse", "main")
    result = project.run("worker", "--issue", "1", check=1)
    assert (result["outcome"], project.task(1).status) == ("blocked", TaskStatus.REVIEW)
    assert result["reason"].endswith("by a person")
    assert project.git("rev-parse", "main") == before
    project.genba("task", "approve", "1", check=0)
    resumed = project.run("--resume", result["run"])
    assert (resumed["outcome"], project.task(1).status) == ("completed", TaskStatus.DONE)


def test_a_type_says_who_reviews(project: Project) -> None:
    hold_to(project, [], task_types={"chore": {"requires_review": True, "reviewer_type": "ai"}})
    worker(project, "echo tea > work.txt")
    add(project, "chore")
    assert project.run("worker", "--issue", "1", check=1)["reason"].endswith("by a reviewer agent")


# ── verification ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _looks(**settings: Any) -> dict[str, Any]:
    return {"verification": settings}


@pytest.mark.parametrize("setup", ["echo hot > pot.txt", ["sh", "-c", "echo hot > pot.txt"]])
def test_the_checkout_is_set_up_before_the_first_command(project: Project, setup: Any) -> None:
    hold_to(project, [{"type": "tests_pass", "command": "grep hot pot.txt"}], **_looks(setup=setup))
    branch(project)
    assert verdict(project)["status"] == "done"


def test_a_setup_that_fails_fails_what_needed_it(project: Project) -> None:
    hold_to(project, [{"type": "tests_pass", "command": "true"}], **_looks(setup="echo no kettle; exit 1"))
    branch(project)
    result = result_of(verdict(project), "tests_pass")["detail"]
    assert result == "the setup of the checkout: no kettle (exit code 1)"


def test_the_setup_has_so_much_time(project: Project) -> None:
    settings = _looks(setup="sleep 30", setup_timeout_seconds=0.2)
    hold_to(project, [{"type": "tests_pass", "command": "true"}], **settings)
    branch(project)
    result = result_of(verdict(project), "tests_pass")["detail"]
    assert result == "the setup of the checkout: took longer than 0.2 s"


def test_the_project_says_how_its_service_is_started(project: Project) -> None:
    project.write("mirror.py", SERVICE)
    hold_to(project, [{"type": "endpoint_responds", "url": "/"}], **_looks(serve=SERVE))
    branch(project)
    assert verdict(project)["status"] == "done"


def test_the_project_says_when_its_service_is_ready(project: Project) -> None:
    project.write("mirror.py", SERVICE)
    goal = {"type": "endpoint_responds", "url": "/", "ready_seconds": 0.5}
    hold_to(project, [goal], **_looks(serve=SERVE, ready_when="/status/503"))
    branch(project)
    result = result_of(verdict(project), "endpoint_responds")["detail"]
    assert result == "the service was not ready within 0.5 s"


def test_the_commands_of_goals_see_the_environment_of_the_project(project: Project) -> None:
    goals = [{"type": "tests_pass", "command": 'test "$MOOD" = calm'}]
    hold_to(project, goals, **_looks(environment={"MOOD": "calm"}))
    branch(project)
    assert verdict(project)["status"] == "done"


def test_the_project_says_what_is_protected(project: Project) -> None:
    hold_to(project, [], **_looks(protected_paths=["prices/**"]))
    branch(project, {"prices/tea.txt": "2\n", "ruff.toml": "line-length = 88\n"})
    result = result_of(verdict(project), "protected_paths")["detail"]
    assert result == "changes what judges it: prices/tea.txt"


# ── database ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_blackboard_is_where_the_settings_say(project: Project) -> None:
    configure(project, "database: {url: kept/board.db}\n")
    add(project, "task")
    assert (project.root / "kept" / "board.db").is_file()
    assert not (project.root / ".genba" / "genba.db").exists()
    assert "Move the clock" in project.genba("task", "list", check=0).out
    assert project.git("status", "--porcelain", "--", "kept") == ""


def test_the_environment_says_it_before_the_settings(project: Project) -> None:
    configure(project, "database: {url: kept/board.db}\n")
    other = project.root.parent / "other.db"
    project.genba("task", "add", "Move the clock", check=0, GENBA_DATABASE_URL=str(other))
    assert other.is_file()
    assert not (project.root / "kept").exists()


def test_a_command_waits_so_long_for_another_one(project: Project) -> None:
    configure(project, "database: {busy_seconds: 0.2}\n")
    add(project, "task")
    other = sqlite3.connect(project.root / ".genba" / "genba.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        assert "0.2 s" in project.genba("task", "cancel", "1", check=5).err
    finally:
        other.close()
    project.genba("task", "cancel", "1", check=0)
