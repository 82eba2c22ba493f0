"""parameters: each is an option of `genba run NAME`, and a variable of its prompts."""

import json
from typing import Any

import pytest

from tests.fields.flows import work
from tests.project import Project


def declare(project: Project, received: str = "", **parameters: dict[str, Any]) -> None:
    output = " ".join(f"{name}=<{{uv-{name}}}>" for name in parameters)
    project.agent(
        parameters=parameters,
        prompts={"work.md": output},
        script={"turns": [work(expect=received)]},
    )


@pytest.mark.parametrize(
    ("kind", "words", "received"),
    [
        ("string", ["--topic", "4"], "<4>"),
        ("number", ["--topic", "4.5"], "<4.5>"),
        ("integer", ["--topic", "4"], "<4>"),
        ("boolean", ["--topic"], "<true>"),
        ("boolean", ["--no-topic"], "<false>"),
        ("array", ["--topic", "a", "--topic", "b"], '<["a","b"]>'),
    ],
)
def test_a_parameter_has_a_type(project: Project, kind: str, words: list[str], received: str) -> None:
    declare(project, f"topic={received}", topic={"type": kind})
    project.run("worker", *words)


@pytest.mark.parametrize("kind", ["number", "integer"])
def test_a_value_of_another_type_is_refused(project: Project, kind: str) -> None:
    declare(project, topic={"type": kind})
    assert "--topic" in project.genba("run", "worker", "--topic", "clocks", check=2).err


def test_the_description_is_shown_by_help(project: Project) -> None:
    declare(project, topic={"type": "string", "description": "What to write about"})
    assert "What to write about" in project.genba("run", "worker", "--help", check=0).out


def test_a_required_parameter_must_be_given(project: Project) -> None:
    declare(project, topic={"type": "string", "required": True, "description": "What to write about"})
    done = project.genba("run", "worker", check=3)
    assert "--topic: is required and missing: What to write about" in done.err
    assert project.branches() == ["main"]


def test_a_parameter_is_optional_unless_it_says_otherwise(project: Project) -> None:
    declare(project, "topic=<>", topic={"type": "string"})
    project.run("worker")


def test_the_default_is_taken_when_the_option_is_not_given(project: Project) -> None:
    declare(project, "topic=<clocks>", topic={"type": "string", "default": "clocks"})
    project.run("worker")


def test_the_option_wins_over_the_default(project: Project) -> None:
    declare(project, "topic=<doors>", topic={"type": "string", "default": "clocks"})
    project.run("worker", "--topic", "doors")


def test_a_default_of_another_type_is_refused(project: Project) -> None:
    declare(project, topic={"type": "number", "default": "clocks"})
    assert "parameters.topic.default: is not of the type number" in project.genba("run", "worker", check=3).err


def test_cli_names_the_option(project: Project) -> None:
    declare(project, "topic=<doors>", topic={"type": "string", "cli": "--about"})
    project.run("worker", "--about", "doors")


def test_an_option_is_named_after_its_parameter_by_default(project: Project) -> None:
    declare(project, "sessionTopic=<doors>", sessionTopic={"type": "string"})
    project.run("worker", "--session-topic", "doors")


def test_an_option_of_genba_itself_cannot_be_declared(project: Project) -> None:
    declare(project, branches={"type": "string", "cli": "--branch"})
    assert "--branch is an option of genba run itself" in project.genba("run", "worker", check=3).err


def test_the_no_of_a_boolean_cannot_be_an_option_of_genba_itself(project: Project) -> None:
    declare(project, merge={"type": "boolean"})
    assert "--no-merge is an option of genba run itself" in project.genba("run", "worker", check=3).err


def test_a_parameter_cannot_have_the_name_of_a_variable_of_genba(project: Project) -> None:
    declare(project, branch={"type": "string", "cli": "--on"})
    assert "parameters.branch: {uv-branch} is a variable of Genba's own" in project.genba("run", "worker", check=3).err


def test_two_parameters_cannot_have_names_that_differ_by_a_dash_only(project: Project) -> None:
    project.agent(parameters={"a-b": {"type": "string", "cli": "--x"}, "a_b": {"type": "string", "cli": "--y"}})
    assert "parameters.a_b: cannot be told from a-b" in project.genba("run", "worker", check=3).err


def test_an_option_that_is_not_declared_is_ignored_with_a_warning(project: Project) -> None:
    declare(project, "topic=<doors>", topic={"type": "string"})
    done = project.genba("run", "worker", "--topic", "doors", "--heat", "40", check=0)
    assert "--heat is not declared by worker and is ignored" in done.err


def test_an_option_that_is_nearly_declared_is_refused(project: Project) -> None:
    declare(project, "topic=<doors>", topic={"type": "string"})
    done = project.genba("run", "worker", "--topic", "doors", "--tropic", "heat", check=2)
    assert 'did you mean "--topic"?' in done.err


@pytest.mark.parametrize("name", ["maxIterations", "iterateMax"])
def test_parameters_of_these_names_set_the_iterations_of_the_budget(project: Project, name: str) -> None:
    project.agent(parameters={name: {"type": "number", "cli": "--rounds"}})
    assert project.run("worker", "--rounds", "2")["iterations"] == 2


def test_the_iterations_of_another_completion_type_are_capped_by_the_same_parameter(project: Project) -> None:
    completion = {"type": "keywordSignal", "config": {"completionKeyword": "SHIPPED"}}
    project.agent(completion=completion, parameters={"maxIterations": {"type": "number", "default": 2}})
    assert project.run("worker", check=6)["iterations"] == 2


def test_the_name_is_that_of_the_folder(project: Project) -> None:
    project.agent("worker", commit=False)
    text = project.read(".agent/worker/agent.json").replace('"name": "worker"', '"name": "walker"')
    project.write(".agent/worker/agent.json", text)
    done = project.genba("run", "worker", check=3)
    assert 'is "walker", but the folder is named "worker"' in done.err


def test_the_display_name_signs_the_commits(project: Project) -> None:
    project.agent(commit=False)
    text = project.read(".agent/worker/agent.json").replace(
        '"name": "worker"', '"name": "worker", "displayName": "Anna"'
    )
    project.write(".agent/worker/agent.json", text)
    project.commit()
    project.run("worker")
    assert project.git("log", "-1", "--format=%an <%ae>", "HEAD^2") == "Anna <worker@agents.invalid>"


def test_the_description_tells_the_agent_its_task(project: Project) -> None:
    project.agent(script={"turns": [work(expect="# Your task\n\nAn agent of the tests")]})
    project.run("worker")
    assert "An agent of the tests" in project.genba("run", "worker", "--help", check=0).out


def test_a_schema_and_a_version_are_accepted(project: Project) -> None:
    project.agent()
    file = json.loads(project.read(".agent/worker/agent.json"))
    project.write(".agent/worker/agent.json", json.dumps({"$schema": "agent.schema.json", "version": "1.12.0", **file}))

    project.genba("agent", "check", "worker", check=0)
    assert "1.12.0" in project.genba("agent", "show", "worker", check=0).out
