"""Managers that ask what is next, through `genba work`: others do the work, side by side, and it is merged."""

from pathlib import Path

from genba.domain.fleet import Purpose
from genba.domain.tasks import TaskStatus
from tests.fleet.test_state_driven import asker, said, told
from tests.fleet.yard import Yard
from tests.project import until

PARTS = [{"title": name, "local_id": name} for name in ("one", "two", "three")]


def crew(yard: Yard) -> None:
    """A manager, and a worker that does each of its tasks in one go."""
    asker(yard, "boss", "manager", plan=PARTS)
    asker(yard, "asker", atomic=True, by_title=True)
    yard.set(work={"agent": "asker"}, workflow={"park_seconds": 600, "wait_seconds": 1})


def test_a_manager_has_three_workers_do_its_task_and_it_lands(small_yard: Yard) -> None:
    yard = small_yard
    crew(yard)
    yard.task(1, "Write three files", assignee="boss")

    yard.work("--workers", "4")

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    with yard.board() as board:
        parts = [board.board.get(number) for number in board.board.get(1).children]
        sessions = board.sessions(1)
        runs = {part.number: board.sessions(part.number) for part in parts}
    assert [(part.title, part.assignee, part.in_plan) for part in parts] == [
        (each["title"], "asker", False) for each in PARTS
    ]
    assert {session.purpose for session in sessions} == {Purpose.MANAGE, Purpose.INTEGRATE}
    assert all(len(found) == 1 for found in runs.values())
    boss = next(session.run for session in sessions if session.purpose is Purpose.MANAGE)
    actions = told(yard, boss)
    assert actions[:3] == ["get_task", "create_subtasks", "delegate"]
    assert actions[-2:] == ["report_completion", "exit"]
    assert not [line for line in said(yard, boss) if line.startswith("error")]
    assert {f"{part.title}.txt" for part in parts} <= set(yard.files())
    assert not yard.left_running()


def test_a_manager_gives_its_worker_free_and_is_woken_when_its_parts_have_ended(small_yard: Yard) -> None:
    yard = small_yard
    crew(yard)
    yard.task(1, "Write three files", assignee="boss")

    yard.work("--workers", "1")

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    with yard.board() as board:
        boss = next(session for session in board.sessions(1) if session.purpose is Purpose.MANAGE)
        children = board.board.get(1).children
    assert len(children) == len(PARTS), "nothing was planned twice"
    assert boss.part > 1, "it was sent home, and woken"
    assert "exit parked" in " ".join(line.removeprefix("told ") for line in said(yard, boss.run))


def test_a_fleet_that_is_killed_while_a_manager_waits_goes_on_and_plans_nothing_twice(small_yard: Yard) -> None:
    yard = small_yard
    go = yard.project.root.parent / "go"
    asker(yard, "boss", "manager", plan=PARTS)
    asker(yard, "asker", atomic=True, by_title=True, wait={"execute_subtask": str(go)})
    yard.set(work={"agent": "asker"}, workflow={"park_seconds": 600, "wait_seconds": 1})
    yard.task(1, "Write three files", assignee="boss")

    process = yard.start("--workers", "4")
    until(Path(f"{go}.waiting").exists, 90)
    yard.kill(process)
    go.touch()
    yard.work("--workers", "4")

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    with yard.board() as board:
        children = board.board.get(1).children
        tried = [len(board.sessions(number)) for number in children]
    assert tried == [1] * len(PARTS)
    assert sorted(yard.started()) == sorted(["1", *map(str, children)]), (
        "who lived went on, and nobody was started anew"
    )
