"""How errors look: what, where, what was left unchanged, and the next command; on stderr."""

import click

from genba.domain.errors import ConfigurationError, GenbaError


def show_error(error: GenbaError) -> None:
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    for problem in problems:
        _line("error", str(problem))
        if problem.hint:
            click.echo(f"       {problem.hint}", err=True)
    if not problems:
        _line("error", error.message)
    if error.unchanged:
        click.echo(error.unchanged, err=True)
    if error.hint:
        show_hint(error.hint)


def show_hint(text: str) -> None:
    click.echo(f"{click.style('hint:', fg='cyan')} {text}", err=True)


def show_warning(text: str) -> None:
    click.echo(f"{click.style('warning:', fg='yellow')} {text}", err=True)


def _line(word: str, text: str) -> None:
    click.echo(f"{click.style(f'{word}:', fg='red', bold=True)} {text}", err=True)
