"""Locks for a short piece of work: between processes, and between those of one."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from genba.connections.detached.process_lock import take
from genba.connections.git.repository.locks import FileLock, held, is_gone, is_held
from genba.domain.errors import StateConflictError


async def test_those_of_one_process_get_a_lock_in_the_order_in_which_they_asked(tmp_path: Path) -> None:
    order: list[int] = []
    inside = 0

    async def work(number: int) -> None:
        nonlocal inside
        async with held(tmp_path / "lock", f"worker {number}"):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            order.append(number)
            inside -= 1

    await asyncio.gather(*(work(number) for number in range(50)))

    assert order == list(range(50))


async def test_a_waiter_that_waits_too_long_learns_who_holds_the_lock(tmp_path: Path) -> None:
    async with held(tmp_path / "lock", "somebody"):
        with pytest.raises(StateConflictError, match="somebody"):
            async with held(tmp_path / "lock", "impatient", patience_seconds=0.01):
                pass

    async with held(tmp_path / "lock", "patient"):
        pass


async def test_a_waiter_cancelled_in_the_line_delays_no_other(tmp_path: Path) -> None:
    async def work() -> None:
        async with held(tmp_path / "lock", "worker"):
            pass

    async with held(tmp_path / "lock", "somebody"):
        waiting = [asyncio.ensure_future(work()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()

    await asyncio.gather(*waiting[1:])
    assert waiting[0].cancelled()


async def test_the_first_in_the_line_waits_for_another_process(tmp_path: Path) -> None:
    other = FileLock(tmp_path / "lock")
    assert other.try_acquire("another process")
    with pytest.raises(StateConflictError, match="another process"):
        async with held(tmp_path / "lock", "worker", patience_seconds=0.02):
            pass

    other.release()
    async with held(tmp_path / "lock", "worker"):
        assert not FileLock(tmp_path / "lock").try_acquire("late")


@pytest.mark.skipif(sys.platform != "linux", reason="not run: there is no /proc here")
def test_a_dead_process_that_was_not_reaped_is_gone() -> None:
    died = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    os.waitid(os.P_PID, died.pid, os.WEXITED | os.WNOWAIT)

    assert is_gone(died.pid)
    assert not is_gone(os.getpid())

    died.communicate()


_LOOKS = """
import sys, pathlib
from genba.connections.git.repository.locks import is_held
path = pathlib.Path(sys.argv[1])
print("looking", flush=True)
while True:
    is_held(path)
"""


@pytest.mark.parametrize("take_it", ["the lock of a branch", "the lock of an agent"])
def test_a_process_that_looks_at_a_lock_keeps_no_other_from_taking_it(tmp_path: Path, take_it: str) -> None:
    path = tmp_path / "lock"
    path.touch()
    words = [sys.executable, "-c", _LOOKS, str(path)]
    looking = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for one in looking:
            assert one.stdout is not None
            assert one.stdout.readline() == "looking\n"
        for number in range(300):
            if take_it == "the lock of a branch":
                lock = FileLock(path)
                assert lock.try_acquire("worker"), f"refused at attempt {number}"
                assert is_held(path)
                lock.release()
            else:
                descriptor = take(path)
                assert descriptor is not None, f"refused at attempt {number}"
                os.close(descriptor)
    finally:
        for one in looking:
            one.kill()
            one.communicate()


def test_a_lock_that_another_process_has_alone_is_refused_at_once(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_acquire("first")

    assert not second.try_acquire("second")

    first.release()
    assert second.try_acquire("second")
    second.release()
