"""Every field that a user can write has a test that exists: tests_of_fields.yaml."""

import ast
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import pytest
import yaml

from genba.connections.agents.acp.adapter import AcpSettings
from genba.connections.agents.cli_tools.claude_code import ClaudeCodeSettings
from genba.connections.agents.cli_tools.codex import CodexSettings
from genba.connections.agents.cli_tools.opencode import OpenCodeSettings
from genba.connections.agents.custom import CustomSettings, ReplyFile
from genba.connections.agents.scripted import Script, ScriptedAction, ScriptedSettings, Turn
from genba.connections.agents.tool_settings import ToolSettings
from genba.definitions.agent.agent_json import AgentFile
from genba.definitions.agent.completion import Completion
from genba.definitions.project.config_file import ProjectFile
from genba.definitions.project.goal_sections import RulesFile
from genba.definitions.project.work_sections import FleetSettings
from genba.definitions.steps.steps_registry import StepsRegistry
from genba.domain.goals.goal import Goal
from genba.domain.sessions.evidence import Check

ROOT = Path(__file__).parents[2]
TABLE: dict[str, dict[str, str]] = yaml.safe_load((Path(__file__).parent / "tests_of_fields.yaml").read_text("utf-8"))
FOLLOWED_BY_THE_READER = ("composite.definitions", "composite.completionConditions[].ref")
"""A composite's names for its conditions are gone once it is read, so no type has them."""


def unwrapped(kind: Any) -> tuple[Any, ...]:
    """The options of a type, without what only describes them."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) not in (Union, types.UnionType):
        return (kind,)
    return tuple(inner for option in get_args(kind) for inner in unwrapped(option))


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def has_tag(kind: Any) -> bool:
    return is_struct(kind) and kind.__struct_config__.tag_field is not None


def fields(kind: Any, at: str = "", until: tuple[Any, ...] = ()) -> Iterator[str]:
    """Every field of a struct by its path; a section appears through its fields."""
    for field in msgspec.structs.fields(kind):
        yield from places(field.type, f"{at}{field.encode_name}", until)


def places(kind: Any, at: str, until: tuple[Any, ...]) -> Iterator[str]:
    options = [option for option in unwrapped(kind) if option is not type(None)]
    inner = [option for option in options if is_struct(option) and not has_tag(option) and option not in until]
    if len(inner) < len(options):
        yield from collections([option for option in options if option not in inner], at, until)
    for struct in inner:
        yield from fields(struct, f"{at}.", until)


def collections(options: list[Any], at: str, until: tuple[Any, ...]) -> Iterator[str]:
    """A place in a list or an object of structs; anything else is a field of its own."""
    for option in options:
        values = get_args(option)
        if get_origin(option) is dict and holds_structs(values[1], until):
            yield from places(values[1], f"{at}.*", until)
        elif get_origin(option) is tuple and holds_structs(values[0], until):
            yield from places(values[0], f"{at}[]", until)
        else:
            yield at


def holds_structs(kind: Any, until: tuple[Any, ...]) -> bool:
    options = [inner for option in unwrapped(kind) for inner in (option, *get_args(option))]
    return any(is_struct(option) and not has_tag(option) and option not in until for option in options)


def variants(union: Any) -> Iterator[str]:
    """The kinds of a tagged union, and the fields of each."""
    for kind in get_args(union):
        tag = str(kind.__struct_config__.tag)
        yield tag
        yield from fields(kind, f"{tag}.")


EVERY_TOOL = set(fields(ToolSettings))
"""What all command-line tools take; a tool's own section has the rest."""

ACCEPTED = {
    "agent.json": set(fields(AgentFile)),
    "Completion types": {*variants(Completion), *FOLLOWED_BY_THE_READER},
    "steps_registry.json": set(fields(StepsRegistry)),
    "Validators": set(variants(Check)),
    ".genba/config.yaml": {*fields(ProjectFile), *fields(RulesFile), *fields(FleetSettings)},
    "Goals": set(variants(Goal)),
    "Every command-line tool": EVERY_TOOL,
    "The claude-code adapter": set(fields(ClaudeCodeSettings)) - EVERY_TOOL,
    "The codex adapter": set(fields(CodexSettings)) - EVERY_TOOL,
    "The opencode adapter": set(fields(OpenCodeSettings)) - EVERY_TOOL,
    "The acp adapter": set(fields(AcpSettings)) - EVERY_TOOL,
    "The custom adapter": set(fields(CustomSettings)),
    "The reply file": set(fields(ReplyFile)),
    "The scripted adapter": set(fields(ScriptedSettings)),
    "Scripts": set(fields(Script, until=(Turn,))),
    "Turns": set(fields(Turn, until=(ScriptedAction,))),
    "Scripted actions": set(fields(ScriptedAction)),
}


def test_the_sections_are_the_files_that_users_write() -> None:
    assert list(TABLE) == list(ACCEPTED)


@pytest.mark.parametrize("section", ACCEPTED)
def test_every_accepted_field_has_a_test(section: str) -> None:
    assert sorted(TABLE[section]) == sorted(ACCEPTED[section])


def test_every_test_that_the_table_names_exists() -> None:
    named = {test for tests in TABLE.values() for test in tests.values()}
    there = {
        f"{path.relative_to(ROOT / 'tests').as_posix()}::{node.name}"
        for path in {ROOT / "tests" / test.partition("::")[0] for test in named}
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert named - there == set()
