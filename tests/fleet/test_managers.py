"""Managers that ask what is next, through `genba work`: others do the work, side by side, and it is merged."""

from pathlib import Path

from genba.domain.fleet.records import Purpose
from genba.domain.tasks.task import TaskStatus
from tests.fleet.test_conflicts import RESOLVES
from tests.fleet.test_reviews import APPROVE, reviewer
from tests.fleet.test_state_driven import asker, output, report
from tests.fleet.yard import Yard
from tests.project import until

PARTS = [{"title": name, "local_id": name} for name in ("one", "two", "three")]


def crew(yard: Yard) -> None:
    """A manager, and a worker that does each of its tasks in one go."""
    asker(yard, "boss", "manager", plan=PARTS)
    asker(yard, "asker", atomic=True, by_title=True)
    yard.set(work={"agent": "asker"}, workflow={"suspend_seconds": 600, "wait_seconds": 1})


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
    assert {session.agent for session in sessions} == {"boss"}, "no other agent lands its task"
    boss = next(session.run for session in sessions if session.purpose is Purpose.MANAGE)
    actions = report(yard, boss)
    assert actions[:3] == ["get_task", "create_subtasks", "delegate"]
    assert actions[-2:] == ["report_completion", "exit"]
    assert not [line for line in output(yard, boss) if line.startswith("error")]
    assert {f"{part.title}.txt" for part in parts} <= set(yard.files())
    assert not yard.left_running()


def test_the_task_of_a_manager_is_reviewed_and_lands_although_work_agent_has_no_adapter(small_yard: Yard) -> None:
    yard = small_yard
    asker(yard, "boss", "manager", plan=PARTS[:1])
    asker(yard, "asker", atomic=True, by_title=True)
    reviewer(yard, APPROVE)
    yard.set(workflow={"suspend_seconds": 600, "wait_seconds": 1})
    yard.task(1, "Write a file", assignee="boss", requires_review=True, reviewer_type="ai")

    worked = yard.work("--plain", "--workers", "3")

    assert yard.look(1).status is TaskStatus.DONE
    assert "one.txt" in yard.files()
    with yard.board() as board:
        agents = {session.agent for session in board.sessions(1)}
    assert agents == {"boss"}
    lines = [line for line in worked.err.splitlines() if "#1 " in line]
    done = [at for at, line in enumerate(lines) if "● done" in line]
    merged = [at for at, line in enumerate(lines) if "merged" in line]
    assert len(done) == 1, worked.err
    assert merged
    assert merged[0] < done[0], "a task is said to be done once it is"


def test_what_a_manager_cannot_land_goes_to_a_worker_that_did_a_part_of_it(small_yard: Yard) -> None:
    yard = small_yard
    go = yard.project.root.parent / "go"
    asker(yard, "boss", "manager", plan=PARTS[:1], wait={"report_completion": str(go)})
    yard.agent("hand", script=RESOLVES)
    yard.set(workflow={"suspend_seconds": 600, "wait_seconds": 1})
    yard.task(1, "Write a file", assignee="boss")

    process = yard.start("--workers", "3", "--until-empty")
    until(Path(f"{go}.waiting").exists, 90)
    yard.project.write("shared.txt", "of a person\n")
    yard.project.commit("Write the same file")
    go.touch()
    assert process.wait(120) == 0, yard.log()

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.project.git("show", "main:shared.txt") == "both"
    with yard.board() as board:
        sessions = [(session.agent, str(session.purpose)) for session in board.sessions(1)]
    assert sessions == [("boss", "manage"), ("boss", "integrate"), ("hand", "integrate")]


def test_a_manager_whose_landing_is_red_is_not_started_to_work_on_it(small_yard: Yard) -> None:
    yard = small_yard
    go = yard.project.root.parent / "go"
    asker(yard, "boss", "manager", plan=PARTS[:1], wait={"exit": str(go)})
    yard.agent("hand", script="echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt")
    yard.set(workflow={"suspend_seconds": 600, "wait_seconds": 1})
    yard.task(1, "Write a file", assignee="boss")

    process = yard.start("--workers", "3", "--until-empty")
    until(Path(f"{go}.waiting").exists, 90)
    yard.genba("task", "edit", "1", "--goal", "file_exists:task-1.txt")
    go.touch()
    assert process.wait(120) == 0, yard.log()

    assert yard.look(1).status is TaskStatus.DONE
    with yard.board() as board:
        sessions = [(session.agent, str(session.purpose), session.outcome) for session in board.sessions(1)]
    assert sessions == [
        ("boss", "manage", "completed"),
        ("boss", "integrate", "incomplete"),
        ("hand", "integrate", "completed"),
    ]
    assert yard.started() == ["1", "2", "1"], "the manager, the worker of its part, and that worker for what is red"


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
    assert boss.part > 1, "it was stopped, and woken"
    assert "exit suspended" in " ".join(line.removeprefix("told ") for line in output(yard, boss.run))


def test_a_fleet_that_is_killed_while_a_manager_waits_goes_on_and_plans_nothing_twice(small_yard: Yard) -> None:
    yard = small_yard
    go = yard.project.root.parent / "go"
    asker(yard, "boss", "manager", plan=PARTS)
    asker(yard, "asker", atomic=True, by_title=True, wait={"execute_subtask": str(go)})
    yard.set(work={"agent": "asker"}, workflow={"suspend_seconds": 600, "wait_seconds": 1})
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
