from pathlib import Path

import pytest

from genba.domain.fleet.records import EntryStatus
from genba.domain.tasks.task import TaskStatus
from tests.fleet.chaos import Chaos, on_both
from tests.fleet.yard import Yard, summary

WORK = ("open:1", "iterate:1", "verify:1")
TURN = ("take:1", "prove:1", "land:1", "settle:1", "take:2")
STEPS = [
    f"{place}:{step}:{when}"
    for place, steps in (("part", WORK), ("turn", TURN))
    for step in steps
    for when in ("inside", "after")
]
BETWEEN = [
    "board:register:1:after",
    "engine:enqueue_in:1:before",
    "engine:enqueue_in:1:after",
    "board:start:1:after",
    "board:end_part:1:before",
    "board:end_part:1:after",
    "board:enqueue_merge:1:before",
    "board:enqueue_merge:1:after",
    "board:settle_all:1:before",
    "board:settle_all:1:after",
    "board:continue_:1:before",
    "board:continue_:1:after",
    "board:end_part:2:before",
    "board:end_part:2:after",
]


@pytest.mark.parametrize(("yard", "boundary"), on_both(STEPS + BETWEEN), indirect=["yard"])
def test_a_worker_that_dies_at_a_boundary_is_resumed(yard: Yard, boundary: str) -> None:
    chaos = Chaos(yard)

    assert chaos.die_at(boundary) == -9, chaos.said

    chaos.check_sane()
    done = summary(yard.work())
    assert done["ended"] == "empty"
    chaos.check_done(starts=1)


def test_every_step_of_a_task_is_a_boundary_with_a_death_here(small_yard: Yard, tmp_path: Path) -> None:
    chaos = Chaos(small_yard)

    assert chaos.die_at("nowhere", tmp_path / "record") == 0, chaos.said

    passed = (tmp_path / "record").read_text("utf-8").splitlines()
    steps = [line for line in passed if line.startswith(("part:", "turn:")) and not line.endswith(":before")]
    assert sorted(steps) == sorted(STEPS)
    assert set(BETWEEN) <= set(passed)
    chaos.check_done(starts=1)


BACK = [f"part:{step}:{when}" for step in ("verify:1", "send back:1", "iterate:2") for when in ("inside", "after")]


@pytest.mark.parametrize(("yard", "boundary"), on_both(BACK), indirect=["yard"])
def test_work_that_was_sent_back_is_sent_back_once(yard: Yard, boundary: str) -> None:
    seen = yard.project.root.parent / "seen"
    answer = """echo '{"structured": {"status": "DONE"}}' > {reply_file}"""
    once = f"test -e {seen} && touch good.txt; touch {seen}; {answer}"
    signal = {"type": "keywordSignal", "config": {"completionKeyword": "DONE"}}
    chaos = Chaos(yard, line=once, completion=signal, dod=[{"type": "custom_script", "script": "test -e good.txt"}])

    assert chaos.die_at(boundary) == -9, chaos.said

    chaos.check_sane()
    yard.work()
    chaos.check_done(starts=2)


CONFLICT = (
    "turn:prove:2:inside",
    "turn:settle:2:inside",
    "board:settle_all:2:after",
    "engine:enqueue_in:3:before",
    "part:open:3:inside",
    "part:open:3:after",
    "part:iterate:3:inside",
    "board:end_part:3:after",
)
SAME_FILE = (
    "if grep -qs '<<<<<<<' shared.txt; then grep -v '^[<=>|]' shared.txt | sort -u > solved; mv solved shared.txt;"
    " else echo by-$GENBA_ISSUE > shared.txt; fi"
)


@pytest.mark.parametrize(("yard", "boundary"), on_both(CONFLICT), indirect=["yard"])
def test_work_that_came_back_with_a_conflict_comes_back_once(yard: Yard, boundary: str) -> None:
    chaos = Chaos(yard, tasks=2, line=SAME_FILE)

    assert chaos.die_at(boundary) == -9, chaos.said

    chaos.check_sane()
    yard.work()
    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    assert yard.project.git("show", "main:shared.txt").split() == ["by-1", "by-2"]
    assert sorted(chaos.merges().items()) == [(1, 1), (2, 1)]
    assert len(yard.started()) == 3
    chaos.check_commits()
    with yard.board() as board:
        found = sorted(str(entry.status) for entry in board.entries(open_only=False))
    assert found == [EntryStatus.CONFLICT, EntryStatus.MERGED, EntryStatus.MERGED]
    chaos.check_no_process()
