"""The fake clock that other tests wind: a child sees what was set, and waits as long as the clock says."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faketime import NOT_RUN, Clock, library

pytestmark = pytest.mark.skipif(library() is None, reason=NOT_RUN)

HOURS = 6 * 3600
SPEED = 200
LOOKS = """
import json, sys, time
for _ in sys.stdin:
    print(json.dumps([time.time(), time.monotonic()]), flush=True)
"""
WAITS = """
import asyncio, json, select, subprocess, sys, threading, time
taken = threading.Lock()
taken.acquire()
poll = select.poll()
def busy():
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
ways = {
    "sleep": lambda: time.sleep(30),
    "asyncio": lambda: asyncio.run(asyncio.sleep(30)),
    "lock": lambda: taken.acquire(timeout=30),
    "event": lambda: threading.Event().wait(30),
    "poll": lambda: poll.poll(30000),
    "select": lambda: select.select([], [], [], 30),
    "epoll": lambda: select.epoll().poll(30),
    "command": lambda: subprocess.run(["sleep", "30"]),
}
told = {}
for name, wait in ways.items():
    began = time.time(), time.monotonic()
    wait()
    told[name] = [time.time() - began[0], time.monotonic() - began[1]]
burner = threading.Thread(target=busy)
burner.start()
busy()
burner.join()
print(json.dumps(told))
"""


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


class Onlooker:
    """A process that tells what its clocks show as often as it is asked."""

    def __init__(self, clock: Clock) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOKS],
            env={**os.environ, **clock.environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def look(self) -> tuple[float, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        wall, steady = json.loads(self.process.stdout.readline())
        return wall, steady

    def leave(self) -> None:
        self.process.communicate()


@pytest.mark.parametrize("seconds", [HOURS, -HOURS])
def test_a_running_process_sees_a_jump_of_the_wall_clock_and_counts_seconds_as_before(
    clock: Clock, seconds: float
) -> None:
    one = Onlooker(clock)
    before = one.look()

    clock.jump(seconds)
    after = one.look()

    assert seconds <= after[0] - before[0] < seconds + 60
    assert 0 <= after[1] - before[1] < 60
    assert abs(clock.time() - after[0]) < 60
    one.leave()


def test_who_is_started_later_has_the_same_time_as_who_was_there_before(clock: Clock) -> None:
    first = Onlooker(clock)
    first.look()
    clock.speed(SPEED)
    clock.jump(HOURS)
    second = Onlooker(clock)
    second.look()

    seen = [first.look(), second.look(), first.look()]

    assert seen[0][0] <= seen[1][0] <= seen[2][0]
    assert seen[0][1] <= seen[1][1] <= seen[2][1]
    assert seen[0][0] <= clock.time() + 1
    first.leave()
    second.leave()


def test_a_fast_clock_shortens_every_way_to_wait(clock: Clock) -> None:
    clock.speed(SPEED)

    done = subprocess.run(
        [sys.executable, "-c", WAITS],
        env={**os.environ, **clock.environment()},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    values: dict[str, Any] = json.loads(done.stdout)
    assert len(values) == 8
    for name, both in values.items():
        assert all(passed >= 29 for passed in both), (name, both)


async def test_a_clock_that_is_wound_wakes_who_sleeps_already(clock: Clock) -> None:
    program = "import time; print('sleeps', flush=True); time.sleep(3600)"
    sleeper = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env={**os.environ, **clock.environment()}, stdout=asyncio.subprocess.PIPE
    )
    assert sleeper.stdout is not None
    await sleeper.stdout.readline()

    clock.speed(36000)

    assert await asyncio.wait_for(sleeper.wait(), 30) == 0
