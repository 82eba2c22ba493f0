"""Several broken files, several problems in each: one run of one command names all of them."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from genba.definitions.agent.loading import load_definition
from genba.domain.errors import ConfigurationError
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
    result = project.genba(*words, "--json", check=3).json
    found = result.get("problems") or result["error"]["problems"]
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
def test_broken_settings_and_broken_agents_are_reported_together(project: Project, words: tuple[str, ...]) -> None:
    broken(project)
    project.write(".genba/config.yaml", SETTINGS)
    found = problems(project, *words)
    assert found >= OF_SETTINGS | OF_AGENT
    assert {file for file, _ in found} >= {".agent/beta/config.json", ".agent/beta/steps_registry.json"}


def test_a_wrong_value_makes_no_other_problem_up(project: Project) -> None:
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


CROSSING: dict[str, Any] = {
    "entryStep": "one",
    "validators": {"lint": {"type": "command", "command": "true", "failurePattern": "none"}},
    "failurePatterns": {"unused": {"match": "("}},
    "steps": {
        "one": {
            "c2": "work",
            "c3": "one",
            "transitions": {"next": "qq"},
            "completionConditions": [{"validator": "git-clean"}, {"validator": "nope"}],
            "permissionMode": "bypassPermissions",
            "allowedTools": ["Bash"],
        },
        "two": {"c2": "work", "c3": "none", "stepId": "other", "transitions": {"next": None}},
        "three": {"stepKind": "closure", "structuredGate": {"allowedIntents": ["handoff"]}, "uvVariables": ["three"]},
        "four": {"inputs": {"x": {"from": "three.y"}}, "uvVariables": ["four"]},
    },
}
CROSSED: dict[str, Any] = {
    "name": "worker",
    "description": "Everything between its parts is wrong",
    "runner": {
        "completion": {"type": "externalState", "config": {"validators": ["git-clean", "nothing"]}},
        "actions": {"types": ["a"], "handlers": {"b": "builtin:record"}},
        "boundaries": {"allowedTools": ["Read"], "permissionMode": "plan"},
    },
}
BETWEEN_PARTS = {
    "validators.lint.failurePattern",
    "failurePatterns.unused",
    "failurePatterns.unused.match",
    "steps.one.transitions.next",
    "steps.one.completionConditions[1].validator",
    "steps.one.permissionMode",
    "steps.one.allowedTools",
    "steps.two",
    "steps.two.stepId",
    "steps.three",
    "steps.three.uvVariables",
    "steps.four.inputs.x.from",
    "steps.four.uvVariables",
    "runner.completion.config.validators[1]",
    "runner.actions.handlers.b",
    "parameters.issue",
    "{uv-one}",
    "{uv-system}",
}


def put(value: Any, at: tuple[str | int, ...], new: object) -> Any:
    """A copy with another value at one place."""
    copied = copy.deepcopy(value)
    node = copied
    for part in at[:-1]:
        node = node[part]
    node[at[-1]] = new
    return copied


def checked(folder: Path, agent: dict[str, Any], registry: dict[str, Any]) -> set[str]:
    """The paths of all problems of one definition."""
    at = folder / "worker"
    (at / "prompts/steps/work/one").mkdir(parents=True, exist_ok=True)
    (at / "agent.json").write_text(json.dumps(agent))
    (at / "steps_registry.json").write_text(json.dumps(registry))
    (at / "prompts/system.md").write_text("{uv-system}")
    (at / "prompts/steps/work/one/f_default.md").write_text("{uv-one}")
    with pytest.raises(ConfigurationError) as refused:
        load_definition(at, ".agent/worker", [], [])
    return {problem.path for problem in refused.value.problems}


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a value, and in each object one more that it does not know."""
    if at:
        yield at
    if isinstance(value, dict):
        yield (*at, "unknown")
    for part, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*at, part))


def test_a_wrong_step_kind_hides_no_transition_and_no_validator(project: Project) -> None:
    step = {"stepKind": "wrk", "transitions": {"next": "qq"}, "completionConditions": [{"validator": "nope"}]}
    project.agent("bad", steps={"one": step})
    assert problems(project, "agent", "check", "bad") == {
        (".agent/bad/steps_registry.json", "steps.one.stepKind"),
        (".agent/bad/steps_registry.json", "steps.one.transitions.next"),
        (".agent/bad/steps_registry.json", "steps.one.completionConditions[0].validator"),
    }


@pytest.mark.parametrize(
    ("at", "hidden"),
    [
        ("steps.one.stepKind", set()),
        ("steps.one.edition", {"{uv-one}", "failurePatterns.unused"}),
        ("steps.one.completionConditions.0", set()),
        ("steps.one.completionConditions.0.validator", set()),
        ("steps.two", {"steps.two.stepId", "failurePatterns.unused"}),
        ("steps.three.structuredGate.allowedIntents", {"steps.three"}),
        ("steps.four.inputs.x.required", set()),
        ("validators.lint.command", set()),
        ("validators.lint.type", set()),
        ("failurePatterns.unused.description", set()),
        ("entryStep", set()),
        ("runner.limits", set()),
        ("runner.completion.config.unknown", set()),
        ("runner.completion.config.validators.0", set()),
        ("runner.boundaries.permissionMode", {"steps.one.permissionMode"}),
        ("parameters", {"parameters.issue", "{uv-system}", "{uv-one}", "steps.three.uvVariables"}
         | {"steps.four.uvVariables"}),
    ],
)  # fmt: skip
def test_a_wrong_value_hides_only_what_depends_on_it(tmp_path: Path, at: str, hidden: set[str]) -> None:
    parts = tuple(int(part) if part.isdecimal() else part for part in at.split("."))
    agent, registry = CROSSED, CROSSING
    if parts[0] in ("runner", "parameters"):
        agent = put(agent, parts, 5)
    else:
        registry = put(registry, parts, 5)
    assert checked(tmp_path, CROSSED, CROSSING) == BETWEEN_PARTS
    assert BETWEEN_PARTS - checked(tmp_path, agent, registry) == hidden


def test_no_wrong_value_makes_a_problem_elsewhere_up(tmp_path: Path) -> None:
    for part, whole in enumerate((CROSSED, CROSSING)):
        for at in places(whole):
            for wrong in (5, [5]):
                both = [CROSSED, CROSSING]
                both[part] = put(whole, at, wrong)
                here = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in at)[1:]
                made_up = checked(tmp_path, both[0], both[1]) - BETWEEN_PARTS
                assert {path for path in made_up if not path.startswith(here)} == set(), here


def test_a_registry_that_cannot_be_parsed_hides_nothing_of_the_agent(project: Project) -> None:
    project.agent("bad", prompts={"system.md": "{uv-nothing}\n"})
    project.write(".agent/bad/steps_registry.json", "{")
    assert (".agent/bad/prompts/system.md", "{uv-nothing}") in problems(project, "agent", "check", "bad")


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
