"""The built-in planner and reviewer, run by hand: what they are asked, what they may answer, what they leave behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from genba.judgement.scheduling.plans import PlanLimits, plan_check
from genba.judgement.verification.reviews import verdict_check
from tests.project import Project

PLAN = {
    "status": "completed",
    "summary": "In two steps.",
    "subtasks": [
        {"key": "api", "title": "Add the endpoint", "body": "In src.", "goals": ["tests_pass"]},
        {"key": "ui", "title": "Show the form", "body": "In ui.", "goals": [], "depends_on": ["api"]},
    ],
}
APPROVAL = {"status": "completed", "verdict": "approve", "findings": [], "summary": "Good."}


@pytest.fixture
def answer(project: Project, tmp_path: Path) -> Any:
    """Lets both agents give these answers, one after the other."""

    def give(*answers: Any) -> None:
        for number, message in enumerate(answers, 1):
            (tmp_path / f"{number}.json").write_text(json.dumps(message))
        script = (
            f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > {tmp_path}/n; cat {tmp_path}/$n.json"
        )
        adapter = {"type": "custom", "command": ["sh", "-c", script]}
        settings = {"agents": {"default": {"adapter": adapter}}}
        project.write(".genba/config.yaml", json.dumps(settings))
        project.commit("Choose an adapter")
        project.issue(1, "Add a login", "With a form.")

    return give


def test_a_planner_gets_the_task_and_the_limits_and_leaves_nothing(project: Project, answer: Any) -> None:
    answer(PLAN)
    before = project.git("rev-parse", "main")

    result = project.run("planner", "--issue", "1", "--max-parts", "7", "--criteria", "- tests_pass")

    assert (result["outcome"], result["output"]) == ("completed", PLAN)
    assert plan_check(result["output"], project.task(1), PlanLimits(max_parts=7)) is None
    [prompt] = project.prompts()
    for message in ("# Plan the parts of issue #1: Add a login", "With a form.", "at most 7 parts", "- tests_pass"):
        assert message in prompt
    assert project.git("rev-parse", "main") == before
    assert str(project.task(1).status) == "open"


def test_an_answer_that_is_no_plan_is_asked_for_again(project: Project, answer: Any) -> None:
    answer({"status": "completed", "subtasks": "all"}, {"status": "completed", "summary": "", "subtasks": [{}]}, PLAN)

    result = project.run("planner", "--issue", "1")

    assert result["output"] == PLAN
    refused = [event["reason"] for event in project.events() if event["event"] == "reply_refused"]
    assert len(refused) == 2
    assert all("does not fit its schema" in reason for reason in refused)


def test_a_planner_that_needs_an_answer_says_so(project: Project, answer: Any) -> None:
    answer({"status": "blocked", "question": "Which database?"})

    result = project.run("planner", "--issue", "1", check=1)

    assert (result["outcome"], result["reason"]) == ("blocked", "Which database?")


def test_a_reviewer_learns_the_task_the_commit_and_the_results(project: Project, answer: Any) -> None:
    answer(APPROVAL)

    words = ("--commit", "5c1a0f2", "--base", "9d8e7f6", "--results", "- `tests_pass` holds")
    result = project.run("reviewer", "--issue", "1", *words)

    assert verdict_check(result["output"]) is None
    [prompt] = project.prompts()
    for message in ("#1: Add a login", "With a form.", "5c1a0f2", "9d8e7f6", "- `tests_pass` holds"):
        assert message in prompt


@pytest.mark.parametrize("word", ["changes", "changes_requested"])
def test_a_reviewer_may_want_changes(project: Project, answer: Any, word: str) -> None:
    found = [{"path": "a.py", "line": 3, "severity": "must", "text": "a hole"}]
    answer({"status": "completed", "verdict": word, "findings": found})

    result = project.run("reviewer", "--issue", "1")

    assert result["outcome"] == "completed"
    assert verdict_check(result["output"]) is None
