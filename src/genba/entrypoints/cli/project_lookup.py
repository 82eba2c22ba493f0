"""How a command finds its project: the repository around the current folder."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from genba.domain.errors import GenbaError
from genba.entrypoints.cli.failures import show_warning
from genba.wiring import ProjectContext

T = TypeVar("T")


def project_here() -> ProjectContext:
    """The project of the current folder, until the command ends."""
    context = asyncio.run(ProjectContext.find(here()))
    click.get_current_context().call_on_close(context.close)
    return context


def project_for_reading() -> ProjectContext:
    """The same for commands that only read or stop: wrong settings are a warning."""
    context, wrong = asyncio.run(ProjectContext.find_to_look(here()))
    click.get_current_context().call_on_close(context.close)
    if wrong is not None:
        show_warning(f"{wrong.problems[0]}; only where the blackboard is was taken from that file   genba doctor")
    return context


def here() -> Path:
    """The current folder, as far as one can work in it."""
    try:
        here = Path.cwd()
    except OSError as error:
        raise GenbaError("the current folder is gone", hint="cd to a folder that is there") from error
    if str(here) != str(here).encode("utf-8", "replace").decode():
        raise GenbaError(f"the name of the current folder is not UTF-8: {here}", hint="give the folder another name")
    return here


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end. SIGTERM and SIGHUP stop the work as ctrl-c does."""

    async def guarded() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  (a coroutine under asyncio.run has one)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await work

    return asyncio.run(guarded())
