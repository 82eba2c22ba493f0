"""The commands of `genba`, each loaded when it is used."""

import asyncio
import contextlib
import importlib
import io
import sys

import click

from genba import __version__
from genba.domain.errors import GenbaError, UsageError
from genba.domain.problems import did_you_mean
from genba.entrypoints.cli.failures import show_error

COMMANDS = {
    "agent": "genba.entrypoints.cli.agent_commands:agent",
    "demo": "genba.entrypoints.cli.demo_command:demo",
    "logs": "genba.entrypoints.cli.logs_command:logs",
    "run": "genba.entrypoints.cli.run_command:run",
    "schema": "genba.entrypoints.cli.schema_command:schema",
}
_SUMMARIES = {
    "agent": "List, show, check and create agents.",
    "demo": "Watch an agent work, be judged and be merged.",
    "logs": "List runs, or show what one did.",
    "run": "Run an agent.",
    "schema": "Print the JSON Schema of a file.",
}


class LazyGroup(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            hint = f"{did_you_mean(cmd_name, COMMANDS)}  genba --help".strip()
            raise UsageError(f'there is no command "{cmd_name}"', hint=hint)
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_SUMMARIES.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="genba %(version)s")
def cli() -> None:
    """Run coding agents on a project's issues, and believe only what git shows.

    Begin with `genba demo`, then `genba agent list` in a repository of your own.
    """


def run_cli(arguments: list[str]) -> int:
    """Run one command; every error becomes a message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(io.UnsupportedOperation):
                stream.reconfigure(errors="replace")
    try:
        result = cli.main(arguments, prog_name="genba", standalone_mode=False)
    except GenbaError as error:
        show_error(error)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return UsageError.exit_code
    except click.ClickException as error:
        show_error(UsageError(error.format_message(), hint="genba --help"))
        return UsageError.exit_code
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.Abort, KeyboardInterrupt, asyncio.CancelledError):
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    return result if isinstance(result, int) else 0
