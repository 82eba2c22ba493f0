"""Budgets and patience, set by the agent (runner.limits) and by the project (limits): the same behaviour each time."""

import re
from typing import Any, Protocol

import pytest
import yaml

from tests.fields.flows import configure, idle, report, work
from tests.project import Project, gated, says

NEVER = {"type": "keywordSignal", "config": {"completionKeyword": "SHIPPED"}}
CRASH = {"do": [{"crash": 9}]}
HASTE = {"retryDelaySeconds": 0.01}


class Declare(Protocol):
    def __call__(self, limits: dict[str, Any], **agent: Any) -> None: ...


@pytest.fixture(params=["agent", "project"])
def declare(request: pytest.FixtureRequest, project: Project) -> Declare:
    """Declare an agent under limits that its own file sets, or its project."""

    def by_agent(limits: dict[str, Any], **agent: Any) -> None:
        project.agent(limits=limits, **agent)

    def by_project(limits: dict[str, Any], **agent: Any) -> None:
        snake = {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name): limits[name] for name in limits}
        configure(project, yaml.safe_dump({"limits": snake}))
        project.agent(**agent)

    return by_agent if request.param == "agent" else by_project


def suspended(project: Project) -> str:
    """The reason of a run that a budget ended: exit code 6, nothing merged, and the way on."""
    result = project.run("worker", check=6)
    assert (result["outcome"], result["merged"]) == ("budget_exhausted", "")
    assert result["hint"].startswith(f"genba run --resume {result['run']}")
    return str(result["reason"])


def test_max_iterations_suspend_the_run(project: Project, declare: Declare) -> None:
    declare({"maxIterations": 2}, completion=NEVER)
    assert suspended(project) == "2 of 2 iterations are used"


def test_tokens_suspend_the_run(project: Project, declare: Declare) -> None:
    turn = work(usage={"input_tokens": 60, "output_tokens": 50})
    declare({"tokens": 200}, completion=NEVER, script={"turns": [turn], "repeat": True})
    assert suspended(project) == "220 of 200 tokens are used"


def test_cost_suspend_the_run(project: Project, declare: Declare) -> None:
    turn = work(usage={"cost_usd": 0.2})
    declare({"costUsd": 0.5}, completion=NEVER, script={"turns": [turn], "repeat": True})
    assert re.fullmatch(r"\$0.60? of \$0.50? are used", suspended(project))


def test_wall_time_suspend_the_run(project: Project, declare: Declare) -> None:
    declare({"wallTimeSeconds": 0.2}, completion=NEVER, script={"turns": [{"do": [{"sleep": 30}]}]})
    assert "the agent gave no answer within its time" in suspended(project)


def test_an_answer_that_takes_too_long_is_a_failed_try(project: Project, declare: Declare) -> None:
    chatter = [{"print": "still here"}, {"sleep": 30}]
    declare({"askTimeoutSeconds": 0.2, "retries": 0}, script={"turns": [{"do": chatter}]})
    result = project.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert "the agent gave no answer within its time" in result["reason"]


def test_silence_that_takes_too_long_is_a_failed_try(project: Project, declare: Declare) -> None:
    declare({"idleTimeoutSeconds": 0.2, "retries": 0}, script={"turns": [{"do": [{"sleep": 30}]}]})
    result = project.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert "the agent went silent" in result["reason"]


def test_a_crash_is_tried_again_as_often_as_retries_says(project: Project, declare: Declare) -> None:
    declare({"retries": 1, **HASTE}, script={"turns": [CRASH, CRASH, work()]})
    result = project.run("worker", check=1)
    assert (result["outcome"], result["reason"]) == ("failed", "the agent was killed by signal 9")
    assert len(report(project, result, "ask_retried")) == 1


def test_a_crash_that_passes_costs_no_iteration(project: Project, declare: Declare) -> None:
    declare({"retries": 2, **HASTE}, script={"turns": [CRASH, {"do": [{"exit": 3}]}, work()]})
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 1)


def test_the_first_wait_is_the_retry_delay_and_it_doubles(project: Project, declare: Declare) -> None:
    declare({"retryDelaySeconds": 0.04}, script={"turns": [CRASH, CRASH, work()]})
    waits = [event["wait_seconds"] for event in report(project, project.run("worker"), "ask_retried")]
    assert 0.02 <= waits[0] <= 0.04
    assert 0.04 <= waits[1] <= 0.08


def test_no_wait_is_longer_than_the_longest(project: Project, declare: Declare) -> None:
    declare({"retryDelaySeconds": 30, "retryMaxDelaySeconds": 0.02}, script={"turns": [CRASH, work()]})
    waits = [event["wait_seconds"] for event in report(project, project.run("worker"), "ask_retried")]
    assert 0.01 <= waits[0] <= 0.02


def test_a_reply_that_does_not_fit_is_asked_again_as_often_as_reasks_says(project: Project, declare: Declare) -> None:
    declare(
        {"reasks": 1},
        completion={"type": "stepMachine"},
        steps={"work": {"structuredGate": gated("next"), "transitions": {"next": None}}},
        script={"turns": [work("prose"), idle("prose"), idle(says("next"))]},
    )
    result = project.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert result["reason"] == "no reply fitted after 2 questions: the reply has no JSON object"


def test_the_limits_of_the_agent_win_over_those_of_the_project(project: Project) -> None:
    configure(project, "limits: {max_iterations: 5}\n")
    project.agent(completion=NEVER, limits={"maxIterations": 1})
    assert suspended(project) == "1 of 1 iterations are used"


def test_a_rate_limit_waits_for_its_reset_and_costs_neither_an_iteration_nor_a_try(project: Project) -> None:
    turns = [{"rate_limit": 0.05}, {"rate_limit": 0.01}, work()]
    project.agent(script={"turns": turns}, limits={"retries": 0})
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 1)
    assert [event["wait_seconds"] for event in report(project, result, "ask_retried")] == [0.05, 0.01]


def test_a_rate_limit_that_outlasts_the_run_suspend_it_at_once(project: Project) -> None:
    project.agent(script={"turns": [{"rate_limit": 900}]}, limits={"wallTimeSeconds": 60})
    assert "the next try is in 900 s, after the time of this run" in suspended(project)


def test_a_suspended_run_goes_on_when_its_limit_is_raised(project: Project) -> None:
    turns = [work(), work({"state": "SHIPPED"})]
    project.agent(completion=NEVER, script={"turns": turns}, limits={"maxIterations": 1})
    run = project.run("worker", check=6)["run"]
    result = project.run("--resume", run, "--set", "runner.limits.maxIterations=3")
    assert (result["outcome"], result["iterations"]) == ("completed", 2)


def test_a_limit_that_is_no_limit_is_refused(project: Project) -> None:
    project.agent(limits={"maxIterations": 0})
    assert "runner.limits.maxIterations" in project.genba("run", "worker", check=3).err
