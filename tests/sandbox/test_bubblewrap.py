import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.connections.sandbox.limits import Group, make_group
from genba.domain.ports import Sandbox
from genba.domain.processes import Ending
from genba.domain.sessions.sandbox import Dialer, EgressPort, Entry, Overlay, SandboxLimits, SandboxSpec
from genba.testing.sandbox_conformance import (
    PATH,
    LimitsSuite,
    OverlaySuite,
    SandboxSuite,
    command_in,
    living_with,
    opened,
    run_in,
    unheard,
    until_gone,
)
from genba.testing.sandbox_integrity import IntegritySuite
from tests.bubblewrap import needs_bubblewrap


@pytest.fixture
def bubblewrap() -> BubblewrapSandbox:
    needs_bubblewrap()
    return BubblewrapSandbox(ProcessSupervisor())


@pytest.fixture
def sandbox(bubblewrap: BubblewrapSandbox) -> Sandbox:
    return bubblewrap


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    for name in ("lower, with: signs\\", "upper", "work"):
        (tmp_path / name).mkdir()
    return Overlay(
        lower=str(tmp_path / "lower, with: signs\\"), upper=str(tmp_path / "upper"), work=str(tmp_path / "work")
    )


class TestBubblewrap(SandboxSuite):
    pass


class TestIntegrity(IntegritySuite):
    pass


class TestLimits(LimitsSuite):
    pass


class TestLimitsByWatching(LimitsSuite):
    """Where the machine gives no control groups."""

    @pytest.fixture
    def sandbox(self, bubblewrap: BubblewrapSandbox) -> Sandbox:
        return BubblewrapSandbox(bubblewrap.processes, groups=False)

    async def test_fewer_processors_are_lent(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        done = await run_in(sandbox, msgspec.structs.replace(spec, limits=SandboxLimits(cpus=1)), "nproc")
        assert done.stdout == "1\n"


class TestOverlay(OverlaySuite):
    pass


async def test_the_death_of_genba_is_the_death_of_what_it_runs(
    sandbox: Sandbox, spec: SandboxSpec, tmp_path: Path
) -> None:
    arg = f"{100_000 + os.getpid()}.{secrets.randbelow(10**9)}"
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    script = f"setsid env -i /usr/bin/sleep {arg} & echo begun; /usr/bin/sleep {arg}"
    args = (sys.executable, str(program), spec.folder, spec.tree, spec.home, script)
    genba = await asyncio.create_subprocess_exec(*args, stdout=asyncio.subprocess.PIPE)
    assert genba.stdout is not None
    assert await genba.stdout.readline() == b"begun\n"
    assert len(living_with(arg)) >= 2
    genba.send_signal(signal.SIGKILL)
    await genba.wait()
    await until_gone(arg)


_PROGRAM = """
import asyncio, sys
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.domain.processes import Command
from genba.domain.sessions.sandbox import SandboxSpec

folder, tree, home, script = sys.argv[1:]

async def main():
    spec = SandboxSpec(run="killed", folder=folder, tree=tree, home=home)
    handle = await BubblewrapSandbox(ProcessSupervisor()).open(spec)
    command = Command(
        argv=("bash", "-c", script), workdir=tree, environment={"PATH": "/usr/bin:/bin"}, timeout_seconds=60,
        idle_seconds=60, mark="killed", lines=lambda line: print(line.decode(), flush=True),
    )
    await handle.run(command, lambda stream, line: None)

asyncio.run(main())
"""


def test_without_bwrap_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert BubblewrapSandbox(ProcessSupervisor()).problem() == ("bwrap is not installed: apt-get install bubblewrap")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (
            "echo 'bwrap: Unknown option --disable-userns' >&2; exit 1",
            "bwrap is too old: version 0.8 or newer is needed",
        ),
        (
            "echo 'bwrap: No permissions to create new namespace' >&2; exit 1",
            "bwrap does not work here: bwrap: No permissions to create new namespace",
        ),
        ("exit 3", "bwrap does not work here: it ended with 3"),
    ],
)
def test_where_it_does_not_work_it_says_why(sandbox: Sandbox, answer: str, problem: str, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    assert BubblewrapSandbox(ProcessSupervisor(), str(program)).problem() == problem


async def test_a_sandbox_that_cannot_be_built_starts_nothing(
    sandbox: Sandbox, spec: SandboxSpec, tmp_path: Path
) -> None:
    async def never(_reader: object, _writer: object) -> None:
        raise AssertionError

    broken = (
        msgspec.structs.replace(spec, writable=(str(tmp_path / "nowhere"),)),
        msgspec.structs.replace(
            spec, egress_ports=(EgressPort(name="a", port=80, serve=never), EgressPort(name="b", port=80, serve=never))
        ),
        msgspec.structs.replace(spec, overlay=Overlay(lower="/nowhere", upper="/nowhere", work="/nowhere")),
    )
    for one in broken:
        done = await run_in(sandbox, one, "touch", "started")
        assert done.ending is Ending.CANNOT_START
        assert done.stderr
    assert not (tmp_path / "tree" / "started").exists()


async def test_what_is_loaded_by_anything_is_loaded_inside_only(sandbox: Sandbox, spec: SandboxSpec) -> None:
    environment = {"PATH": PATH, "LD_PRELOAD": f"{spec.tree}/planted.so"}
    done = await run_in(sandbox, spec, "sh", "-c", "echo $LD_PRELOAD", environment=environment)
    assert done.stdout == f"{spec.tree}/planted.so\n"
    outside = [line for line in done.stderr.splitlines() if "ld.so" in line]
    assert len(outside) <= 2  # bwrap starts the shell, and the shell is loaded once


async def test_temporary_folders_have_a_size(sandbox: Sandbox, spec: SandboxSpec) -> None:
    small = msgspec.structs.replace(spec, limits=SandboxLimits(disk_mb=8))
    script = "for place in /tmp /run /dev/shm; do head -c 100000000 /dev/zero > $place/full; done; df -m /tmp | tail -1"
    done = await run_in(sandbox, small, "sh", "-c", script)
    assert done.stdout.split()[1] == "8"
    assert done.violations == ()


async def test_a_removed_file_that_is_held_open_counts_as_written(sandbox: Sandbox, spec: SandboxSpec) -> None:
    script = """
import os, time
number = 0
held = []
while True:
    held.append(open(f"part-{number}", "wb"))
    os.unlink(f"part-{number}")
    held[-1].write(bytes(4_000_000))
    held[-1].flush()
    number += 1
    time.sleep(0.01)
"""
    small = msgspec.structs.replace(spec, limits=SandboxLimits(disk_mb=40))
    done = await run_in(sandbox, small, "python3", "-c", script)
    assert [found.kind for found in done.violations] == ["disk"]


async def test_all_commands_of_a_cell_share_one_allowance_of_disk(sandbox: Sandbox, spec: SandboxSpec) -> None:
    small = msgspec.structs.replace(spec, limits=SandboxLimits(disk_mb=20))
    kinds = []
    async with opened(sandbox, small) as handle:
        for number in range(5):
            script = f"head -c 6000000 /dev/zero > part-{number}; sync part-{number}"
            done = await handle.run(command_in(small, "sh", "-c", script), unheard)
            kinds += [found.kind for found in done.violations]
    assert "disk" in kinds


async def test_closing_the_sandbox_ends_what_still_runs(sandbox: Sandbox, spec: SandboxSpec) -> None:
    arg = f"{100_000 + os.getpid()}.{secrets.randbelow(10**9)}"
    begun = asyncio.Event()
    handle = await sandbox.open(spec)
    command = command_in(spec, "sh", "-c", f"echo begun; sleep {arg}", lines=lambda _: begun.set())
    running = asyncio.create_task(handle.run(command, unheard))
    await asyncio.wait_for(begun.wait(), 60)
    await handle.close()
    assert (await asyncio.wait_for(running, 60)).code != 0
    assert living_with(arg) == []


@pytest.mark.parametrize("script", ["echo begun", "echo begun; sleep 600"], ids=["ends", "is ended"])
@pytest.mark.usefixtures("sandbox")
def test_where_orphans_come_to_genba_a_command_leaves_no_process_behind(spec: SandboxSpec, script: str) -> None:
    """One that is not collected also keeps its process namespace, for whose end Genba waits for seconds."""
    args = [sys.executable, "-c", _ENDING_PROGRAM, spec.folder, spec.tree, spec.home, script]
    environment = {**os.environ, "GENBA_OWN_PROCESS": ""}
    done = subprocess.run(args, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


_ENDING_PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from genba.connections.processes.orphans import take_in_orphans
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.domain.processes import Command
from genba.domain.sessions.sandbox import SandboxSpec

folder, tree, home, script = sys.argv[1:]

def children():
    threads = Path("/proc/self/task").iterdir()
    pids = [pid for thread in threads for pid in (thread / "children").read_text().split()]
    return [Path(f"/proc/{pid}/stat").read_text() for pid in pids]

async def main():
    take_in_orphans()
    begun = asyncio.Event()
    spec = SandboxSpec(run="ended", folder=folder, tree=tree, home=home)
    handle = await BubblewrapSandbox(ProcessSupervisor()).open(spec)
    command = Command(
        argv=("sh", "-c", script), workdir=tree, environment={"PATH": "/usr/bin:/bin"}, timeout_seconds=60,
        idle_seconds=60, mark=f"ended-{os.getpid()}", lines=lambda line: begun.set(),
    )
    running = asyncio.create_task(handle.run(command, lambda stream, line: None))
    await begun.wait()
    if "sleep" in script:
        running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    print(json.dumps(children()))

asyncio.run(main())
"""


async def test_a_service_is_reached_from_outside_and_reaches_nothing_there(sandbox: Sandbox, spec: SandboxSpec) -> None:
    script = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
    print("reached the host")
except OSError:
    pass
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print("listening", flush=True)
    connection, _ = server.accept()
    print(connection.recv(100).decode())
"""
    dialers: list[Dialer] = []
    listening = asyncio.Event()
    served = msgspec.structs.replace(spec, entry=Entry(opened=dialers.append))
    with socket.create_server(("127.0.0.1", 0)) as of_the_host:
        port = of_the_host.getsockname()[1]
        async with opened(sandbox, served) as handle:
            argv = ("python3", "-c", script, str(port))
            running = asyncio.create_task(handle.run(command_in(spec, *argv, lines=lambda _: listening.set()), unheard))
            await asyncio.wait_for(listening.wait(), 60)
            with dialers[0].take() as refused, pytest.raises(ConnectionRefusedError):
                refused.connect(("::ffff:127.0.0.1", port + 1 if port < 65535 else port - 1))
            with dialers[0].take() as reached:
                reached.connect(("::ffff:127.0.0.1", port))
                reached.sendall(b"hello")
                done = await running
    assert done.stdout.splitlines() == ["listening", "hello"]
    with pytest.raises(ConnectionRefusedError):
        dialers[0].take()


async def test_a_share_of_a_processor_is_a_share_of_its_time(sandbox: Sandbox, spec: SandboxSpec) -> None:
    limits = SandboxLimits(cpus=0.2)
    group = make_group(limits)
    group.remove()
    if "cpus" not in group.folders:
        pytest.skip("not run: this machine gives no control group for processors")
    script = "import time\nwhile time.process_time() < 0.5: pass"
    done = await run_in(sandbox, msgspec.structs.replace(spec, limits=limits), "python3", "-c", script)
    assert done.code == 0
    assert done.seconds > 1.5


def test_groups_are_taken_away_and_tell_what_was_hit_in_both_dialects(tmp_path: Path) -> None:
    limits = SandboxLimits(memory_mb=64, processes=16)
    group = make_group(limits)
    assert group.hit() == ""
    group.remove()
    assert [folder for folder in group.folders.values() if Path(folder).exists()] == []
    result = Group({"memory": str(tmp_path), "processes": str(tmp_path)})
    for file, text, kind in (
        ("pids.events", "max 0\n", ""),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", ""),
        ("memory.events", "low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\n", ""),
        ("pids.events", "max 2\n", "processes"),
        ("memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n", "memory"),
    ):
        (tmp_path / file).write_text(text)
        assert result.hit() == kind


_WRITES_TO_ITS_PARENT = """
import os, subprocess, sys
if len(sys.argv) > 1:
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
        try:
            os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
            print("opened", pid)
        except OSError:
            pass
else:
    subprocess.run([sys.executable, "-c", os.environ["SCRIPT"], "child"])
"""


@pytest.mark.parametrize("traces", [False, True])
async def test_no_process_writes_to_the_memory_of_another_unless_the_project_allows_tracing(
    sandbox: Sandbox, spec: SandboxSpec, traces: bool
) -> None:
    allowed = msgspec.structs.replace(spec, allow_ptrace=traces)
    script = f"import os; os.environ['SCRIPT'] = {_WRITES_TO_ITS_PARENT!r}; exec(os.environ['SCRIPT'])"
    done = await run_in(sandbox, allowed, "python3", "-c", script)
    assert ("opened" in done.stdout) is traces, done
