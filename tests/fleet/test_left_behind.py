"""What a git that was killed has left in the way of a fleet, and a disk that was full for a moment."""

import contextlib
import errno
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from genba.connections.detached.results import Failure
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock
from genba.connections.git.repository.stale_locks import sweep_drafts
from genba.domain.errors import DiskFullError
from genba.domain.fleet.records import EscalationKind
from genba.domain.tasks.task import TaskStatus
from tests.chaos.ground import small_disk
from tests.fleet.yard import Yard
from tests.project import Project, until

LEAVE = "touch $(git rev-parse --git-common-dir)/{lock}; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt"


def test_work_that_landed_and_cannot_be_closed_is_closed_when_a_person_has_cleared_the_way(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent(script=LEAVE.format(lock="packed-refs.lock"))
    yard.task(1)

    result = yard.work(check=1)

    assert yard.statuses() == {1: TaskStatus.REVIEW}, result.err
    with yard.board() as board:
        (asked,) = board.escalations()
    assert asked.kind is EscalationKind.ATTEMPTS
    assert "packed-refs.lock" in asked.question
    (yard.project.root / ".git" / "packed-refs.lock").unlink()
    yard.genba("approve", "1")
    yard.work()
    assert yard.statuses() == {1: TaskStatus.DONE}
    assert yard.started() == ["1"]
    assert yard.project.branches() == ["main"]


def test_a_turn_of_the_queue_that_outlived_what_it_was_for_is_not_left_behind(small_yard: Yard) -> None:
    """As one is whose executor died with it while others landed everything."""
    yard = small_yard
    yard.set()
    yard.agent()
    yard.task(1)
    yard.work()
    project = yard.project
    left = "UPDATE workflow_status SET status = 'ENQUEUED', started_at_epoch_ms = NULL WHERE name = 'turn'"
    project.sql(f"{left} AND rowid = (SELECT max(rowid) FROM workflow_status WHERE name = 'turn')")

    yard.work()

    with contextlib.closing(sqlite3.connect(project.root / ".genba" / "genba.db")) as there:
        assert {status for (status,) in there.execute("SELECT status FROM workflow_status")} == {"SUCCESS"}


def test_the_lock_of_a_branch_of_the_fleet_is_in_nobodys_way(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    lock = yard.project.root / ".git/refs/heads/genba/1-task-1.lock"
    late = "(sleep 0.1; touch {lock}) & echo 1 > task-1.txt; git add -A; git commit -qm work; sleep 0.3"
    yard.agent(script=late.format(lock=lock))
    yard.task(1)

    yard.work()

    assert yard.statuses() == {1: TaskStatus.DONE}
    assert not lock.exists()


def test_files_of_dead_writers_are_swept_and_whole_or_young_ones_stay(tmp_path: Path) -> None:
    layout = RepositoryLayout(tmp_path, tmp_path / ".git", tmp_path / ".git")
    dead, alive = ".4194305-0123456789abcdef.new", ".1-0123456789abcdef.new"
    places = (".", "goals", "trees", "private/a", "runs/w-1", "runs/w-1/asks", "runs/w-1/supervised/1-1")
    drafts = [f"{place}/" for place in (*places, "runs/w-1/supervised/1-1/1")]
    left = ["index-worker-1-1-abc-4194305", "registering-4194305-abcd", *(f"{place}{dead}" for place in drafts)]
    left += ["secrets/scan-4194305-abcd"]
    kept = [
        "index-worker-1-1-abc-1",
        "secrets/scan-1-abcd",
        "trees/genba%2F1-a.json",
        "runs/w-1/run.json",
        "goals/a.json",
        *(f"{place}{alive}" for place in drafts),
        "runs/w-1/asks/.4194305-fedcba9876543210.new/of-an-instance",
        "runs/w-1/asks/.4194305-short.new",
    ]
    for name in (*left, *kept):
        path = layout.own / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    sweep_drafts(layout)
    assert all((layout.own / name).exists() for name in (*left, *kept)), "who knows who writes them"
    for name in (*left, *kept):
        os.utime(layout.own / name, (1, 1))
        os.utime((layout.own / name).parent, (1, 1))

    sweep_drafts(layout)

    assert sorted(name for name in (*left, *kept) if (layout.own / name).exists()) == sorted(kept)


def test_who_cannot_say_that_it_holds_a_lock_does_not_hold_it() -> None:
    nowhere = Path("/dev/full")

    for _ in range(2):
        with pytest.raises(OSError, match="Invalid argument"):
            FileLock(nowhere).try_acquire("somebody")


def test_a_disk_that_is_full_for_a_moment_costs_no_attempt(beginning: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as able:
        if not able:
            pytest.skip("not run: only root may mount a disk that can be filled")
        root, balloon, home = tmp_path / "disk" / "repository", tmp_path / "disk" / "balloon", tmp_path / "home"
        shutil.copytree(beginning, root, symlinks=True)
        home.mkdir()
        with Yard(Project(root, {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"})) as yard:
            yard.set(work={"min_free_disk_mb": 4}, attempts={"max": 1})
            work = "echo 1 > task-1.txt; git add -A; git commit -qm work"
            fill = f"{work}; mkdir {home}/first 2>/dev/null && cat /dev/zero > {balloon}"
            yard.agent(script=fill)
            yard.task(1)
            worker = yard.start("--until-empty")
            until(lambda: "disk" in yard.log() or worker.poll() is not None)

            balloon.unlink()

            if worker.wait(120):
                yard.work()
            assert yard.statuses() == {1: TaskStatus.DONE}
            with yard.board() as board:
                assert [session.outcome for session in board.sessions(1)] == ["completed"]


def test_what_a_supervisor_finds_of_a_full_disk_is_no_failure_of_its_agent() -> None:
    result = Failure.of(OSError(errno.ENOSPC, "No space left on device"))

    assert isinstance(result.error(), DiskFullError)
    assert not isinstance(Failure.of(OSError(errno.EIO, "Input/output error")).error(), DiskFullError)
