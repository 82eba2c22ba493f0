"""Every error names the next command, whatever it is and wherever it came from."""

import re
from collections.abc import Iterator

import click
import pytest

from genba.domain import errors
from genba.domain.problems import Problem
from genba.entrypoints.cli.commands import COMMANDS, cli
from genba.entrypoints.cli.rendering.next_commands import next_command
from tests.project import Project


def kinds(base: type[errors.GenbaError] = errors.GenbaError) -> Iterator[type[errors.GenbaError]]:
    """Those of the tree of errors, whatever else is loaded."""
    if base.__module__ == errors.__name__:
        yield base
    for kind in base.__subclasses__():
        yield from kinds(kind)


def made(kind: type[errors.GenbaError]) -> errors.GenbaError:
    if issubclass(kind, errors.ConfigurationError):
        return kind((Problem(".genba/config.yaml", "dod", "is wrong"),))
    return kind("it went wrong")


def exists(command: str) -> bool:
    """Whether a command that a hint names can be typed."""
    found: click.Command | None = cli
    for word in command.split()[1:]:
        if not isinstance(found, click.Group) or word.startswith("-"):
            break
        assert word in found.list_commands(click.Context(found)), command
        found = found.get_command(click.Context(found), word)
    return found is not None


@pytest.mark.parametrize("kind", sorted(set(kinds()), key=str), ids=str)
@pytest.mark.parametrize("typed", [[], ["run", "x"], ["task", "show", "1"], ["--json"], ["logs"]], ids=str)
def test_every_kind_of_error_has_a_next_command(kind: type[errors.GenbaError], typed: list[str]) -> None:
    hint = next_command(made(kind), typed)
    commands = re.findall(r"(?:genba|git) [a-z-]+(?: (?:list|check|show))?", hint)
    assert commands
    for command in commands:
        assert command.startswith("git ") or exists(command), command


def test_the_command_that_was_typed_wrongly_is_the_one_that_is_explained() -> None:
    wrong = errors.UsageError("no")
    assert next_command(wrong, ["task", "add", "--type", "x"]) == "genba task add --help"
    assert next_command(wrong, ["verify", "12"]) == "genba verify --help"
    assert next_command(wrong, ["\x1b[31m"]) == "genba --help"
    assert next_command(wrong, []) == "genba --help"


def test_a_broken_agent_is_looked_at_by_name() -> None:
    broken = errors.ConfigurationError((Problem(".agent/writer/agent.json", "x", "is wrong"),))
    assert next_command(broken, ["run", "writer"]) == "genba agent check writer"


WRONG = {
    "task show": ("task", "show", "99"),
    "task add": ("task", "add", "x", "--type", "nosuch"),
    "task edit": ("task", "edit", "99", "--title", "x"),
    "run": ("run", "nosuch"),
    "run resume": ("run", "--resume", "nosuch"),
    "logs": ("logs", "nosuch"),
    "verify": ("verify", "nosuch"),
    "answer": ("answer", "99", "x"),
    "approve": ("approve", "99"),
    "stop": ("stop", "99"),
    "agent show": ("agent", "show", "nosuch"),
    "schema": ("schema", "nosuch"),
    "outbox": ("outbox", "drop", "99"),
    "sync": ("sync",),
    "nosuch": ("nosuch",),
    "work": ("work", "--agent", "nosuch"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_reported_with_a_hint(project: Project, name: str) -> None:
    done = project.genba(*WRONG[name], check=None)
    assert done.code != 0
    assert re.search(r"^hint: .*\S", done.err, re.MULTILINE), done.err


def test_every_command_has_a_summary_and_a_page() -> None:
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.help
