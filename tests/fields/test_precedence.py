"""Command line > config.local.json > config.json > agent.json > project > defaults."""

import json
from typing import Any

from tests.fields.flows import configure, work
from tests.project import Project


def settings(model: str) -> str:
    return json.dumps({"runner": {"flow": {"defaultModel": model}}})


def explained(project: Project, path: str) -> tuple[Any, str]:
    """An effective value of the agent, and where it came from."""
    rows = project.genba("agent", "show", "worker", "--explain", "--json", check=0).json
    return next((row["value"], row["from"]) for row in rows if row["path"] == path)


def expecting(project: Project, model: str, **runner: Any) -> None:
    """An agent that plays along only when it is asked with this model."""
    project.agent(script={"turns": [work(model=model)]}, commit=False, **runner)


def test_the_project_wins_over_the_default(project: Project) -> None:
    configure(project, "agents: {worker: {model: from-project}}\n")
    expecting(project, "from-project")
    project.commit()
    project.run("worker")


def test_agent_json_wins_over_the_project(project: Project) -> None:
    configure(project, "agents: {worker: {model: from-project}}\n")
    expecting(project, "from-agent", flow={"defaultModel": "from-agent"})
    project.run("worker")


def test_config_json_wins_over_agent_json(project: Project) -> None:
    expecting(project, "from-config", flow={"defaultModel": "from-agent"})
    project.write(".agent/worker/config.json", settings("from-config"))
    project.run("worker")


def test_config_local_json_wins_over_config_json(project: Project) -> None:
    expecting(project, "from-local", flow={"defaultModel": "from-agent"})
    project.write(".agent/worker/config.json", settings("from-config"))
    project.write(".agent/worker/config.local.json", settings("from-local"))
    project.run("worker")


def test_an_option_wins_over_every_file(project: Project) -> None:
    expecting(project, "from-option", flow={"defaultModel": "from-agent"})
    project.write(".agent/worker/config.local.json", settings("from-local"))
    project.run("worker", "--model", "from-option")


def test_set_sets_any_value_of_agent_json(project: Project) -> None:
    expecting(project, "from-set", flow={"defaultModel": "from-agent"})
    project.write(".agent/worker/config.local.json", settings("from-local"))
    set_budget = "runner.completion.config.maxIterations=1"
    project.run("worker", "--set", "runner.flow.defaultModel=from-set", "--set", set_budget)


def test_objects_merge(project: Project) -> None:
    project.agent(limits={"maxIterations": 3, "reasks": 1}, commit=False)
    project.write(".agent/worker/config.json", json.dumps({"runner": {"limits": {"reasks": 0}}}))
    assert explained(project, "runner.limits.maxIterations") == (3, ".agent/worker/agent.json")
    assert explained(project, "runner.limits.reasks") == (0, ".agent/worker/config.json")


def test_arrays_replace(project: Project) -> None:
    project.agent(boundaries={"allowedTools": ["Read", "Bash"]}, script={"turns": [work(tools=["Bash"])]}, commit=False)
    project.write(".agent/worker/config.json", json.dumps({"runner": {"boundaries": {"allowedTools": ["Read"]}}}))
    assert '"Bash"' in project.run("worker", check=1)["reason"]


def test_an_adapter_of_another_type_replaces_the_one_below(project: Project) -> None:
    configure(project, "agents: {default: {adapter: {type: custom, command: exit 1}}}\n")
    project.agent(adapter={"type": "scripted", "script": "script.yaml"})
    assert project.run("worker")["outcome"] == "completed"


def test_a_completion_of_another_type_replaces_the_one_below(project: Project) -> None:
    project.agent(completion={"type": "keywordSignal", "config": {"completionKeyword": "SHIPPED"}}, commit=False)
    budget = {"type": "iterationBudget", "config": {"maxIterations": 2}}
    project.write(".agent/worker/config.json", json.dumps({"runner": {"completion": budget}}))
    assert project.run("worker")["iterations"] == 2


def test_explain_names_the_source_of_each_value(project: Project) -> None:
    configure(project, "agents: {default: {timeout: 5000}}\n")
    project.agent(flow={"defaultModel": "sonnet"}, commit=False)
    project.write(".agent/worker/config.local.json", json.dumps({"runner": {"limits": {"retries": 7}}}))
    assert explained(project, "runner.limits.askTimeoutSeconds") == (5.0, ".genba/config.yaml")
    assert explained(project, "runner.flow.defaultModel") == ("sonnet", ".agent/worker/agent.json")
    assert explained(project, "runner.limits.retries") == (7, ".agent/worker/config.local.json")
    assert explained(project, "runner.limits.reasks") == (2, "default")


def test_explain_is_a_table_for_people(project: Project) -> None:
    project.agent(flow={"defaultModel": "sonnet"})
    lines = project.genba("agent", "show", "worker", "--explain", check=0).out.splitlines()
    assert ["runner.flow.defaultModel", '"sonnet"', ".agent/worker/agent.json"] in [line.split() for line in lines]


def test_a_wrong_value_is_reported_with_the_file_it_came_from(project: Project) -> None:
    project.agent(commit=False)
    project.write(".agent/worker/config.local.json", json.dumps({"runner": {"limits": {"retries": -1}}}))
    assert ".agent/worker/config.local.json" in project.genba("run", "worker", check=3).err


def test_an_unknown_key_is_refused_with_the_nearest_known_one(project: Project) -> None:
    project.agent(boundaries={"allowTools": ["Read"]})
    done = project.genba("run", "worker", check=3)
    assert "runner.boundaries.allowTools: unknown key" in done.err
    assert "allowedTools" in done.err


def test_every_problem_is_reported_at_once(project: Project) -> None:
    project.agent(limits={"retries": -1}, logging={"format": "text"}, flow={"systemPromptPath": "absent.md"})
    output = project.genba("run", "worker", check=3).err
    assert [path in output for path in ("limits.retries", "logging.format", "systemPromptPath")] == [True, True, True]


def test_an_agent_cannot_edit_its_own_rules(project: Project) -> None:
    edit = "echo '{}' > .agent/worker/agent.json && git add -A && git commit -qm rules"
    completion = {"type": "iterationBudget", "config": {"maxIterations": 2}}
    project.agent(completion=completion, script={"turns": [work(run=edit), work()]})
    assert project.run("worker", "--no-merge")["iterations"] == 2
