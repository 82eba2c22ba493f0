import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project, gated

STEP_MACHINE = {"type": "stepMachine"}


def _broken_json(project: Project) -> None:
    project.agent()
    project.write(".agent/worker/agent.json", '{"name": "worker",\n  "description": }')


def _unknown_key(project: Project) -> None:
    project.agent(flow={"defaultModl": "opus"})


def _unknown_completion(project: Project) -> None:
    project.agent(completion={"type": "externlState"})


def _wrong_type(project: Project) -> None:
    project.agent(limits={"maxIterations": "many"})


def _missing_prompt(project: Project) -> None:
    project.agent(steps={"work": {"c2": "work", "c3": "missing"}})


def _unknown_validator(project: Project) -> None:
    project.agent(steps={"work": {"completionConditions": [{"validator": "git-claen"}]}})


def _unreachable_step(project: Project) -> None:
    closing = {"stepKind": "closure"}
    project.agent(completion=STEP_MACHINE, registry={"entryStep": "a"}, steps={"a": closing, "island": closing})


def _intent_without_transition(project: Project) -> None:
    steps: dict[str, Any] = {"implement": {"structuredGate": gated("next", "jump"), "transitions": {"next": "end"}}}
    steps["end"] = {"stepKind": "closure"}
    project.agent(completion=STEP_MACHINE, registry={"entryStep": "implement"}, steps=steps)


def _no_issue(project: Project) -> None:
    project.agent(completion={"type": "externalState"})


def _missing_parameter(project: Project) -> None:
    project.agent(parameters={"topic": {"type": "string", "required": True, "description": "What to write on"}})


def _cyclic_composite(project: Project) -> None:
    loop = {"type": "composite", "config": {"mode": "all", "completionConditions": [{"ref": "loop"}]}}
    config = {"mode": "any", "completionConditions": [{"ref": "loop"}], "definitions": {"loop": loop}}
    project.agent(completion={"type": "composite", "config": config})


def _leaving_path(project: Project) -> None:
    project.write("secret.md", "outside\n")
    project.agent(flow={"systemPromptPath": "../../secret.md"})


def _leaving_link(project: Project) -> None:
    project.agent(commit=False)
    prompt = project.root / ".agent/worker/prompts/system.md"
    prompt.unlink()
    prompt.symlink_to("/etc/hostname")
    project.commit()


def _no_path_to_the_end(project: Project) -> None:
    steps = {
        "a": {"structuredGate": gated("next"), "transitions": {"next": "b"}},
        "b": {"structuredGate": gated("next"), "transitions": {"next": "a"}},
    }
    project.agent(completion=STEP_MACHINE, registry={"entryStep": "a"}, steps=steps)


def _too_small_budget(project: Project) -> None:
    steps = {"a": {"transitions": {"next": "b"}}, "b": {"stepKind": "closure"}}
    project.agent(completion=STEP_MACHINE, registry={"entryStep": "a"}, steps=steps, limits={"maxIterations": 1})


def _variable_without_supplier(project: Project) -> None:
    project.agent(prompts={"work.md": "Write on {uv-topik}.\n"}, parameters={"topic": {"type": "string"}})


def _wide_step(project: Project) -> None:
    steps = {"work": {"permissionMode": "bypassPermissions"}}
    project.agent(steps=steps, boundaries={"permissionMode": "plan"})


def _no_adapter(project: Project) -> None:
    project.agent(adapter=None)


def _unknown_adapter(project: Project) -> None:
    project.agent(adapter={"type": "scriptd"})


def _broken_script(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"wirte": {"path": "a", "text": "b"}}]}]})


def _broken_project_file(project: Project) -> None:
    project.agent()
    project.write(".genba/config.yaml", "agents: [\n")


def _not_a_schema(project: Project) -> None:
    config = {"outputSchema": {"type": "objekt"}}
    project.agent(completion={"type": "structuredSignal", "config": config})


CASES: list[tuple[Callable[[Project], None], tuple[str, ...]]] = [
    (_broken_json, (".agent/worker/agent.json", "line 2", "not JSON")),
    (_unknown_key, ("runner.flow.defaultModl: unknown key", 'did you mean "defaultModel"?')),
    (_unknown_completion, ('"externlState" is not a completion type', 'did you mean "externalState"?')),
    (_wrong_type, ("runner.limits.maxIterations: expected int, got string",)),
    (_missing_prompt, ("steps.work: no such file: .agent/worker/prompts/steps/work/missing/f_default.md",)),
    (_unknown_validator, ('there is no validator "git-claen"', 'did you mean "git-clean"?')),
    (_unreachable_step, ("steps.island: no path leads here from the entry step (a)",)),
    (_intent_without_transition, ('steps.implement: intent "jump" has no transition',)),
    (_no_issue, ("parameters.issue: externalState needs the parameter issue", "--issue")),
    (_missing_parameter, ("--topic: is required and missing: What to write on",)),
    (_cyclic_composite, ("the composite contains itself: loop → loop",)),
    (_leaving_path, ('runner.flow.systemPromptPath: "../../secret.md" leaves the agent\'s folder',)),
    (_leaving_link, ("leaves the agent's folder",)),
    (_no_path_to_the_end, ("no path leads from here to a closing step",)),
    (_too_small_budget, ("the shortest path to the end takes 2 iterations, and only 1 are allowed",)),
    (_variable_without_supplier, ("prompts/work.md: {uv-topik}: nothing supplies topik", 'did you mean "topic"?')),
    (_wide_step, ('"bypassPermissions" is wider than the agent\'s "plan"',)),
    (_no_adapter, ("has no adapter", "custom, facilitator, opencode, scripted")),
    (_unknown_adapter, ('there is no adapter "scriptd"', 'did you mean "scripted"?')),
    (_broken_script, ("turns[0].do[0].wirte: unknown key", 'did you mean "write"?')),
    (_broken_project_file, (".genba/config.yaml", "not YAML")),
    (_not_a_schema, ("runner.completion.config.outputSchema: not a JSON Schema",)),
]


@pytest.mark.parametrize(("prepare", "result"), CASES, ids=[case[0].__name__.strip("_") for case in CASES])
def test_a_bad_definition_is_refused_and_nothing_changes(
    project: Project, prepare: Callable[[Project], None], result: tuple[str, ...]
) -> None:
    prepare(project)
    project.commit("With a mistake")
    before = _everything(project)

    done = project.genba("run", "worker", check=3)

    for text in result:
        assert text in done.err
    assert "nothing was started, nothing was changed." in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    assert _everything(project) == before


def _everything(project: Project) -> tuple[str, str, list[str]]:
    """Refs, status, and every file outside git's own folder."""
    files = sorted(str(path) for path in project.root.rglob("*") if ".git/" not in f"{path}/")
    return project.git("for-each-ref"), project.git("status", "--porcelain"), files


def test_all_problems_are_reported_at_once(project: Project) -> None:
    project.agent(flow={"defaultModl": "x"}, limits={"retries": -1}, steps={"work": {"stepKind": "wrok", "c2": 3}})

    done = project.genba("agent", "check", "worker", "--json", check=3)

    assert {(problem["file"], problem["path"]) for problem in done.json["problems"]} >= {
        (".agent/worker/agent.json", "runner.flow.defaultModl"),
        (".agent/worker/agent.json", "runner.limits.retries"),
        (".agent/worker/steps_registry.json", "steps.work.stepKind"),
        (".agent/worker/steps_registry.json", "steps.work.c2"),
    }


def test_a_problem_names_the_file_that_the_wrong_value_came_from(project: Project) -> None:
    project.agent()
    project.write(".agent/worker/config.local.json", json.dumps({"runner": {"limits": {"reasks": "two"}}}))

    done = project.genba("run", "worker", check=3)

    assert ".agent/worker/config.local.json: runner.limits.reasks: expected int, got string" in done.err


def test_an_unknown_agent_is_not_found(project: Project) -> None:
    project.agent("writer")

    done = project.genba("run", "wirter", check=4)

    assert 'there is no agent "wirter"' in done.err
    assert 'did you mean "writer"?' in done.err


def test_an_option_that_is_not_declared_is_ignored_with_a_warning(project: Project) -> None:
    project.agent(parameters={"topic": {"type": "string"}})

    done = project.genba("run", "worker", "--colour", "green", "--quiet", check=0)

    assert "--colour is not declared by worker and is ignored" in done.err


def test_a_misspelt_option_is_refused_with_the_one_that_was_meant(project: Project) -> None:
    project.agent(parameters={"topic": {"type": "string"}})

    done = project.genba("run", "worker", "--topik", "tea", "--quiet", check=2)

    assert 'did you mean "--topic"?' in done.err


def test_outside_a_repository_the_way_in_is_reported(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    done = project.genba("run", "worker", cwd=outside, check=1)

    assert "is not inside a git repository" in done.err
    assert "hint: git init" in done.err


def test_a_command_that_does_not_exist_is_a_usage_error(project: Project) -> None:
    done = project.genba("rnu", check=2)

    assert 'did you mean "run"?' in done.err
