"""Agents without a worktree work in the user's checkout: what the user has changed there is never committed."""

from typing import Any

from tests.project import Project

IN_PLACE: dict[str, Any] = {"execution": {"worktree": {"enabled": False}}}


def commits(project: Project, command: str = "echo made >> made.txt", iterations: int = 1) -> None:
    project.agent(
        completion={"type": "iterationBudget", "config": {"maxIterations": iterations}},
        adapter={"type": "custom", "command": f"cat > /dev/null; {command}; echo Done", "commit": True},
        **IN_PLACE,
    )


def test_a_checkout_with_changes_is_refused_before_anything_starts(project: Project) -> None:
    commits(project)
    project.write("README.md", "my own words\n")
    project.write("notes.txt", "not for anybody\n")
    head, status = project.git("rev-parse", "HEAD"), project.git("status", "--porcelain")
    refused = project.genba("run", "worker", check=5)
    assert "uncommitted changes: README.md, notes.txt" in refused.err
    assert "nothing was started, nothing was changed." in refused.err
    assert "git stash -u" in refused.err
    assert (project.git("rev-parse", "HEAD"), project.git("status", "--porcelain")) == (head, status)
    assert project.genba("logs", "--json").out == "", "no session was begun"


def test_only_what_the_agent_changed_is_committed(project: Project) -> None:
    commits(project)
    project.run("worker")
    assert project.git("show", "--format=", "--name-only", "HEAD") == "made.txt"


def test_files_that_appear_between_two_questions_are_not_committed(project: Project) -> None:
    """Something other than the agent writes into the checkout while nobody is asked: a check stands for the user."""
    project.agent(
        completion={"type": "stepMachine"},
        registry={"validators": {"mine": {"type": "command", "command": "echo mine > mine.txt; false"}}},
        steps={"work": {"stepKind": "closure", "completionConditions": [{"validator": "mine"}]}},
        adapter={"type": "custom", "command": "cat > /dev/null; date +%N >> made.txt; echo Done", "commit": True},
        **IN_PLACE,
    )
    result = project.run("worker", check=1)
    assert "changes that the agent did not make: mine.txt" in result["reason"]
    assert "mine.txt" not in project.git("log", "--name-only", "--format=")
    assert project.read("mine.txt") == "mine\n"


def test_a_session_that_goes_on_refuses_what_was_changed_meanwhile(project: Project) -> None:
    commits(project, "exit 9")
    quick = ("--set", "runner.limits.retries=0")
    run = project.run("worker", *quick, check=1)["run"]
    project.write("notes.txt", "mine\n")
    refused = project.genba("run", "--resume", run, check=5)
    assert "uncommitted changes: notes.txt" in refused.err
    assert project.git("status", "--porcelain") == "?? notes.txt"
