"""`genba work`: run agents on all open tasks, and show it.

The first ctrl-c suspends all sessions and waits for them; a second one only repeats the message.
"""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Protocol

import click

from genba.application.facilitator.facilitator import scope_of
from genba.application.verification.decisions import people_only
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.fleet.progress import FleetEvent, FleetEventKind, FleetView, WorkEndReason, WorkSummary
from genba.domain.problems import did_you_mean
from genba.entrypoints.cli.failures import show_hint, show_problem
from genba.entrypoints.cli.project_lookup import project_here
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.work_view import WIDTH, ending_line, event_line, summary_lines

if TYPE_CHECKING:
    from pathlib import Path

    from genba.coordination.workflow.service import WorkflowService
    from genba.wiring import ProjectContext

_REDRAW_SECONDS = 0.25
_LONGEST_NAME = 64
_MOST_WORKERS = 1024
_LOOKS_AFTER = 5000
"""Objects between two garbage collections: a fleet makes many, and few are garbage."""


class Working(Protocol):
    """A fleet that is open."""

    def picture(self) -> FleetView:
        """What is true now, from memory."""
        ...

    def suspend(self) -> None:
        """Ask for an end: everything that runs is suspended, and `work` returns. May be asked more than once."""
        ...

    async def work(self, *, until_empty: bool) -> WorkSummary:
        """Work until it is stopped, or until no task is left that could start."""
        ...


class View(Protocol):
    """The view at a terminal."""

    def __call__(self, event: FleetEvent) -> None: ...
    def say(self, line: str) -> None: ...
    def show(self, picture: FleetView) -> None: ...


OpenFleet = Callable[[Callable[[FleetEvent], None]], contextlib.AbstractAsyncContextManager[Working]]
"""Opens a fleet that tells a listener what happens."""


class PlainFleetView:
    """One line per event, on stderr."""

    def __call__(self, event: FleetEvent) -> None:
        self.say(event_line(event))

    def say(self, line: str) -> None:
        with contextlib.suppress(OSError):
            click.echo(line, err=True)

    def show(self, picture: FleetView) -> None:
        """The view without a terminal: nothing is drawn."""


@click.command("work")
@click.option("--workers", type=click.IntRange(1, _MOST_WORKERS), help="Sessions at one time; else work.workers.")
@click.option("--until-empty", is_flag=True, help="End when nothing is left that could be done.")
@click.option("--agent", default="", metavar="AGENT", help="Only tasks that this agent takes.")
@click.option("--label", default="", help="Only tasks with this label.")
@click.option("--project", type=click.IntRange(1), metavar="N", help="Only issues on this GitHub project.")
@click.option("--project-owner", metavar="NAME", help="The owner of the project.  [default: of the repository]")
@click.option("--executor", default="", metavar="ID", help="The name of this executor.  [default: the host]")
@click.option("--plain", is_flag=True, help="One line per event, also in a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def work(
    workers: int | None,
    until_empty: bool,
    agent: str,
    label: str,
    project: int | None,
    project_owner: str | None,
    executor: str,
    plain: bool,
    as_json: bool,
) -> int:
    """Run agents on all open tasks; verify, review and merge."""
    context = project_here()
    people_only(context, "start the fleet")
    _check_names(context, agent, executor)
    _check_not_stopped(context)
    scope = scope_of(context, None, project, project_owner, "genba work")
    for unknown in context.registry.unknown_sections():
        show_problem(unknown)

    def open_fleet(listener: Callable[[FleetEvent], None]) -> contextlib.AbstractAsyncContextManager[Working]:
        from genba.wiring.sessions.fleet import Fleet  # noqa: PLC0415  (the engine is slow to import)

        return Fleet.open(
            context,
            workers=workers,
            only_agent=agent,
            only_label=label,
            only_board=scope if scope.board is not None else None,
            executor=executor,
            listener=listener,
            door=_door,
        )

    with watching(plain) as view:
        summary = asyncio.run(drive(open_fleet, view, until_empty))
    tell(summary, as_json)
    return exit_code(summary, until_empty)


def _door(service: "WorkflowService", path: "Path") -> contextlib.AbstractAsyncContextManager[None]:
    """Where agents that ask what is next are answered."""
    from genba.entrypoints.mcp.http import serve_socket  # noqa: PLC0415  (slow to import; only where an agent asks)

    return serve_socket(service, path)


async def drive(open_fleet: OpenFleet, view: View, until_empty: bool) -> WorkSummary:
    """Open a fleet, let it work, and draw it meanwhile. Stopped before it is open, it has nothing to suspend."""
    with _suspending(view) as suspending:
        try:
            async with open_fleet(view) as fleet:
                suspending.fleet = fleet
                gc.freeze()  # loaded modules never become garbage
                gc.set_threshold(_LOOKS_AFTER)
                async with _redrawn(view, fleet):
                    return await fleet.work(until_empty=until_empty)
        except asyncio.CancelledError:
            if suspending.fleet is not None or not suspending.asked:
                raise
            return WorkSummary(ended=WorkEndReason.SUSPENDED)


class _Parking:
    """Stop: ctrl-c, or a signal of the machine."""

    def __init__(self, view: View, opening: "asyncio.Task[WorkSummary]") -> None:
        self.view = view
        self.opening = opening
        self.fleet: Working | None = None
        self.asked = False

    def ask(self) -> None:
        if self.asked:
            self.view(
                FleetEvent(kind=FleetEventKind.SUSPENDING, detail="still suspending: it ends when every agent has")
            )
            return
        self.asked = True
        if self.fleet is None:
            self.opening.cancel()
            return
        running = len(self.fleet.picture().workers)
        what = f"{running} session{'' if running == 1 else 's'}" if running else "nothing is running"
        message = f"{what}; everything is kept, and genba work goes on with it"
        self.view(FleetEvent(kind=FleetEventKind.SUSPENDING, detail=message))
        self.fleet.suspend()


@contextlib.contextmanager
def _suspending(view: View) -> Iterator[_Parking]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  (a coroutine under asyncio.run has one)
    suspending = _Parking(view, task)
    loop = asyncio.get_running_loop()
    handled = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if number is signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in handled:
        loop.add_signal_handler(number, suspending.ask)
    try:
        yield suspending
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def _redrawn(view: View, fleet: Working) -> AsyncIterator[None]:
    async def redraw() -> None:
        while True:
            with contextlib.suppress(OSError):  # the terminal is gone
                view.show(fleet.picture())
            await asyncio.sleep(_REDRAW_SECONDS)

    drawing = asyncio.create_task(redraw())
    try:
        yield
    finally:
        drawing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await drawing


@contextlib.contextmanager
def watching(plain: bool) -> Iterator[View]:
    """A live view in a terminal, else lines."""
    if plain or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield PlainFleetView()
        return
    from rich.console import Console  # noqa: PLC0415  (only a terminal needs rich)

    from genba.entrypoints.cli.rendering.work_live import LiveFleetView  # noqa: PLC0415

    with LiveFleetView(Console(stderr=True)) as view:
        yield view


def tell(summary: WorkSummary, as_json: bool) -> None:
    """What it came to: data on stdout, the last sentence and the next command on stderr."""
    if as_json:
        print_json(summary)
    else:
        for line in summary_lines(summary, WIDTH):
            click.echo(line)
    click.echo(ending_line(summary), err=True)
    hint = _next_command(summary)
    if hint:
        show_hint(hint)


def exit_code(summary: WorkSummary, until_empty: bool) -> int:
    """0: everything is done, or a person stopped it; 1: something is left; 6: a budget is exhausted."""
    if summary.ended is WorkEndReason.BUDGET:
        return 6
    if not until_empty:
        return 0
    left = any(each.status not in ("done", "cancelled") for each in summary.tasks)
    return (
        1
        if left or summary.failed or summary.suspended or summary.needs or summary.ended is not WorkEndReason.EMPTY
        else 0
    )


def _next_command(summary: WorkSummary) -> str:
    match summary.ended:
        case WorkEndReason.STOPPED:
            return "genba resume   then  genba work   goes on"
        case WorkEndReason.BUDGET:
            return "raise budget in .genba/config.yaml, then genba work   what it was spent on: genba sessions"
        case _ if summary.needs:
            return "genba decisions"
        case WorkEndReason.SUSPENDED:
            return "genba work   goes on"
        case WorkEndReason.EMPTY if summary.detail:
            return "genba queue   says what is in the way; when it is gone, genba work goes on"
    failed = next((each for each in summary.tasks if each.status == "failed"), None)
    return f"genba task show {failed.task}" if failed is not None else ""


def _check_names(context: "ProjectContext", agent: str, executor: str) -> None:
    known = context.registry.folders()
    if agent and agent not in known:
        raise NotFoundError(
            f'there is no agent "{agent[:80]}"',
            unchanged="nothing was started.",
            hint=did_you_mean(agent, known) or "genba agent list",
        )
    fits = executor.isascii() and all(letter.isalnum() or letter in "-_." for letter in executor)
    if executor and (not fits or len(executor) > _LONGEST_NAME):
        raise UsageError(
            f"{executor[:80]!r} is not a name for an executor: letters, digits, - _ . and at most {_LONGEST_NAME}",
            hint="genba work --executor worker-1",
        )


def _check_not_stopped(context: "ProjectContext") -> None:
    from genba.blackboard.fleet.fleet_board import FleetBoard  # noqa: PLC0415  (after the names are checked)

    if FleetBoard(context.board()).field().stopping:
        raise StateConflictError(
            "this project is stopped", unchanged="nothing was started.", hint="genba resume   then  genba work"
        )
