"""`genba run facilitator`: its steps are walked like those of any agent, and answered by code."""

import json
import re
from typing import Any

import pytest

from tests.project import Project

STEPS = ["discover", "statuscheck", "blockercheck", "stalecheck", "facilitate", "report", "complete"]


def answers(project: Project, run: str) -> dict[str, Any]:
    return {each["step"]: each["structured"] for each in project.events(run) if each["event"] == "reply_received"}


def issues(project: Project) -> None:
    project.issue(1, "Add a page")
    project.issue(2, "Write docs")
    project.genba("task", "depend", "2", "--on", "1", check=0)


def printed(project: Project, number: int) -> list[str]:
    with project.board() as board:
        return [each.body for each in board.comments(number)]


def test_its_steps_are_walked_and_each_is_answered_by_what_was_seen(project: Project) -> None:
    issues(project)
    run = project.run("facilitator", "--apply")["run"]
    assert project.steps_walked(run) == STEPS
    result = answers(project, run)
    assert "iterator" in [each["name"] for each in result["discover"]["agents"]]
    assert [each["state"] for each in result["statuscheck"]["assessments"]] == ["incomplete", "blocked"]
    assert result["blockercheck"]["blockers"] == [{"issue": 2, "blocker": "waits for #1"}]
    (recommended,) = result["report"]["recommendations"]
    assert (recommended["nextAgent"], recommended["priority"]) == ("iterator", "high")
    assert len(printed(project, 2)) == 1
    assert project.task(2).labels == ("blocked",)


def test_an_agent_cannot_have_it_speak(project: Project) -> None:
    issues(project)
    done = project.genba("run", "facilitator", "--apply", check=1, GENBA_RUN="worker-1", GENBA_AGENT="worker")
    assert "an agent may not speak for the facilitator" in done.err
    assert printed(project, 2) == []


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
    assert printed(project, 2) == []


def test_a_model_gets_the_same_facts_and_only_words_the_comment(project: Project) -> None:
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
    result = answers(project, run)
    assert [each["state"] for each in result["statuscheck"]["assessments"]] == ["incomplete", "blocked"]
    assert {each["action"] for each in result["facilitate"]["actions"]} == {"comment", "label"}
    (comment,) = printed(project, 2)
    assert comment.startswith("Please wait for @")
    assert "@octocat" not in comment
    assert comment.endswith("\n\nNext: `genba run iterator --issue 1`")
    assert '"state": "blocked"' in project.read("prompts.txt")
    assert project.task(1).status == "open"


def report_of(text: str) -> str:
    """A report without how long ago it was made and what is new in it: both change by themselves."""
    return re.sub(r" · looked [^\n]*|  changed$", "", text, flags=re.MULTILINE)


def test_it_prints_the_report_of_genba_facilitate_and_ends_with_0(project: Project) -> None:
    issues(project)
    shown = project.genba("facilitate", check=1)
    done = project.genba("run", "facilitator", check=0)
    assert report_of(done.out) == report_of(shown.out)
    assert "comments and labels, not sent   genba facilitate --apply" in done.out
    assert "#2 label +blocked: waits for #1" in done.out
    assert "genba run iterator --issue 1" in done.out
    assert printed(project, 2) == []


def test_applied_it_says_so_once(project: Project) -> None:
    issues(project)
    assert "\n comments and labels\n" in project.genba("run", "facilitator", "--apply", check=0).out
    before = {number: (printed(project, number), project.task(number).version) for number in (1, 2)}
    again = project.genba("run", "facilitator", "--apply", check=0).out
    assert " comments and labels\n" not in again
    assert {number: (printed(project, number), project.task(number).version) for number in (1, 2)} == before
    assert [len(all_) for all_, _ in before.values()] == [1, 1]


def test_a_program_gets_the_result_with_the_report(project: Project) -> None:
    issues(project)
    outcome = project.genba("facilitate", "--json", "--label", "none").json
    result = project.run("facilitator", "--label", "none")
    assert result["outcome"] == "completed"
    report = result["report"]
    assert {**report, "looked_at": "", "agent_registry": report["agent_registry"]["agents"]} == {
        **outcome,
        "looked_at": "",
        "agent_registry": outcome["agent_registry"]["agents"],
    }


def test_a_state_that_is_not_known_ends_it_with_1_and_the_report_is_printed(project: Project) -> None:
    issues(project)
    project.sql("UPDATE tasks SET status = 'done' WHERE number = 1")
    project.write("page.txt", "a page\n")
    project.commit("Add a page\n\nIssue: 1")
    project.git("revert", "--no-edit", "HEAD")
    done = project.genba("run", "facilitator", "--apply", check=1)
    assert "the field is not ready: the state of #1 is not known" in done.err
    assert "? #1" in done.out
    (closed, _) = project.genba("facilitate", "--json").json["assessments"]
    assert (closed["closed"], closed["state"], closed["command"]) == (True, "unknown", "genba task show 1")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("--project", "5"), "the issues of this project do not live there"),
        (("--project-owner", "acme"), "--project-owner belongs to --project"),
        (("--apply", "--dry-run"), "--apply does it and --dry-run only shows it"),
    ],
)
def test_what_cannot_be_is_refused_before_it_begins(project: Project, words: tuple[str, ...], output: str) -> None:
    issues(project)
    assert output in project.genba("run", "facilitator", *words, check=2).err
    assert project.genba("sessions", "--all", "--json").json == []


def test_a_dry_run_may_be_asked_for_by_its_name(project: Project) -> None:
    issues(project)
    assert "comments and labels, not sent" in project.genba("run", "facilitator", "--dry-run", check=0).out
    assert printed(project, 1) == []
