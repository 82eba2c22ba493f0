"""What a container uses, seen from outside while its engine is still making it."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from genba.connections.sandbox.containers.watch import ContainerWatch
from genba.domain.sessions.sandbox import SandboxLimits

GROUPS = Path("/sys/fs/cgroup")
FORKS = """
import os, sys, time
sys.stdin.readline()
for _ in range(20):
    try:
        if os.fork() == 0: break
    except OSError: pass
time.sleep(60)
"""


@pytest.fixture
def groups() -> Iterator[dict[str, Path]]:
    """A group of the older kind for memory, and one for processes, both with the name of a container."""
    identity = secrets.token_hex(32)
    made = {kind: GROUPS / kind / identity for kind in ("memory", "pids")}
    with ExitStack() as stack:
        for folder in made.values():
            try:
                folder.mkdir()
            except OSError as error:
                pytest.skip(f"not run: no control groups of the older kind can be made here: {error}")
            stack.callback(_removed, folder)
        yield made


def _removed(folder: Path) -> None:
    """The kernel needs a moment to forget the dead."""
    while True:
        for process in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        with suppress(OSError):
            return folder.rmdir()


@pytest.fixture
def first() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", FORKS], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


async def test_a_container_that_is_seen_before_it_is_in_all_of_its_groups_is_held_to_all_of_its_limits(
    first: "subprocess.Popen[bytes]", groups: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "id").write_text(groups["pids"].name)
    (groups["pids"] / "pids.max").write_text("5")
    watch = ContainerWatch(SandboxLimits(processes=5), None, tmp_path / "id", "NOBODY=1")
    guarding = asyncio.create_task(watch.guard())
    (groups["memory"] / "cgroup.procs").write_text(str(first.pid))
    async with asyncio.timeout(30):
        while watch.first is None:  # noqa: ASYNC110  (what is waited for is another thread's look at /proc)
            await asyncio.sleep(0.01)

    (groups["pids"] / "cgroup.procs").write_text(str(first.pid))
    assert first.stdin is not None
    first.stdin.write(b"go\n")
    first.stdin.flush()
    await asyncio.wait_for(guarding, 30)

    assert watch.found is not None
    assert watch.found.kind == "processes"
