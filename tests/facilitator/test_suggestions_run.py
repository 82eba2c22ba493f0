"""Every pattern of suggestion is typed as it stands, and does what it says."""

import json
import shlex
from typing import Any

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.tasks.task import TaskStatus
from tests.project import COMMIT, Finished, Project


def worker(project: Project, *capabilities: str, name: str = "pages", **runner: Any) -> None:
    """An agent that does the work of any issue, and can be recommended."""
    project.agent(
        name,
        script={"turns": [{"do": [{"run": COMMIT}], "reply": "done"}], "repeat": True},
        parameters={"issue": {"type": "integer", "cli": "--issue"}},
        actions={
            "enabled": True,
            "types": list(capabilities),
            "handlers": dict.fromkeys(capabilities, "builtin:record"),
        },
        **runner,
    )


def suggestions(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = project.genba("facilitate", "--json").json["recommendation"]["suggestions"]
    return found


def typed(project: Project, command: str) -> Finished:
    program, *words = shlex.split(command)
    assert program == "genba"
    return project.genba(*words, check=0)


def test_one_issue_is_worked_on_by_the_command_that_is_suggested(project: Project) -> None:
    project.issue(1, "Add pages")
    worker(project, "issue-action")
    best = suggestions(project)[0]
    assert (best["agent"], best["command"]) == ("pages", "genba run pages --issue 1")
    typed(project, best["command"])
    (only,) = project.genba("facilitate", "--json").json["assessments"]
    assert only["state"] == "done", only


def test_the_whole_project_is_worked_off_by_the_command_that_is_suggested(project: Project) -> None:
    for number in (1, 2):
        project.issue(number, f"Add pages {number}")
    project.write(".genba/config.yaml", "work: {agent: pages}\n")
    worker(project, "issue-action")
    whole = suggestions(project)[-1]
    assert (whole["issue"], whole["command"]) == (None, "genba work --until-empty")
    typed(project, whole["command"])
    assert [project.task(number).status for number in (1, 2)] == [TaskStatus.DONE, TaskStatus.DONE]


def test_what_was_done_by_hand_is_verified_and_closed_by_the_commands_that_are_suggested(project: Project) -> None:
    project.issue(1, "Add a page")
    project.write("page.txt", "a page\n")
    project.commit("Add a page\n\nIssue: 1")
    first = suggestions(project)[0]
    assert first["command"] == "genba verify 1"
    typed(project, first["command"])
    second = suggestions(project)[0]
    assert second["command"] == "genba task done 1"
    typed(project, second["command"])
    assert project.task(1).status is TaskStatus.DONE
    result = project.genba("facilitate", "--json", check=0).json
    assert (result["assessments"][0]["state"], result["assessments"][0]["closed"]) == ("done", True)
    assert result["recommendation"]["suggestions"] == []


def test_work_that_does_not_hold_is_not_called_done_by_hand(project: Project) -> None:
    project.issue(1, "Add a page")
    project.write(".genba/config.yaml", "dod:\n  - {type: custom_script, script: 'false'}\n")
    project.write("page.txt", "a page\n")
    project.commit("Add a page, which fixes #1")
    assert project.genba("verify", "1", check=1).out.startswith("#1 rejected")
    assert "task #1 is not verified" in project.genba("task", "done", "1", check=5).err
    assert project.task(1).status is TaskStatus.OPEN


def test_what_was_done_by_hand_and_needs_a_review_waits_for_it(project: Project) -> None:
    project.issue(1, "Add a page", requires_review=True)
    project.write("page.txt", "a page\n")
    project.commit("Add a page\n\nIssue: 1")
    project.genba("verify", "1", check=0)
    assert project.genba("task", "done", "1").code == 5
    assert project.task(1).status is TaskStatus.REVIEW
    project.genba("approve", "1", check=0)
    typed(project, suggestions(project)[0]["command"])
    assert project.task(1).status is TaskStatus.DONE


def test_a_blocker_is_cleared_by_the_command_that_is_suggested(project: Project) -> None:
    project.issue(1, "Add a page")
    project.issue(2, "Write docs")
    project.genba("task", "block", "1", "--reason", "the region is not known", check=0)
    best = next(each for each in suggestions(project) if each["issue"] == 1)
    typed(project, best["command"])
    assert project.task(1).status is TaskStatus.OPEN


def test_a_circle_is_broken_by_the_command_that_is_suggested(project: Project) -> None:
    for number in (1, 2):
        project.issue(number, f"Part {number}")
    project.sql(
        "INSERT INTO task_dependencies (task_id, depends_on_id)"
        " SELECT a.id, b.id FROM tasks a, tasks b WHERE a.number <> b.number"
    )
    best = suggestions(project)[0]
    assert best["command"] == "genba task depend 1 --remove 2"
    typed(project, best["command"])
    assert suggestions(project)[0]["command"] == "genba run iterator --issue 1"


def test_what_is_not_known_is_shown_by_the_command_that_is_suggested(project: Project) -> None:
    project.issue(1, "Add a page")
    project.write(".genba/config.yaml", "merge:\n  base_branch: nowhere\n")
    best = suggestions(project)[0]
    assert best["command"] == "genba task show 1"
    typed(project, best["command"])


def test_where_no_agent_can_do_it_none_is_recommended_and_it_says_why(project: Project) -> None:
    project.issue(1, "Add a page")
    worker(project, "talk-action", name="iterator")
    done = project.genba("facilitate", "--apply", "--json", check=1).json
    assert done["recommendation"]["nextAgent"] == "none"
    (missing,) = done["incomplete"]
    assert missing.startswith("no next action is known: no agent that can be called with an issue has the capability")


def test_a_forgotten_pause_and_an_agent_without_an_answer_are_reported(project: Project) -> None:
    project.issue(1, "Add a page")
    result = project.genba("status").err
    assert "warning: agent iterator has no adapter   genba doctor" in result
    assert "paused" not in result
    project.genba("pause")
    assert "the project is paused: nothing new begins   genba resume" in project.genba("status").err
    project.genba("stop")
    assert "the project is stopping: no session continues   genba resume" in project.genba("status").err
    project.genba("resume")
    assert "genba resume" not in project.genba("status").err


def test_what_a_suggestion_leaves_open_is_not_taken_for_an_answer(project: Project) -> None:
    project.issue(1, "Add a page")
    done = project.genba("answer", "1", "…", check=2)
    assert "… stands for your own words" in done.err


# ── who takes a task ─────────────────────────────────────────────────────────────────────────────────────────────────


def two_workers(project: Project, **integrations: Any) -> None:
    for name in ("alpha", "beta"):
        worker(project, "issue-action", name=name, **({"integrations": integrations} if integrations else {}))


def started(project: Project, number: int) -> list[str]:
    with project.board() as board:
        return [each.agent for each in FleetBoard(board).sessions(number)]


def test_the_assignee_of_a_task_is_suggested_and_is_whom_the_fleet_starts(project: Project) -> None:
    two_workers(project)
    for number, name in ((1, "beta"), (2, "alpha")):
        project.genba("task", "add", f"Task {number}", "--assignee", name, check=0)
        result = {each["issue"]: each for each in suggestions(project)}[number]
        assert (result["agent"], result["command"]) == (name, f"genba run {name} --issue {number}")
        assert f"assigned to {name}" in result["rationale"]
        assert result["command"] in project.genba("status").out
    project.genba("work", "--until-empty", "--workers", "1", check=0)
    assert (started(project, 1), started(project, 2)) == (["beta"], ["alpha"])


def test_who_has_a_label_of_the_task_as_a_capability_is_suggested_and_is_whom_the_fleet_starts(
    project: Project,
) -> None:
    worker(project, "issue-action", name="alpha")
    worker(project, "docs", name="scribe")
    project.issue(1, "Write a page", labels=("docs",))
    assert suggestions(project)[0]["command"] == "genba run scribe --issue 1"
    project.genba("work", "--until-empty", check=0)
    assert started(project, 1) == ["scribe"]


@pytest.mark.parametrize("assignee", ["anna", "facilitator"])
def test_a_task_of_a_person_or_of_an_agent_from_outside_is_left_to_them(project: Project, assignee: str) -> None:
    two_workers(project)
    project.issue(1, "Choose a region", assignee=assignee)
    (only,) = suggestions(project)
    assert (only["agent"], only["command"]) == ("none", "genba task show 1")
    assert f'Leave #1 to "{assignee}"' in only["description"]
    project.genba("work", "--until-empty", check=1)
    assert started(project, 1) == []
    project.genba("facilitate", "--apply", check=0)
    with project.board() as board:
        assert "genba run" not in board.comments(1)[0].body


@pytest.mark.parametrize("assignee", ["beta", ""])
def test_after_a_phase_a_person_says_who_goes_on(project: Project, assignee: str) -> None:
    two_workers(project, github={"enabled": True, "defaultClosureAction": "label-only"})
    project.issue(1, "Add a page", assignee=assignee)
    project.genba("run", "beta", "--issue", "1", check=0)
    command = "genba task edit 1 --assignee AGENT"
    (only,) = suggestions(project)
    assert (only["agent"], only["command"]) == ("none", command)
    assert only["description"].startswith("Say who goes on with #1: beta completed its phase with ")
    assert command in project.genba("work", "--until-empty", check=1).out
    project.genba("facilitate", "--apply", check=0)
    with project.board() as board:
        assert board.comments(1)[0].body.endswith(f"`{command}`")
    project.genba("task", "edit", "1", "--assignee", "alpha", check=0)
    assert suggestions(project)[0]["command"] == "genba run alpha --issue 1"


def test_an_agent_that_asks_what_is_next_is_started_by_the_fleet(project: Project) -> None:
    worker(project, "issue-action", name="alpha")
    lead = {
        "name": "lead",
        "description": "Asks what is next",
        "parameters": {"issue": {"type": "number"}},
        "runner": {"flow": {"mode": "stateDriven"}, "adapter": {"type": "custom", "command": "true"}},
    }
    project.write(".agent/lead/agent.json", json.dumps(lead))
    project.write(".agent/lead/prompts/system.md", "You ask what is next.\n")
    project.issue(1, "Add a page", assignee="lead")
    best = suggestions(project)[0]
    assert (best["agent"], best["command"]) == ("lead", "genba work --until-empty")
    assert "only a fleet answers it" in project.genba("run", "lead", "--issue", "1", check=2).err
