"""From 1 to 100 workers: how many tasks they get done, and what each costs, beside a shell of the same width.

Every agent sleeps for a second, and there are two tasks for each worker, or six if that is more. No tool is faster than
the cores of the machine, so the ideal is not assumed but measured: a shell that starts the same processes in the same
number of worktrees, as many at one time, and merges their branches. What starting and ending a fleet takes is in
it. The widest of these is also looked through for errors of the database.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import postgres
from bench.fleet import Taken, in_a_shell, spent, wait_for_all, working
from bench.fleet_ground import Ground
from bench.lock_errors import errors_of
from bench.measuring import Measured, Row, clean_environment
from genba.connections.processes.orphans import take_in_orphans
from genba.domain.sessions.sandbox import SANDBOX_VARIABLE

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 100)
SECONDS = 1.0
FOR_EACH, LEAST = 2, 6
"""Tasks for each worker, and for all of them."""


class Width(NamedTuple):
    workers: int
    genba: Taken
    shell: Taken

    @property
    def tasks(self) -> int:
        return tasks_for(self.workers)


def tasks_for(workers: int) -> int:
    return max(LEAST, workers * FOR_EACH)


class Looked(NamedTuple):
    taken: Taken
    landed: int
    errors: int
    """Of the database, in output and files."""


def rows() -> Measured:
    take_in_orphans()
    found = []
    widest = Looked(Taken(0.0), 0, 0)
    for width in WIDTHS:
        widest = _worked(width)
        if widest.landed != tasks_for(width) and width != max(WIDTHS):
            raise RuntimeError(f"{widest.landed} of {tasks_for(width)} tasks landed with {width} workers")
        found.append(Width(width, widest.taken, in_a_shell(tasks_for(width), width, SECONDS)))
        print(f"  workers: {_figure(found[-1])}", flush=True)
    made = [*map(_row, found), _without_errors("SQLite", widest)]
    with postgres.server() as address:
        made.append(_without_errors("PostgreSQL", _worked(max(WIDTHS), address)))
    return Measured(made, {"series": kept(found), "cost": cost(found)})


def _row(found: Width) -> Row:
    what = f"{found.workers} worker{'s' if found.workers > 1 else ''}, {found.tasks} agents that sleep {SECONDS:g} s"
    return Row(f"{what} / the same in a shell", _figure(found), found.genba.seconds / found.shell.seconds)


def _figure(found: Width) -> str:
    rate = {name: found.tasks / taken.seconds for name, taken in (("genba", found.genba), ("shell", found.shell))}
    each = {
        name: taken.processor / found.tasks * 1000 for name, taken in (("genba", found.genba), ("shell", found.shell))
    }
    message = f"{found.workers} at one time: {rate['genba']:.1f} tasks a second beside {rate['shell']:.1f}; "
    return message + f"{each['genba']:.0f} ms of the processor a task beside {each['shell']:.0f}"


def _without_errors(database: str, looked: Looked) -> Row:
    """Done and without an error, or else too much of something."""
    tasks = tasks_for(max(WIDTHS))
    figure = f"{looked.landed} of {tasks} tasks landed, {looked.errors} errors, on {os.cpu_count()} cores in "
    figure += f"{looked.taken.seconds:.0f} s"
    what = f"{max(WIDTHS)} workers, {tasks} tasks on {database}: lock errors and lost tasks"
    return Row(what, figure, float(looked.errors + tasks - looked.landed), 0.0)


def kept(found: list[Width]) -> dict[str, dict[str, list[float]]]:
    """Tasks a second by line of the picture."""
    return _lines(found, {
        "Genba": [each.tasks / each.genba.seconds for each in found],
        "a shell of the same width": [each.tasks / each.shell.seconds for each in found],
        "nothing but sleep": [each.workers / SECONDS for each in found],
    })  # fmt: skip


def cost(found: list[Width]) -> dict[str, dict[str, list[float]]]:
    """Seconds of the processor for one task."""
    return _lines(found, {
        "Genba": [each.genba.processor / each.tasks for each in found],
        "a shell of the same width": [each.shell.processor / each.tasks for each in found],
    })  # fmt: skip


def _lines(found: list[Width], lines: dict[str, list[float]]) -> dict[str, dict[str, list[float]]]:
    workers = [float(each.workers) for each in found]
    return {
        name: {"workers": workers, "value": [float(f"{value:.4g}") for value in values]}
        for name, values in lines.items()
    }


def _worked(workers: int, address: str = "") -> Looked:
    """A fleet of this width, until everything is done. What a server of a database takes is not counted."""
    tasks = tasks_for(workers)
    with _ground(address) as ground:
        ground.tasks(tasks)
        environment = {**clean_environment(), SANDBOX_VARIABLE: "worktree"}
        environment |= {"GENBA_DATABASE_URL": address} if address else {}
        began, before = time.perf_counter(), spent()
        done = subprocess.run(
            working(workers), cwd=ground.root, env=environment, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - began
        if not address:  # a server of a database would be waited for as well
            wait_for_all()
        looked = Looked(Taken(seconds, spent() - before), ground.landed(), errors_of(ground, done.stdout + done.stderr))
        if looked.landed != tasks:
            print(done.stdout[-2000:] + done.stderr[-2000:], flush=True)
        return looked


@contextmanager
def _ground(address: str) -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="genba-bench-", ignore_cleanup_errors=True) as folder:
        yield Ground(Path(folder), SECONDS, address)
