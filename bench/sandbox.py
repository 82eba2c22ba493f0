"""The cost of a sandbox at the start of a command: alternately without one and in bubblewrap."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench.measuring import Row
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.domain.ports import Processes
from genba.domain.processes import Command
from genba.domain.sessions.sandbox import EgressPort, SandboxLimits, SandboxSpec

ROUNDS = 20
LIMIT_MS = 30.0


def rows() -> list[Row]:
    """A start in a sandbox with proxy and limits, beside a start without."""
    problem = BubblewrapSandbox(ProcessSupervisor()).problem()
    if problem:
        return [Row("bubblewrap, added to a start", f"not run: {problem}")]
    with tempfile.TemporaryDirectory(prefix="genba-bench-") as folder:
        bare, sandboxed = asyncio.run(_measure(Path(folder)))
    added = (sandboxed - bare) * 1000
    figure = f"{added:.1f} ms added: {sandboxed * 1000:.1f} ms beside {bare * 1000:.1f} ms; at most {LIMIT_MS:g} ms"
    return [Row(f"bubblewrap, added to a start / {LIMIT_MS:g} ms", figure, added / LIMIT_MS, 1.0)]


async def _measure(folder: Path) -> tuple[float, float]:
    processes = ProcessSupervisor()
    handle = await BubblewrapSandbox(processes).open(_spec(folder))
    command = Command(
        argv=("true",),
        workdir=str(folder / "tree"),
        environment={"PATH": "/usr/bin:/bin"},
        timeout_seconds=60,
        idle_seconds=60,
        mark=folder.name,
    )
    bare, sandboxed = [], []
    for number in range(ROUNDS + 1):
        times = await _seconds(processes, command), await _seconds(handle, command)
        if number:
            bare.append(times[0])
            sandboxed.append(times[1])
    await handle.close()
    return statistics.median(bare), statistics.median(sandboxed)


async def _seconds(processes: Processes, command: Command) -> float:
    began = time.perf_counter()
    done = await processes.run(command, _unheard)
    assert done.code == 0, done.stderr
    return time.perf_counter() - began


def _spec(folder: Path) -> SandboxSpec:
    return SandboxSpec(
        run="bench",
        folder=str(folder / "sandbox"),
        tree=str(folder / "tree"),
        home=str(folder / "home"),
        egress_ports=(EgressPort(name="model", port=3129, serve=_never),),
        limits=SandboxLimits(memory_mb=2048, processes=256, disk_mb=1024),
    )


async def _never(_reader: object, _writer: object) -> None:
    raise AssertionError("the port is not used")


def _unheard(_stream: str, _text: str) -> None:
    return
