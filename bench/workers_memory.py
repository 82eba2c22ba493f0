"""What a worker takes of the memory, idle and at work: as PSS, in which what several share is counted once.

One fleet has 100 workers, and its agents sleep. Tasks are added to it step by step, and when so many agents are asleep,
and nothing else is going on, everything that descends from it is counted. What one worker takes is the straight line
through these, so that what the fleet itself takes is not in it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import processes
from bench.fleet import BIN, until, wait_for_all
from bench.fleet_ground import Ground
from bench.measuring import Measured, Row, clean_environment
from bench.slopes import each_more
from genba.connections.processes.orphans import take_in_orphans
from genba.domain.sessions.sandbox import SANDBOX_VARIABLE

ACTIVE = (0, 1, 2, 4, 8, 16, 32, 64, 100)
FEW, MANY = 8, 64
"""What one worker takes is seen between these two."""
LONG = 600.0
STILL_SECONDS = 0.3
OURS = ("orchestrator", "fork server", "supervisors")

Seen = dict[int, dict[str, float]]
"""Megabytes by kind, by the number of workers."""


def rows() -> Measured:
    take_in_orphans()
    idle = {count: _idle(count) for count in (FEW, MANY)}
    _say("idle fleets")
    seen = _at_work()
    python = _asleep([sys.executable, "-c", f"import time; time.sleep({LONG:g})"])
    shell = _asleep(["sh", "-c", f"sleep {LONG:g}; true"])
    _say("bare processes")
    return Measured(_rows(idle, seen, python, shell), {"series": kept(seen, each_more(python))})


def _rows(idle: Seen, seen: Seen, python: dict[int, float], shell: dict[int, float]) -> list[Row]:
    bare, least = each_more(python), each_more(shell)
    beside = f"beside {bare:.1f} MB; a shell that sleeps {least:.1f} MB"
    waiting = max(0.0, each_more({count: ours(found) for count, found in idle.items()}))
    ends = {count: seen[count] for count in (FEW, MANY)}
    working = each_more({count: ours(found) for count, found in ends.items()})
    one = {kind: max(0.0, each_more({count: found[kind] for count, found in ends.items()})) for kind in processes.KINDS}
    most, itself = max(seen), idle[FEW]
    nothing = f"{waiting:.2f} MB {beside}; the straight line from {FEW} to {MANY} workers"
    active = (
        f"{working:.1f} MB {beside}; {one['supervisors']:.1f} MB its supervisor, {one['orchestrator']:.1f} MB in the "
    )
    active += f"orchestrator, {one['fork server']:.1f} MB in the fork server; "
    active += f"its scripted agent takes {one['agents']:.1f} MB"
    empty = f"{ours(itself):.0f} MB {beside}; orchestrator {itself['orchestrator']:.0f} MB, "
    empty += f"fork server {itself['fork server']:.0f} MB"
    full = f"{ours(seen[most]):.0f} MB of Genba beside {bare * most:.0f} MB; "
    full += f"its scripted agents take {seen[most]['agents']:.0f} MB"
    python_ = "a bare Python process"
    return [
        Row(f"memory of an idle worker / {python_}", nothing, waiting / bare, 0.1),
        Row(f"memory of a worker at work, without its agent / {python_}", active, working / bare),
        Row(f"memory of a fleet with nothing to do / {python_}", empty, ours(itself) / bare),
        Row(f"memory of {most} workers at work / {most} bare Python processes", full, ours(seen[most]) / (bare * most)),
    ]


def ours(found: dict[str, float]) -> float:
    """What is Genba's own: the agents have a memory of theirs."""
    return sum(found[kind] for kind in OURS)


def kept(seen: Seen, bare: float) -> dict[str, dict[str, list[float]]]:
    """By line of the picture. On a logarithmic axis there is no place for a fleet without agents."""
    active = [count for count in seen if count]
    lines = {
        "Genba itself": [ours(seen[count]) for count in active],
        "the agents, scripted": [seen[count]["agents"] for count in active],
        "as many bare Python processes": [bare * count for count in active],
    }
    return {
        name: {"workers": [float(count) for count in active], "value": [round(value, 1) for value in found]}
        for name, found in lines.items()
    }


def _at_work() -> Seen:
    with _fleet(max(ACTIVE)) as (ground, fleet):
        seen: Seen = {}
        there = 0
        for count in ACTIVE:
            ground.tasks(count - there, first=there + 1)
            there = count
            until(lambda count=count: processes.count(fleet, "agents") == count)  # type: ignore[misc]
            _until_still(fleet)
            seen[count] = processes.memory(fleet)
            _say(f"{count} at work")
        return seen


def _idle(workers: int) -> dict[str, float]:
    with _fleet(workers) as (_, fleet):
        _until_still(fleet)
        return processes.memory(fleet)


def _until_still(fleet: int) -> None:
    """True while only the fleet and its agents run."""
    since = time.monotonic()

    def still() -> bool:
        nonlocal since
        if processes.count(fleet, "fork server") == 0 or processes.count(fleet, "others"):
            since = time.monotonic()
        return time.monotonic() - since > STILL_SECONDS

    until(still)


@contextmanager
def _fleet(workers: int) -> Iterator[tuple[Ground, int]]:
    """A fleet whose agents sleep for longer than anybody looks; its process."""
    with tempfile.TemporaryDirectory(prefix="genba-bench-", ignore_cleanup_errors=True) as folder:
        ground = Ground(Path(folder), LONG)
        words = [str(BIN / "genba"), "work", "--plain", "--workers", str(workers)]
        log = Path(folder) / "output.txt"
        environment = {**clean_environment(), SANDBOX_VARIABLE: "worktree"}
        with log.open("w") as output:
            process = subprocess.Popen(words, cwd=ground.root, env=environment, stdout=output, stderr=output)
        try:
            until(lambda: "workers" in log.read_text("utf-8"))
            yield ground, process.pid
        finally:
            process.send_signal(signal.SIGTERM)  # it suspends its agents
            process.wait()
            wait_for_all()


def _asleep(words: list[str]) -> dict[int, float]:
    """Megabytes of some bare processes and what they start, by their number."""
    found: dict[int, float] = {}
    sleeping: list[subprocess.Popen[bytes]] = []
    try:
        for count in (FEW, MANY):
            while len(sleeping) < count:
                sleeping.append(subprocess.Popen(words))
            found[count] = _settled(lambda: sum(sum(processes.memory(each.pid).values()) for each in sleeping))
    finally:
        for each in sleeping:
            for process in processes.family(each.pid):
                os.kill(process.number, signal.SIGKILL)
        wait_for_all()
    return found


def _settled(look: Callable[[], float]) -> float:
    """The memory at rest: starting processes grow."""
    before = [0.0]

    def rests() -> bool:
        time.sleep(0.1)
        seen = look()
        alike = abs(seen - before[0]) < 0.002 * seen
        before[0] = seen
        return alike

    until(rests)
    return before[0]


def _say(what: str) -> None:
    print(f"  memory: {what}", flush=True)
