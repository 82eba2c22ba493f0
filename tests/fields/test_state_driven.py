"""runner.flow.mode and hierarchy: agents that ask for their next action."""

import json
from typing import Any

import jsonschema_rs
import pytest

from tests.project import Project

ASKING: dict[str, Any] = {"mode": "stateDriven"}


def declare(project: Project, name: str = "asker", **runner: Any) -> None:
    """An agent that asks: two files, and nothing else."""
    sections = {"flow": ASKING, "adapter": {"type": "custom", "command": "true"}, **runner}
    file = {"name": name, "description": "An agent that asks", "runner": sections}
    file["parameters"] = {"issue": {"type": "number"}}
    project.write(f".agent/{name}/agent.json", json.dumps(file))
    project.write(f".agent/{name}/prompts/system.md", "You are an agent of the tests.\n")
    project.commit()


def test_an_agent_that_asks_what_is_next_needs_no_steps_and_no_completion(project: Project) -> None:
    declare(project)
    project.genba("agent", "check", "asker", check=0)
    shown = project.genba("agent", "show", "asker", check=0).out
    assert "it is a worker, and asks what is next" in shown
    assert "steps" not in shown


def test_an_agent_that_asks_is_run_by_a_fleet_alone(project: Project) -> None:
    declare(project)
    done = project.genba("run", "asker", check=2)
    assert "asker asks for its next action, and only a fleet answers it" in done.err
    assert "hint: genba work" in done.err


def test_an_agent_that_asks_can_be_a_manager(project: Project) -> None:
    declare(project, flow={**ASKING, "hierarchy": "manager"})
    assert "it is a manager" in project.genba("agent", "show", "asker", check=0).out


def test_a_hierarchy_without_the_mode_is_refused(project: Project) -> None:
    project.agent(flow={"hierarchy": "worker"})
    done = project.genba("agent", "check", "worker", check=3)
    assert "runner.flow.hierarchy" in done.err
    assert "only an agent that asks for its next action is a worker or a manager" in done.err


@pytest.mark.parametrize("mode", ["statedriven", "state-driven", 1])
def test_an_unknown_mode_is_refused(project: Project, mode: object) -> None:
    project.agent(flow={"mode": mode})
    assert "runner.flow.mode" in project.genba("agent", "check", "worker", check=3).err


@pytest.mark.parametrize(
    ("section", "at"),
    [
        ({"completion": {"type": "stepMachine"}}, "runner.completion"),
        ({"flow": {**ASKING, "prompts": {"fallbackDir": "texts"}}}, "runner.flow.prompts"),
        ({"actions": {"enabled": True}}, "runner.actions.enabled"),
        ({"actions": {"outputFormat": "yaml"}}, "runner.actions.outputFormat"),
        ({"actions": {"types": ["ask"], "handlers": {"ask": "builtin:record"}}}, "runner.actions.handlers"),
        ({"limits": {"reasks": 1}}, "runner.limits.reasks"),
    ],
)
def test_what_has_no_effect_for_an_agent_that_asks_is_refused(
    project: Project, section: dict[str, Any], at: str
) -> None:
    declare(project, **section)
    done = project.genba("agent", "check", "asker", check=3)
    assert f"{at}: has no effect" in " ".join(done.err.split())
    assert "or runner.flow.mode: loop" in done.err


def test_steps_of_an_agent_that_asks_are_refused(project: Project) -> None:
    declare(project)
    project.write(".agent/asker/steps_registry.json", '{"steps": {"work": {}}}')
    done = project.genba("agent", "check", "asker", check=3)
    assert ".agent/asker/steps_registry.json" in done.err
    assert "has no steps of its own" in done.err


def test_an_agent_that_only_plans_cannot_ask(project: Project) -> None:
    declare(project, boundaries={"permissionMode": "plan"})
    assert "could not ask for its next action" in project.genba("agent", "check", "asker", check=3).err


def test_its_capabilities_are_those_of_its_actions(project: Project) -> None:
    declare(project, actions={"types": ["python"]})
    assert "asker" in project.genba("agent", "list", "--capability", "python", check=0).out


def test_an_agent_that_does_not_ask_still_says_when_it_is_done(project: Project) -> None:
    project.agent()
    file = json.loads(project.read(".agent/worker/agent.json"))
    del file["runner"]["completion"]
    project.write(".agent/worker/agent.json", json.dumps(file))
    assert "is required and missing" in project.genba("agent", "check", "worker", check=3).err


def test_the_schema_knows_agents_that_ask(project: Project) -> None:
    validator = jsonschema_rs.validator_for(project.genba("schema", "agent", check=0).json)
    declare(project)
    asking = json.loads(project.read(".agent/asker/agent.json"))
    assert validator.is_valid(asking)
    mistakes: tuple[dict[str, Any], ...] = ({"completion": {"type": "stepMachine"}}, {"flow": {}})
    for wrong in mistakes:
        assert not validator.is_valid({**asking, "runner": {**asking["runner"], **wrong}})


def test_a_new_agent_that_asks_passes_its_check(project: Project) -> None:
    done = project.genba("agent", "new", "asker", "--template", "state-driven", check=0)
    assert "genba work" in done.err
    project.genba("agent", "check", "asker", check=0)
