"""The commands of `genba`, each loaded when it is used."""

import asyncio
import contextlib
import importlib
import io
import os
import sys

import click

from genba import __version__
from genba.domain.errors import DiskFullError, GenbaError, NotFoundError, UnexpectedError, UsageError, is_disk_full
from genba.domain.problems import did_you_mean
from genba.entrypoints.cli.failures import error_as_json, show_error
from genba.entrypoints.cli.rendering.next_commands import next_command

COMMANDS = {
    "agent": "genba.entrypoints.cli.admin.agent_commands:agent",
    "answer": "genba.entrypoints.cli.decide.decision_commands:answer",
    "approve": "genba.entrypoints.cli.decide.decision_commands:approve",
    "completion": "genba.entrypoints.cli.admin.completion_command:completion",
    "decisions": "genba.entrypoints.cli.decide.decision_commands:decisions",
    "demo": "genba.entrypoints.cli.start.demo_command:demo",
    "doctor": "genba.entrypoints.cli.start.doctor_command:doctor",
    "facilitate": "genba.entrypoints.cli.inspect.facilitate_command:facilitate",
    "gc": "genba.entrypoints.cli.admin.gc_command:gc",
    "help": "genba.entrypoints.cli.help_command:help_",
    "init": "genba.entrypoints.cli.start.init_command:init",
    "logs": "genba.entrypoints.cli.inspect.logs_command:logs",
    "mcp": "genba.entrypoints.cli.admin.mcp_commands:mcp",
    "migrate": "genba.entrypoints.cli.admin.migrate_command:migrate",
    "notify": "genba.entrypoints.cli.admin.notify_command:notify",
    "outbox": "genba.entrypoints.cli.github.outbox_commands:outbox",
    "pause": "genba.entrypoints.cli.decide.decision_commands:pause",
    "queue": "genba.entrypoints.cli.inspect.queue_command:queue",
    "reject": "genba.entrypoints.cli.decide.decision_commands:reject",
    "resume": "genba.entrypoints.cli.decide.decision_commands:resume",
    "run": "genba.entrypoints.cli.work.run_command:run",
    "schema": "genba.entrypoints.cli.admin.schema_command:schema",
    "serve": "genba.entrypoints.cli.inspect.serve_command:serve",
    "sessions": "genba.entrypoints.cli.inspect.sessions_command:sessions",
    "status": "genba.entrypoints.cli.inspect.status_command:status",
    "stop": "genba.entrypoints.cli.decide.decision_commands:stop",
    "sync": "genba.entrypoints.cli.github.sync_command:sync",
    "task": "genba.entrypoints.cli.inspect.task_commands:task",
    "verify": "genba.entrypoints.cli.work.verify_command:verify",
    "work": "genba.entrypoints.cli.work.work_command:work",
}
GROUPS = {
    "Start": {
        "init": "Propose the first settings of a project.",
        "doctor": "Check what is installed and what works here.",
        "demo": "Watch a fleet work on a small repository.",
    },
    "Work": {
        "run": "Run one agent.",
        "work": "Run agents on all open tasks.",
        "pause": "Start no new sessions.",
        "resume": "Continue after a pause or a stop.",
        "stop": "Stop running agents.",
        "verify": "Verify a task, a branch or a commit.",
    },
    "Decide": {
        "decisions": "List what only a person can decide.",
        "answer": "Answer the question of a task.",
        "approve": "Approve a commit, a plan or another attempt.",
        "reject": "Reject it, with a reason.",
    },
    "Inspect": {
        "status": "Show the state of every issue and the next command.",
        "facilitate": "Report on all issues, and update their comments.",
        "task": "Add, show and change tasks.",
        "sessions": "List sessions: agent, status and cost.",
        "logs": "Show what a session did.",
        "queue": "Show the merge queue.",
        "serve": "Serve the dashboard.",
    },
    "GitHub": {
        "sync": "Read issues from GitHub, and send changes.",
        "outbox": "Show, send, repeat or drop changes to GitHub.",
    },
    "Admin": {
        "agent": "List, show, check and create agents.",
        "mcp": "Serve agents that ask what to do next.",
        "schema": "Print the JSON Schema of a file.",
        "gc": "Remove what ended tasks left behind.",
        "migrate": "Migrate the database.",
        "notify": "Show and test notifications.",
        "completion": "Print the completion script of a shell.",
        "help": "Show the help of a command.",
    },
}
"""The commands by what they are for, as `genba --help` shows them."""
SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}


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
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=14)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="genba %(version)s")
@click.option("-C", "folder", metavar="DIR", help="Run as if genba was started in DIR.")
def cli(folder: str | None) -> None:
    """Run coding agents on a project's issues. Merge only what is verified in git.

    Begin with `genba demo`, then `genba init` in a repository of your own.
    """
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            raise NotFoundError(f"{folder}: {error.strerror}", hint="genba -C DIR COMMAND") from error


def run_cli(arguments: list[str]) -> int:
    """Run one command; every error becomes a message and an exit code, with --json also an object on stdout."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(io.UnsupportedOperation):
                stream.reconfigure(errors="replace")
    try:
        return _call(arguments)
    except GenbaError as error:
        return _report(error, arguments)
    except click.ClickException as error:
        return _report(_usage(error), arguments)
    except (click.Abort, KeyboardInterrupt, asyncio.CancelledError):
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except SystemExit as done:  # code of an agent ended the program: that is no success
        return done.code if isinstance(done.code, int) and done.code else 1
    except Exception as error:  # noqa: BLE001  (the outermost edge: a traceback is shown only with GENBA_DEBUG)
        return _report(_unexpected(error), arguments)


def _call(arguments: list[str]) -> int:
    for word in arguments:
        if not word.isascii() and word != word.encode("utf-8", "replace").decode():
            raise UsageError(f"{word.encode('utf-8', 'backslashreplace').decode()} is not UTF-8", hint="genba --help")
    try:
        result = cli.main(arguments, prog_name="genba", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return UsageError.exit_code
    except click.exceptions.Exit as done:
        return done.exit_code
    return result if isinstance(result, int) else 0


def _report(error: GenbaError, arguments: list[str]) -> int:
    error.hint = error.hint or next_command(error, arguments)
    with contextlib.suppress(OSError):
        show_error(error)
    with contextlib.suppress(OSError):
        if "--json" in arguments:
            click.echo(error_as_json(error))
    return error.exit_code


def _usage(error: click.ClickException) -> UsageError:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "genba"
    return UsageError(error.format_message(), hint=f"{path} --help")


def _unexpected(error: Exception) -> GenbaError:
    if isinstance(error, OSError) and is_disk_full(error):
        return DiskFullError(f"the disk is full: {error.strerror}", hint="free some space, then try again")
    if os.environ.get("GENBA_DEBUG"):
        import traceback  # noqa: PLC0415  (only who asks for it pays)

        with contextlib.suppress(OSError):
            traceback.print_exception(error)
    output = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:
        output = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return UnexpectedError(output, hint="run it again with GENBA_DEBUG=1 in the environment to see where it happened")
