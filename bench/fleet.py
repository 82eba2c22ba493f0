"""A fleet beside a shell that does the least of the same: the same agents, the same trees, the same merges.

The cores limit every tool. So the ideal for 64 sleeping agents is measured, not assumed: a
shell starts the same 64 processes in the same 64 worktrees, and merges their branches.
"""

import os
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.fleet_ground import Ground
from bench.measuring import Measured, Row, clean_environment
from genba.connections.processes.orphans import take_in_orphans
from genba.domain.sessions.sandbox import SANDBOX_VARIABLE

BIN = Path(sys.executable).parent
HERE = Path(__file__).parent
ROUNDS = 2
SLEEPERS, SECONDS = 64, 1.0
INSTANT, AT_ONE_TIME = 200, 4
COUNTED = 10
BRANCHES = 50
DEADLINE = 120.0
NOTES = """\
The ideal for 64 agents that sleep one second is the time of a shell on the same machine for the same processes,
worktrees and merges; a few cores cannot do all that within one second. The limit applies to that ideal. The ratio to
one second, which assumes a core for each agent and free git, is shown too; it is far over 1.5×."""


class Taken(NamedTuple):
    """What something took. A busy machine stretches the one and hardly the other."""

    seconds: float
    processor: float = 0.0
    """Seconds of all cores together."""


Side = Callable[[], Taken]


def rows() -> Measured:
    return Measured([*_sleepers(), *_instant(), *_queue(), *_recovery()], {"notes": NOTES})


def _sleepers() -> list[Row]:
    """A shell has no sandbox, so the compared fleet has none. The fleet with a sandbox has its own row."""
    found = _taking_turns(
        genba=lambda: by_a_fleet(SLEEPERS, SLEEPERS, SECONDS, sandbox="worktree"),
        sandboxed=lambda: by_a_fleet(SLEEPERS, SLEEPERS, SECONDS),
        bare=lambda: in_a_shell(SLEEPERS, SLEEPERS, SECONDS),
    )
    genba, sandboxed, bare = (found[name].seconds for name in ("genba", "sandboxed", "bare"))
    what = f"{SLEEPERS} agents that sleep {SECONDS:g} s, {SLEEPERS} workers"
    figure = f"{genba:.1f} s beside {bare:.1f} s; {_processor(found)}, {os.cpu_count()} cores, "
    figure += f"{os.getloadavg()[0]:.1f} processes wanted them"
    behind = f"{sandboxed:.1f} s beside {bare:.1f} s; {_processor(found, 'sandboxed')}"
    naive = f"{genba:.1f} s; with a core for each agent and git for nothing it would be {SECONDS:g} s"
    return [
        Row(f"{what}, no sandbox / the same in a shell", figure, genba / bare, 1.5),
        Row(f"{what}, in the sandbox of this machine / in a shell without", behind, sandboxed / bare),
        Row(f"{what} / {SECONDS:g} s", naive, genba / SECONDS),
    ]


def _instant() -> list[Row]:
    found = _taking_turns(
        rounds=1,
        genba=lambda: by_a_fleet(INSTANT, AT_ONE_TIME, 0.0),
        bare=lambda: in_a_shell(INSTANT, AT_ONE_TIME, 0.0),
    )
    each = {name: taken.seconds / INSTANT * 1000 for name, taken in found.items()}
    counts = {"genba": _counted(genba=True), "bare": _counted(genba=False)}
    figure = f"{each['genba']:.0f} ms a task beside {each['bare']:.0f} ms; {_processor(found)}; "
    figure += f"{counts['genba']:.0f} git processes a task beside {counts['bare']:.0f}"
    return [Row(f"{INSTANT} instant tasks, {AT_ONE_TIME} workers / the same in a shell", figure,
                found["genba"].seconds / found["bare"].seconds)]  # fmt: skip


def _queue() -> list[Row]:
    rows = []
    for name, goal in (("no goals", ""), ("a cheap goal each", "file_exists:task-{task}.txt")):
        found = _taking_turns(genba=partial(_turns, goal), bare=_merges)
        genba, bare = found["genba"].seconds, found["bare"].seconds
        figure = f"{genba / BRANCHES * 1000:.0f} ms a branch, verified and durable, beside "
        figure += f"{bare / BRANCHES * 1000:.0f} ms, neither"
        what = f"{BRANCHES} ready branches through the queue, {name} / bare merges"
        rows.append(Row(what, figure, genba / bare))
    return rows


def _recovery() -> list[Row]:
    found = _taking_turns(rounds=3, recovered=_recovered, idle=lambda: by_a_fleet(0, 1, 0.0))
    recovered, idle = found["recovered"].seconds, found["idle"].seconds
    figure = f"{recovered * 1000:.0f} ms from its start to the end of the step that was cut off, beside "
    figure += f"{idle * 1000:.0f} ms for one that finds nothing to do, start and end"
    return [Row("genba work after kill -9 of the one before / with nothing to do", figure, recovered / idle)]


def _processor(found: dict[str, Taken], name: str = "genba") -> str:
    return f"{found[name].processor:.1f} s of processor beside {found['bare'].processor:.1f} s"


def _taking_turns(rounds: int = ROUNDS, **sides: Side) -> dict[str, Taken]:
    """The median of what each says it took; they take turns, so that a noisy machine disturbs all alike."""
    times: dict[str, list[Taken]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            times[name].append(call())
    return {
        name: Taken(
            statistics.median(taken.seconds for taken in found), statistics.median(taken.processor for taken in found)
        )
        for name, found in times.items()
    }


@contextmanager
def _ground(seconds: float = 0.0, tasks: int = 0) -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="genba-bench-", ignore_cleanup_errors=True) as folder:
        yield Ground(Path(folder), seconds).tasks(tasks)


def by_a_fleet(tasks: int, workers: int, seconds: float, sandbox: str = "") -> Taken:
    """A fleet in the default sandbox of this machine, unless `kind` names another."""
    environment = clean_environment() | ({SANDBOX_VARIABLE: sandbox} if sandbox else {})
    with _ground(seconds, tasks) as ground:
        return timed(ground, working(workers), tasks, environment)


def in_a_shell(tasks: int, parallel: int, seconds: float) -> Taken:
    with _ground(seconds, tasks) as ground:
        return timed(ground, ground.bare(tasks, parallel), tasks)


def working(workers: int) -> list[str]:
    return [str(BIN / "genba"), "work", "--until-empty", "--plain", "--workers", str(workers)]


def timed(ground: Ground, words: list[str], landed: int, environment: dict[str, str] | None = None) -> Taken:
    take_in_orphans()
    began, before = time.perf_counter(), spent()
    done = subprocess.run(
        words, cwd=ground.root, env=environment or clean_environment(), capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    wait_for_all()
    taken = Taken(seconds, spent() - before)
    if done.returncode or ground.landed() != landed:
        raise RuntimeError(f"{words[0]}: {ground.landed()} of {landed} landed\n{done.stdout}{done.stderr}")
    return taken


def wait_for_all() -> None:
    """Processes that outlive their parent, such as agents and supervisors, are counted too."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def spent() -> float:
    """Seconds of processor of everything that was started here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _counted(genba: bool) -> float:
    """Processes of git for each task, the agent's own among them: counted by one that stands before git."""
    with _ground(tasks=COUNTED) as ground:
        log, folder = ground.root.parent / "git.log", ground.root.parent / "bin"
        folder.mkdir()
        real = subprocess.run(["sh", "-c", "command -v git"], check=True, capture_output=True, text=True).stdout
        counting = folder / "git"
        counting.write_text(f'#!/bin/sh\necho "$1" >>{log}\nexec {real.strip()} "$@"\n')
        counting.chmod(0o755)
        environment = clean_environment()
        environment["PATH"] = f"{folder}:{environment['PATH']}"
        words = working(AT_ONE_TIME) if genba else ground.bare(COUNTED, AT_ONE_TIME)
        timed(ground, words, COUNTED, environment)
        return len(log.read_text().splitlines()) / COUNTED


def _turns(goal: str) -> Taken:
    """Only the queue works: every branch is there, and every entry is queued."""
    with _ground() as ground:
        ground.queued(BRANCHES, goal)
        words = [sys.executable, "-m", "bench.queue_turns"]
        environment = {**clean_environment(), "PYTHONPATH": str(HERE.parent)}
        done = subprocess.run(words, cwd=ground.root, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or ground.landed() != BRANCHES:
            raise RuntimeError(f"{ground.landed()} of {BRANCHES} landed\n{done.stdout}{done.stderr}")
        return Taken(float(done.stdout))


def _merges() -> Taken:
    with _ground() as ground:
        ground.branches(BRANCHES)
        return timed(ground, ["sh", str(HERE / "bare_merges.sh"), str(ground.root), str(BRANCHES)], BRANCHES)


def _recovered() -> Taken:
    """Seconds from the start of a fleet, after the one before was killed in the middle of a question, to the end of the
    step that had been cut off. The agent has answered meanwhile: what is measured is the fleet, not the agent."""
    with _ground(seconds=0.5, tasks=1) as ground:
        words, questions = working(1), ".git/genba/runs/*/supervised/*"
        quiet = {
            "cwd": ground.root,
            "env": clean_environment(),
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        first = subprocess.Popen(words, **quiet)  # type: ignore[call-overload]
        until(lambda: any(ground.root.glob(f"{questions}/1/output.jsonl")))
        before = _steps(ground)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        until(lambda: any(ground.root.glob(f"{questions}/1/result.json")))
        began = time.perf_counter()
        second = _quiet(words, ground)
        until(lambda: _steps(ground) > before)
        taken = Taken(time.perf_counter() - began)
        if second.wait(DEADLINE) or ground.landed() != 1:
            raise RuntimeError("the fleet that was killed did not recover")
        return taken


def _quiet(words: list[str], ground: Ground) -> "subprocess.Popen[bytes]":
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(words, cwd=ground.root, env=clean_environment(), stdout=nowhere, stderr=nowhere)


def _steps(ground: Ground) -> int:
    """The steps that the engine has written down."""
    with sqlite3.connect(f"file:{ground.root}/.genba/genba.db?mode=ro", uri=True, timeout=30) as connection:
        return int(connection.execute("SELECT count(*) FROM operation_outputs").fetchone()[0])


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.005)
