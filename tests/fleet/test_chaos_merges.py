"""Killed where work lands otherwise: on a linear history, several at once, and as a pull request."""

import subprocess
from pathlib import Path

import pytest

from genba.domain.fleet.records import WaitsFor
from genba.domain.tasks.task import TaskStatus
from tests.fleet.chaos import Chaos, on_both
from tests.fleet.yard import Yard

LANDING = (
    "turn:land:1:inside",
    "turn:land:1:after",
    "turn:prove:1:inside",
    "turn:settle:1:inside",
    "board:settle_all:1:before",
    "board:continue_:1:after",
)


@pytest.mark.parametrize(("yard", "boundary"), on_both(LANDING), indirect=["yard"])
def test_each_task_is_on_a_linear_history_once_after_a_death(yard: Yard, boundary: str) -> None:
    yard.settings["merge"] = {"history": "linear"}
    chaos = Chaos(yard)

    assert chaos.die_at(boundary) == -9, chaos.said

    yard.work()
    assert yard.statuses() == {1: TaskStatus.DONE}
    assert [line for line in yard.landed() if "#1" in line] == yard.landed()[-1:]
    assert not yard.project.git("rev-list", "--merges", "main")
    assert yard.started() == ["1"]
    chaos.check_commits()
    chaos.check_no_process()


TOGETHER = ("turn:land:1:inside", "turn:land:1:after", "turn:prove:1:inside", "turn:settle:1:inside")


@pytest.mark.parametrize(("yard", "boundary"), on_both(TOGETHER), indirect=["yard"])
def test_a_death_while_several_merge_together_merges_each_once(yard: Yard, boundary: str) -> None:
    chaos = Chaos(yard, tasks=3, merge={"batch": 3, "retry_seconds": 0.1})
    yard.project.write("README.md", "somebody works on this\n")
    yard.work("--workers", "3", check=1)
    with yard.board() as board:
        assert len(board.entries()) == 3, "they are stuck, and wait for the next turn together"
    yard.project.git("checkout", "-q", "README.md")

    assert chaos.die_at(boundary) == -9, chaos.said

    chaos.check_sane()
    yard.work("--workers", "3")
    chaos.check_done(starts=1)


PROPOSING = (
    "part:deliver:1:inside",
    "part:deliver:1:after",
    "board:end_part:1:before",
    "board:end_part:1:after",
)


@pytest.mark.parametrize(("yard", "boundary"), on_both(PROPOSING), indirect=["yard"])
def test_a_worker_that_dies_around_a_pull_request_has_opened_one(yard: Yard, tmp_path: Path, boundary: str) -> None:
    remote, opened = tmp_path / "remote.git", tmp_path / "opened"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    yard.project.git("remote", "add", "origin", str(remote))
    address = "https://forge.example/1"
    yard.settings["forge"] = {
        "open": ["sh", "-c", f"echo yes >> {opened}; echo {address}"],
        "find": ["sh", "-c", f"test ! -e {opened} || echo {address}"],
    }
    yard.set()
    yard.agent(execution={"finalize": {"createPr": True}})
    yard.task(1)
    chaos = Chaos.__new__(Chaos)
    chaos.yard, chaos.home = yard, yard.project.root.parent

    assert chaos.die_at(boundary) == -9, chaos.said

    yard.work(check=None)
    with yard.board() as board:
        (session,) = board.sessions(1)
    assert (session.status, session.waits_for) == ("waiting", WaitsFor.PULL_REQUEST), session
    assert yard.statuses() == {1: TaskStatus.REVIEW}
    assert opened.read_text("utf-8").split() == ["yes"]
    assert yard.started() == ["1"]
    chaos.check_no_process()
