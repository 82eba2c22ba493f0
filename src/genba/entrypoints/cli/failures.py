"""How errors look: what, where, what was left unchanged, and the next command. On stderr; with --json on stdout too."""

import os
from typing import Any

import click
import msgspec

from genba.domain.errors import ConfigurationError, GenbaError, kind_of
from genba.domain.problems import Problem
from genba.entrypoints.cli.rendering.printable import printable


def show_error(error: GenbaError) -> None:
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    for problem in problems:
        _line("error", "red", str(problem))
        if problem.hint:
            _echo(f"       {printable(problem.hint)}")
    if not problems:
        _line("error", "red", error.message)
    if error.unchanged:
        _echo(printable(error.unchanged))
    if error.hint:
        show_hint(error.hint)


def error_as_json(error: GenbaError) -> str:
    """The same for a program."""
    values: dict[str, Any] = {
        "kind": kind_of(error),
        "message": error.message,
        "problems": error.problems if isinstance(error, ConfigurationError) else (),
        "unchanged": error.unchanged,
        "hint": error.hint,
        "exit_code": error.exit_code,
    }
    plain = _encodable(msgspec.to_builtins({"error": values}))
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def show_hint(text: str) -> None:
    """The next command; what comes after it stands below, one command per line."""
    _line("hint", "cyan", text.replace("\n", "\n      "), bold=False)


def show_warning(text: str) -> None:
    _line("warning", "yellow", text, bold=False)


def show_problem(problem: Problem) -> None:
    """A problem that stops nothing."""
    show_note(str(problem))
    if problem.hint:
        _echo(f"      {printable(problem.hint)}")


def show_note(text: str) -> None:
    _line("note", "cyan", text, bold=False)


def _line(word: str, colour: str, text: str, bold: bool = True) -> None:
    _echo(f"{click.style(f'{word}:', fg=colour, bold=bold)} {printable(text)}")


def _echo(text: str) -> None:
    click.echo(text, err=True, color=False if os.environ.get("NO_COLOR") else None)


def _encodable(value: Any) -> Any:
    """The same value; what is no character of any text is shown as its number."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _encodable(inner) for key, inner in value.items()}
    return [_encodable(inner) for inner in value] if isinstance(value, list | tuple) else value
