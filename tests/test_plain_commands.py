"""Plain commands as agents: a command that answers in prose is judged by what git and the goals show."""

import pytest

from tests.project import Project

SETTINGS = """
project: {name: plain}
agents:
  default:
    adapter: {type: custom, command: "./agent.sh"}
dod:
  - file_exists: work.txt
"""


def commanded(project: Project, script: str, settings: str = SETTINGS, **work: object) -> None:
    """A project whose agents are one shell script, and one issue."""
    project.write("agent.sh", f"#!/bin/sh\ncat > /dev/null\n{script}").chmod(0o755)
    project.write(".genba/config.yaml", settings)
    project.commit("Say who works")
    project.issue(1, "Do the work", **work)  # type: ignore[arg-type]


def merged(project: Project, result: dict[str, object]) -> bool:
    return bool(result["merged"]) and project.git("show", "main:work.txt") != "" and project.task(1).status == "done"


def test_a_command_that_commits_and_answers_in_prose_completes_the_built_in_iterator(project: Project) -> None:
    commanded(
        project, "echo 'I wrote the file and committed it.'\necho work >> work.txt\ngit add -A\ngit commit -qm work\n"
    )
    result = project.run("iterator", "--issue", "1")
    assert merged(project, result)
    assert result["iterations"] == 1
    assert [event for event in project.events() if event["event"] == "reply_refused"] == []


def test_a_goal_that_fails_brings_a_plain_command_on_without_words(project: Project) -> None:
    script = "echo 'Next piece.'\ntest -e one && echo work > work.txt\ntouch one\ngit add -A\ngit commit -qm piece\n"
    commanded(project, script)
    result = project.run("iterator", "--issue", "1")
    assert merged(project, result)
    assert result["iterations"] == 2
    assert "file_exists" in project.prompts()[1], "the next prompt says which goal fails"


@pytest.mark.parametrize(
    ("language", "works", "plans", "claims"),
    [
        ("en", "Do the next piece of it.", "Change nothing yet", "You claimed"),
        ("ja", "計画の次の部分を行ってください。", "まだ何も変更しないでください", "あなたの宣言"),
    ],
)
def test_the_next_prompt_after_a_failed_goal_asks_a_plain_command_for_work_and_invents_no_claim(
    project: Project, language: str, works: str, plans: str, claims: str
) -> None:
    script = "echo 'Next piece.'\ntest -e one && echo work > work.txt\ntouch one\ngit add -A\ngit commit -qm piece\n"
    commanded(project, script, f"{SETTINGS}workflow: {{language: {language}}}\n")
    assert merged(project, project.run("iterator", "--issue", "1"))
    first, second = project.prompts()
    assert plans in first
    assert works in second
    assert plans not in second
    assert claims not in second
    assert project.steps_walked() == ["initial.issue", "continuation.issue"]


def test_a_command_whose_changes_genba_commits_needs_no_words_either(project: Project) -> None:
    settings = SETTINGS.replace('command: "./agent.sh"', 'command: "./agent.sh", commit: true')
    commanded(project, "echo 'Done.'\necho work > work.txt\n", settings)
    assert merged(project, project.run("iterator", "--issue", "1"))


def test_a_command_that_changes_nothing_ends_incomplete_and_not_by_its_form(project: Project) -> None:
    commanded(project, "echo 'All done!'\n")
    result = project.run("iterator", "--issue", "1", check=1)
    assert (result["outcome"], result["merged"]) == ("incomplete", "")
    assert result["reason"].startswith("no progress: commits-exist")


def test_an_agent_that_has_answered_in_the_form_is_still_asked_for_it(project: Project) -> None:
    """A forgotten answer of an agent that plans in steps is no sign that its work is done."""
    script = """
if [ "$GENBA_STEP" = initial.issue ]; then
  echo '{"plan": "Write it.", "next_action": {"action": "next"}}'
else
  echo half >> work.txt; git add -A; git commit -qm half; echo 'This is half of it.'
fi
"""
    commanded(project, script)
    result = project.run("iterator", "--issue", "1", "--set", "runner.limits.maxIterations=4", check=None)
    assert result["outcome"] == "budget_exhausted", result
    refused = [event["reason"] for event in project.events() if event["event"] == "reply_refused"]
    assert refused == ["the reply has no JSON object"] * 9


@pytest.mark.parametrize("words", ["cannot go on", ""])
def test_an_exit_code_is_a_warning_when_the_work_on_the_branch_is_verified(project: Project, words: str) -> None:
    commanded(project, f"echo work > work.txt\ngit add -A\ngit commit -qm work\necho '{words}' >&2\nexit 3\n")
    result = project.run("iterator", "--issue", "1")
    assert merged(project, result)
    lines = [event["message"] for event in project.events() if event["event"] == "notice"]
    assert any(each.startswith("warning: the agent ended with exit code 3") for each in lines)


def test_an_exit_code_without_new_work_is_tried_again_and_fails(project: Project) -> None:
    commanded(project, "echo 'no network' >&2\nexit 3\n")
    quick = ("--set", "runner.limits.retries=1", "--set", "runner.limits.retryDelaySeconds=0")
    result = project.run("iterator", "--issue", "1", *quick, check=1)
    assert (result["outcome"], result["reason"]) == ("failed", "the agent ended with exit code 3: no network")
    assert sum(event["event"] == "ask_retried" for event in project.events()) == 1


def test_an_exit_code_with_work_that_misses_a_goal_does_not_land(project: Project) -> None:
    commanded(project, "echo other >> other.txt\ngit add -A\ngit commit -qm other\nexit 1\n")
    result = project.run("iterator", "--issue", "1", check=None)
    assert (result["outcome"], result["merged"]) != ("completed", "")
    assert project.git("log", "--format=%s", "main").splitlines()[0] == "Say who works"


def test_conditions_of_a_step_graph_bring_a_plain_command_to_its_end(project: Project) -> None:
    """The step machine goes on by its checks where an agent gives no structured output."""
    gate = {"structuredGate": {"allowedIntents": ["next"]}, "completionConditions": [{"validator": "commits-exist"}]}
    closing = {
        "stepKind": "closure",
        "structuredGate": {"allowedIntents": ["closing"]},
        "completionConditions": [{"validator": "git-clean"}],
    }
    project.agent(
        completion={"type": "stepMachine"},
        adapter={
            "type": "custom",
            "command": "cat > /dev/null; echo Done; echo x >> work.txt; git add -A; git commit -qm x",
        },
        registry={"entryStep": "work"},
        steps={"work": {**gate, "transitions": {"next": "close"}}, "close": closing},
    )
    result = project.run("worker")
    assert result["outcome"] == "completed"
    assert project.steps_walked() == ["work", "close"]
