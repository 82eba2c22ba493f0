"""Agents that ask what is next, through `genba work`: a command that speaks to the server of tools, and real git."""

import json
from pathlib import Path
from typing import Any

import pytest

from genba.domain.fleet.records import EscalationKind
from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import needs_bubblewrap
from tests.fleet.yard import Yard
from tests.project import until

ASKER = Path(__file__).with_name("asker.py")
PLAN = [
    {"title": "first", "local_id": "a"},
    {"title": "second", "local_id": "b", "depends_on": ["a"]},
]
GOAL = {"custom_script": "grep -qx right first.txt && grep -qx right second.txt"}
WHOLE = {"custom_script": "grep -qx right whole.txt"}


def asker(yard: Yard, name: str = "asker", hierarchy: str = "worker", kind: str = "worktree", **conduct: Any) -> None:
    file = {
        "name": name,
        "description": "An agent that asks what is next",
        "parameters": {"issue": {"type": "number"}},
        "runner": {
            "flow": {"mode": "stateDriven", "hierarchy": hierarchy},
            "adapter": {
                "type": "custom",
                "command": f"echo $GENBA_ISSUE >> {yard.starts}; exec /usr/bin/python3 asker.py"
                if kind == "worktree"
                else "exec /usr/bin/python3 asker.py",
                "env": {"CONDUCT": json.dumps({"plan": PLAN, **conduct})},
            },
            "limits": {"maxIterations": 3, "retries": 0},
            "sandbox": {"kind": kind},
        },
    }
    yard.project.write(f".agent/{name}/agent.json", json.dumps(file))
    yard.project.write(f".agent/{name}/prompts/system.md", "You write files, one after the other.\n")
    yard.project.write("asker.py", ASKER.read_text("utf-8"))


def output(yard: Yard, run: str) -> list[str]:
    """What an agent printed."""
    return yard.project.printed(run)


def report(yard: Yard, run: str) -> list[str]:
    return [line.split()[1] for line in output(yard, run) if line.startswith("told ")]


def only_run(yard: Yard, task: int = 1) -> str:
    with yard.board() as board:
        (session,) = board.sessions(task)
    return session.run


@pytest.mark.parametrize("kind", ["worktree", "bubblewrap"])
def test_a_worker_that_asks_is_led_from_its_task_to_merged_work(small_yard: Yard, kind: str) -> None:
    yard = small_yard
    if kind == "bubblewrap":
        needs_bubblewrap()
    yard.settings["dod"] = [GOAL]
    asker(yard, kind=kind, twice=True, replays=True)
    yard.set(work={"agent": "asker"})
    yard.task(1, "Write two files")

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert {"first.txt", "second.txt"} <= set(yard.files())
    run = only_run(yard)
    assert report(yard, run) == [
        *("get_task", "create_subtasks"),
        *("start_subtask", "execute_subtask") * 2,
        *("report_completion", "exit"),
    ]
    lines = output(yard, run)
    assert "the same True" in lines, "a plan that is sent twice is made once"
    assert "replayed not_authenticated exit" in lines, "a credential is good for once"
    with yard.board() as board:
        steps = [board.board.get(number) for number in board.board.get(1).children]
    assert [(step.title, step.status, step.in_plan) for step in steps] == [
        ("first", TaskStatus.DONE, True),
        ("second", TaskStatus.DONE, True),
    ]
    assert not yard.left_running()


def test_no_secret_of_a_session_is_written_down_anywhere(small_yard: Yard) -> None:
    yard = small_yard
    asker(yard, atomic=True)
    yard.set(work={"agent": "asker"})
    yard.task(1)

    yard.work()

    prompt = yard.project.prompts(only_run(yard))[0]
    assert "Call authenticate" in prompt
    assert prompt.rstrip().endswith("---\n\nYou write files, one after the other.")
    for path in yard.project.root.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"gbo_" not in content, path
            assert b"gbs_" not in content, path


def test_a_red_goal_comes_back_as_rework_until_it_is_green(small_yard: Yard) -> None:
    yard = small_yard
    yard.settings["dod"] = [WHOLE]
    asker(yard, atomic=True, wrong=True)
    yard.set(work={"agent": "asker"})
    yard.task(1)

    yard.work()

    run = only_run(yard)
    assert yard.look(1).status is TaskStatus.DONE
    assert report(yard, run) == ["get_task", "create_subtasks", "execute_subtask", "rework", "exit"]
    evidence = [json.loads(line.partition(" ")[2]) for line in output(yard, run) if line.startswith("evidence ")]
    assert "custom_script" in evidence[0]["failing"][0]
    checked = [event for event in yard.project.events(run) if event["event"] == "verification_finished"]
    assert [event["status"] for event in checked] == ["rejected", "done"], "what is verified is not verified again"


def test_a_subtask_with_a_goal_of_its_own_is_done_when_that_holds(small_yard: Yard) -> None:
    yard = small_yard
    goal = {"type": "custom_script", "script": "grep -qx right first.txt"}
    yard.settings["dod"] = [goal]  # the same goal elsewhere makes it no less the subtask's own
    asker(yard, plan=[{"title": "first", "goals": [goal]}], wrong=True)
    yard.set(work={"agent": "asker"})
    yard.task(1)
    yard.enable_agent_commands(1)

    yard.work()

    run = only_run(yard)
    assert yard.look(1).status is TaskStatus.DONE
    assert report(yard, run)[2:] == ["start_subtask", "execute_subtask", "rework", "report_completion", "exit"]


def test_who_exits_without_a_result_has_failed_and_a_person_is_asked_in_the_end(small_yard: Yard) -> None:
    yard = small_yard
    asker(yard, silent=True)
    yard.set(work={"agent": "asker"}, attempts={"per_agent": 1, "max": 1})
    yard.task(1)

    yard.work(check=1)

    assert yard.look(1).status is TaskStatus.BLOCKED
    with yard.board() as board:
        (asked,) = board.escalations()
        (session,) = board.sessions(1)
    assert asked.kind is EscalationKind.ATTEMPTS
    assert session.outcome == "incomplete"
    assert "had never authenticated" in session.reason
    first, second = yard.project.prompts(session.run)
    assert "Where the instance before you stopped" not in first
    assert "Where the instance before you stopped" in second


def test_who_stops_in_the_middle_goes_on_where_it_stopped(small_yard: Yard) -> None:
    yard = small_yard
    asker(yard, stops_at="report_completion")
    yard.set(work={"agent": "asker"}, attempts={"per_agent": 1, "max": 1})
    yard.task(1)

    yard.work(check=1)

    run = only_run(yard)
    assert report(yard, run).count("create_subtasks") == 1
    assert report(yard, run)[-2:] == ["get_task", "report_completion"], "the plan was there already"
    with yard.board() as board:
        assert len(board.board.get(1).children) == len(PLAN)


def test_an_exit_code_does_not_undo_what_was_verified(small_yard: Yard) -> None:
    yard = small_yard
    asker(yard, atomic=True, code=3)
    yard.set(work={"agent": "asker"})
    yard.task(1)

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1"]


def test_who_is_blocked_asks_a_person_and_goes_on_with_the_answer(small_yard: Yard) -> None:
    yard = small_yard
    asker(yard, blocked_at="create_subtasks")
    yard.set(work={"agent": "asker"})
    yard.task(1)
    yard.work(check=1)

    with yard.board() as board:
        (asked,) = board.escalations()
    assert asked.kind is EscalationKind.QUESTION
    assert asked.question == "Which colour?"
    assert yard.look(1).status is TaskStatus.BLOCKED

    asker(yard, atomic=True)
    yard.project.commit("Move the agent")
    yard.genba("answer", str(asked.id), "Blue.")
    yard.work(check=None)

    assert "Blue." in yard.project.prompts(only_run(yard))[-1]


@pytest.mark.parametrize("moment", ["create_subtasks", "execute_subtask", "report_completion"])
def test_a_worker_that_is_killed_goes_on_without_a_doubled_subtask(small_yard: Yard, moment: str) -> None:
    yard = small_yard
    go = yard.project.root.parent / "go"
    yard.settings["dod"] = [GOAL]
    asker(yard, wait={moment: str(go)})
    yard.set(work={"agent": "asker"})
    yard.task(1)

    process = yard.start()
    until(Path(f"{go}.waiting").exists, 90)
    yard.kill(process)
    go.touch()
    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1"], "the agent that lived went on"
    with yard.board() as board:
        assert [board.board.get(number).title for number in board.board.get(1).children] == ["first", "second"]


def test_an_agent_whose_executor_died_asks_the_one_that_took_it_over(server_yard: Yard) -> None:
    """The other executor answers at another place, and the agent is led there."""
    yard = server_yard
    go = yard.project.root.parent / "go"
    yard.settings["dod"] = [GOAL]
    asker(yard, wait={"execute_subtask": str(go)})
    yard.set(work={"agent": "asker"})
    yard.task(1)

    process = yard.start(GENBA_EXECUTOR="one")
    until(Path(f"{go}.waiting").exists, 90)
    yard.kill(process)
    go.touch()
    yard.work(GENBA_EXECUTOR="two")

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1"], "the agent that lived went on"
    with yard.board() as board:
        assert [board.board.get(number).title for number in board.board.get(1).children] == ["first", "second"]


def test_an_agent_that_asks_cannot_plan(small_yard: Yard) -> None:
    yard = small_yard
    asker(yard)
    yard.set(work={"agent": "asker"}, decompose={"agent": "asker"}, attempts={"per_agent": 1, "max": 1})
    yard.task(1, decompose=True)

    yard.work(check=1)

    with yard.board() as board:
        (session,) = board.sessions(1)
    assert "cannot plan: that takes an agent that is asked" in session.reason
    assert not yard.started()
