"""Every pattern of suggestion is typed as it stands, and does what it says."""

import shlex
from typing import Any

from genba.domain.tasks import TaskStatus
from tests.project import COMMIT, Finished, Project


def worker(project: Project, *capabilities: str, name: str = "pages") -> None:
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
    told = project.genba("facilitate", "--json", check=0).json
    assert (told["assessments"][0]["state"], told["assessments"][0]["closed"]) == ("done", True)
    assert told["recommendation"]["suggestions"] == []


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


def test_where_no_agent_can_do_it_nobody_is_recommended_and_it_says_why(project: Project) -> None:
    project.issue(1, "Add a page")
    worker(project, "talk-action", name="iterator")
    done = project.genba("facilitate", "--apply", "--json", check=1).json
    assert done["recommendation"]["nextAgent"] == "none"
    (missing,) = done["incomplete"]
    assert missing.startswith("no next action is known: no agent that can be called with an issue has the capability")


def test_a_pause_that_was_forgotten_and_an_agent_that_would_not_answer_are_told(project: Project) -> None:
    project.issue(1, "Add a page")
    told = project.genba("status").err
    assert "warning: no adapter is chosen for iterator: nobody would answer   genba doctor" in told
    assert "paused" not in told
    project.genba("pause")
    assert "the project is paused: nothing new begins   genba resume" in project.genba("status").err
    project.genba("stop")
    assert "everybody was told to stop: nothing goes on   genba resume" in project.genba("status").err
    project.genba("resume")
    assert "genba resume" not in project.genba("status").err


def test_what_a_suggestion_leaves_open_is_not_taken_for_an_answer(project: Project) -> None:
    project.issue(1, "Add a page")
    done = project.genba("answer", "1", "…", check=2)
    assert "… stands for your own words" in done.err
