"""Several broken files, several problems in each: one run of one command names all of them."""

import json
from typing import Any

import pytest

from tests.project import Project

SETTINGS = """
projekt: {name: x}
agents: {default: {modell: y}}
limits: {retries: -1}
dod:
  - lint_pases
  - {type: response_contains, url: nowhere}
work: {workers: 0}
"""
AGENT: dict[str, Any] = {
    "name": "alpha",
    "descriptionn": "x",
    "runner": {
        "completion": {"type": "nope"},
        "limits": {"maxIterations": 0},
        "flow": {"systemPromptPath": "prompts/none.md", "prompts": {"fallbackDir": "../.."}},
        "execution": {"worktree": {"root": "../outside"}},
        "actions": {"handlers": {"a": "none.py:f"}},
    },
}
REGISTRY: dict[str, Any] = {
    "entryStep": "none",
    "steps": {
        "one": {"stepKind": "wrk"},
        "two": {"outputSchemaRef": "none.json", "completionConditions": [{"validator": "nobody"}], "stepId": "other"},
    },
}
OF_AGENT = {
    (".agent/alpha/agent.json", "descriptionn"),
    (".agent/alpha/agent.json", "description"),
    (".agent/alpha/agent.json", "runner.completion.type"),
    (".agent/alpha/agent.json", "runner.limits.maxIterations"),
    (".agent/alpha/agent.json", "runner.flow.systemPromptPath"),
    (".agent/alpha/agent.json", "runner.flow.prompts.fallbackDir"),
    (".agent/alpha/agent.json", "runner.execution.worktree.root"),
    (".agent/alpha/agent.json", "runner.actions.handlers.a"),
    (".agent/alpha/steps_registry.json", "entryStep"),
    (".agent/alpha/steps_registry.json", "steps.one.stepKind"),
    (".agent/alpha/steps_registry.json", "steps.two.outputSchemaRef"),
    (".agent/alpha/steps_registry.json", "steps.two.completionConditions[0].validator"),
    (".agent/alpha/steps_registry.json", "steps.two.stepId"),
}
OF_SETTINGS = {
    (".genba/config.yaml", "projekt"),
    (".genba/config.yaml", "agents.default.modell"),
    (".genba/config.yaml", "limits.retries"),
    (".genba/config.yaml", "dod[0].type"),
    (".genba/config.yaml", "dod[1].json_path"),
    (".genba/config.yaml", "work.workers"),
}


def problems(project: Project, *words: str) -> set[tuple[str, str]]:
    """Each problem that a command names, by file and path; each says what is wrong, and gives a hint."""
    told = project.genba(*words, "--json", check=3).json
    found = told.get("problems") or told["error"]["problems"]
    assert all(each["message"] and each["hint"] for each in found)
    return {(each["file"], each["path"]) for each in found}


def broken(project: Project) -> None:
    project.agent("alpha", commit=False)
    project.agent("beta", commit=False)
    project.write(".agent/alpha/agent.json", json.dumps(AGENT))
    project.write(".agent/alpha/steps_registry.json", json.dumps(REGISTRY))
    project.write(".agent/beta/steps_registry.json", '{"steps": }')
    project.write(".agent/beta/config.json", '{"runner": {')


def test_one_agent_tells_every_problem_of_all_its_files(project: Project) -> None:
    broken(project)
    assert problems(project, "agent", "check", "alpha") == OF_AGENT
    assert problems(project, "run", "alpha") == OF_AGENT


def test_files_that_cannot_be_parsed_hide_no_other_file(project: Project) -> None:
    broken(project)
    agent = {**AGENT, "name": "beta"}
    project.write(".agent/beta/agent.json", json.dumps(agent))
    found = problems(project, "agent", "check", "beta")
    assert {(file, path.partition(",")[0]) for file, path in found if "line" in path} == {
        (".agent/beta/config.json", "line 1"),
        (".agent/beta/steps_registry.json", "line 1"),
    }
    paths = {path for file, path in found if file == ".agent/beta/agent.json"}
    assert paths == {path for file, path in OF_AGENT if file.endswith("agent.json")} - {"description"}, (
        "what is missing here may stand in the file that cannot be read"
    )


@pytest.mark.parametrize("words", [("agent", "check"), ("run", "alpha"), ("agent", "list")])
def test_broken_settings_and_broken_agents_are_told_together(project: Project, words: tuple[str, ...]) -> None:
    broken(project)
    project.write(".genba/config.yaml", SETTINGS)
    found = problems(project, *words)
    assert found >= OF_SETTINGS | OF_AGENT
    assert {file for file, _ in found} >= {".agent/beta/config.json", ".agent/beta/steps_registry.json"}


def test_a_wrong_value_makes_no_other_problem_up(project: Project) -> None:
    """What a wrong value would have meant is not known: nothing that hangs on it is told."""
    project.agent(
        completion={"type": "stepMachine"},
        registry={"entryStep": "one"},
        steps={
            "one": {"transitions": {"next": "two"}, "structuredGate": {"allowedIntents": ["nxt"]}},
            "two": {"stepKind": "closre", "structuredGate": {"allowedIntents": ["closing"]}},
        },
        max_iterations=3,
    )
    assert problems(project, "agent", "check", "worker") == {
        (".agent/worker/agent.json", "runner.max_iterations"),
        (".agent/worker/steps_registry.json", "steps.one.structuredGate.allowedIntents[0]"),
        (".agent/worker/steps_registry.json", "steps.two.stepKind"),
    }


def test_every_definition_file_takes_its_schema_version_and_description(project: Project) -> None:
    head = {"$schema": "https://example.invalid/schema.json", "version": "1.2", "description": "For the tests"}
    project.agent(commit=False)
    for name in ("agent.json", "steps_registry.json"):
        path = f".agent/worker/{name}"
        project.write(path, json.dumps({**json.loads(project.read(path)), **head}))
    for name in ("config.json", "config.local.json"):
        project.write(f".agent/worker/{name}", json.dumps(head))
    project.write(".genba/config.yaml", "\n".join(f'"{key}": {value}' for key, value in head.items()))
    project.commit()
    project.genba("agent", "check", "worker", check=0)
    assert project.run("worker")["outcome"] == "completed"
    printed = project.genba("schema", "config", check=0).json["$defs"]["ConfigFile"]["properties"]
    assert printed.keys() >= head.keys()
