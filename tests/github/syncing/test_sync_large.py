"""Ten thousand issues: what they cost, and a sync that is killed in the middle."""

import signal
import sys
from pathlib import Path

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.issue_copy import TrackerBoard
from genba.coordination.tracker.tracker_sync import Synchronizer
from genba.definitions.project.tracker_section import GitHubSettings
from genba.testing.doubles import ManualClock
from genba.testing.tracker_doubles import MemoryIssues
from tests import preloaded

_MANY = 10_000
_SETTINGS = GitHubSettings(repository="acme/shop")


def _tracker(count: int, tick: float = 1.0) -> MemoryIssues:
    remote = MemoryIssues()
    for number in range(1, count + 1):
        remote.add(f"issue {number}", number, tick=tick, blocked_by=(number - 1,) if number % 10 == 0 else ())
    return remote


async def test_ten_thousand_issues_cost_what_they_must(tmp_path: Path) -> None:
    remote = _tracker(_MANY)
    with Blackboard.open(str(tmp_path / "board.db"), "a project") as board:
        result = await Synchronizer(remote, board, _SETTINGS, ManualClock()).sync()

        assert len(result.added) == _MANY
        assert result.requests <= 110
        assert result.points <= 400
        assert TrackerBoard(board).counts() == (_MANY, _MANY)
        assert board.get(20).dependencies == (19,)

        remote.tick(3600)
        remote.change(17, title="changed")
        result = await Synchronizer(remote, board, _SETTINGS, ManualClock()).sync()
        assert (result.requests, result.points, result.changed) == (2, 1, (17,))  # 120 changed in the last two minutes

        for _ in range(2):
            result = await Synchronizer(remote, board, _SETTINGS, ManualClock()).sync()
            assert (result.requests, result.points) == (1, 0)


@pytest.mark.parametrize("together", [3, 40, 250])
async def test_many_changes_of_one_second_are_all_read(tmp_path: Path, together: int) -> None:
    remote = _tracker(1_000, 1 / together)
    with Blackboard.open(str(tmp_path / "board.db"), "a project") as board:
        result = await Synchronizer(remote, board, _SETTINGS, ManualClock()).sync()

    assert len(result.added) == result.issues == 1_000
    assert result.requests <= 11


async def test_some_hundred_issues_on_both_databases(board: Blackboard) -> None:
    remote = _tracker(260)
    result = await Synchronizer(remote, board, _SETTINGS, ManualClock()).sync()
    assert len(result.added) == 260
    assert (await Synchronizer(remote, board, _SETTINGS, ManualClock()).sync(full=True)).changed == ()


_CHILD = """
import asyncio, os, sys
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.tracker.tracker_sync import Synchronizer
from genba.testing.doubles import ManualClock
from tests.github.syncing.test_sync_large import _SETTINGS, _tracker

remote = _tracker(1_000)
remote.page_size = 50
left = int(sys.argv[2])
real = remote._call
def dying(what):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    real(what)
remote._call = dying
board = Blackboard.open(sys.argv[1], "a project")
asyncio.run(Synchronizer(remote, board, _SETTINGS, ManualClock()).sync())
"""


def test_a_sync_that_is_killed_again_and_again_goes_on_each_time(tmp_path: Path) -> None:
    path = tmp_path / "board.db"
    words = [sys.executable, "-c", _CHILD, str(path), "9"]
    codes = []
    for _ in range(20):
        done = preloaded.run(words, cwd=preloaded.ROOT, env=preloaded.ordinary_environment(), timeout=120)
        codes.append(done.returncode)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert codes[-1] == 0
    assert codes.count(-signal.SIGKILL) >= 3

    with Blackboard.open(str(path), "a project") as board:
        tasks = board.find()
        assert [task.number for task in tasks] == list(range(1, 1_001))
        assert all(task.version == (2 if task.dependencies else 1) for task in tasks)
        assert sum(bool(task.dependencies) for task in tasks) == 100
