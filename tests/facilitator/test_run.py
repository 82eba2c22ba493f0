"""`genba run facilitator`: its steps are walked like those of any agent, and answered by code."""

import json
from typing import Any

from tests.project import Project

STEPS = ["discover", "statuscheck", "blockercheck", "stalecheck", "facilitate", "report", "complete"]


def answers(project: Project, run: str) -> dict[str, Any]:
    return {each["step"]: each["structured"] for each in project.events(run) if each["event"] == "reply_received"}


def issues(project: Project) -> None:
    project.issue(1, "Add a page")
    project.issue(2, "Write docs")
    project.genba("task", "depend", "2", "--on", "1", check=0)


def said(project: Project, number: int) -> list[str]:
    with project.board() as board:
        return [each.body for each in board.comments(number)]


def test_its_steps_are_walked_and_each_is_answered_by_what_was_seen(project: Project) -> None:
    issues(project)
    run = project.run("facilitator", "--apply")["run"]
    assert project.steps_walked(run) == STEPS
    told = answers(project, run)
    assert "iterator" in [each["name"] for each in told["discover"]["agents"]]
    assert [each["state"] for each in told["statuscheck"]["assessments"]] == ["incomplete", "blocked"]
    assert told["blockercheck"]["blockers"] == [{"issue": 2, "blocker": "waits for #1"}]
    assert told["report"]["recommendations"][0]["nextAgent"] == "iterator"
    assert len(said(project, 2)) == 1
    assert project.task(2).labels == ("blocked",)


def test_a_field_that_is_not_ready_ends_it_and_says_what_is_missing(project: Project) -> None:
    issues(project)
    done = project.genba("run", "facilitator", check=1)
    assert "the field is not ready: 3 actions are not carried out" in done.err
    assert said(project, 2) == []


def test_an_agent_cannot_have_it_speak(project: Project) -> None:
    issues(project)
    done = project.genba("run", "facilitator", "--apply", check=1, GENBA_RUN="worker-1", GENBA_AGENT="worker")
    assert "an agent may not speak for the facilitator" in done.err
    assert said(project, 2) == []


def test_a_board_that_the_project_cannot_have_is_refused(project: Project) -> None:
    issues(project)
    done = project.genba("run", "facilitator", "--project", "5")
    assert done.code != 0
    assert "the issues of this project do not live there" in done.err


def test_so_many_iterations_are_the_most(project: Project) -> None:
    issues(project)
    assert project.run("facilitator", "--iterate-max", "7", "--apply")["iterations"] == 7
    refused = project.genba("run", "facilitator", "--iterate-max", "2", "--apply")
    assert refused.code != 0


def test_a_label_narrows_it(project: Project) -> None:
    project.issue(1, "Add a page", labels=("sprint-1",))
    project.issue(2, "Write docs")
    run = project.run("facilitator", "--label", "sprint-1", "--apply")["run"]
    assert [each["issue"] for each in answers(project, run)["statuscheck"]["assessments"]] == [1]
    assert said(project, 2) == []


def test_a_model_gets_the_same_facts_and_only_words_what_is_said(project: Project) -> None:
    """It lies about states and proposes to close an issue: none of that has any effect."""
    issues(project)
    lie = {
        "agents": [],
        "assessments": [{"issue": 1, "state": "done"}],
        "blockers": [],
        "stale": [],
        "actions": [
            {"action": "comment", "issue": 2, "body": "Please wait for @octocat's #1."},
            {"action": "close", "issue": 1, "body": "Closed!"},
        ],
        "recommendations": [{"nextAgent": "nobody", "reason": "because"}],
        "next_action": {"action": "next"},
    }
    project.write("model.sh", f"cat >> prompts.txt\ncat <<'EOF'\n{json.dumps(lie)}\nEOF\n")
    run = project.run(
        "facilitator",
        "--apply",
        "--set",
        'runner.adapter={"type": "custom", "command": ["sh", "model.sh"]}',
        check=None,
    )["run"]
    told = answers(project, run)
    assert [each["state"] for each in told["statuscheck"]["assessments"]] == ["incomplete", "blocked"]
    assert {each["action"] for each in told["facilitate"]["actions"]} == {"comment", "label"}
    (comment,) = said(project, 2)
    assert comment.startswith("Please wait for @")
    assert "@octocat" not in comment
    assert '"state": "blocked"' in project.read("prompts.txt")
    assert project.task(1).status == "open"
