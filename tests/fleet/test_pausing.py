import os
import signal
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from genba.domain.fleet.records import WaitsFor
from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary
from tests.project import until


def slow(yard: Yard) -> str:
    gate = yard.project.root.parent / "gate"
    yard.agent(script=f"until [ -f {gate} ]; do sleep 0.02; done; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt")
    return str(gate)


def open_gate(gate: str) -> None:
    Path(gate).touch()


def test_a_paused_project_begins_nothing_until_it_is_resumed(yard: Yard) -> None:
    yard.set()
    yard.agent()
    yard.task(1)
    yard.genba("pause")

    done = summary(yard.work(check=1))

    assert yard.started() == []
    assert "genba resume" in str(done)
    yard.genba("resume")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE


def test_a_paused_task_is_left_alone_and_the_others_go_on(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent()
    yard.task(1)
    yard.task(2)
    yard.genba("pause", "1")

    yard.work(check=1)

    assert yard.statuses() == {1: TaskStatus.OPEN, 2: TaskStatus.DONE}
    yard.genba("resume", "1")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["2", "1"]


def test_a_task_that_is_stopped_under_way_is_suspended_and_goes_on_in_its_session(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    gate = slow(yard)
    yard.task(1)
    process = yard.start("--until-empty")
    until(lambda: yard.started() == ["1"])

    yard.genba("stop", "1", "--reason", "It can wait.")

    assert process.wait(60) == 1
    assert not yard.left_running(), "its agent was ended"
    with yard.board() as board:
        (suspended,) = board.sessions(1)
    assert suspended.waits_for is WaitsFor.RESUME
    assert "It can wait." in yard.genba("decisions").out
    open_gate(gate)
    yard.genba("resume", "1")
    yard.work()
    with yard.board() as board:
        (same,) = board.sessions(1)
    assert yard.look(1).status is TaskStatus.DONE
    assert same.run == suspended.run


def test_a_stopped_project_ends_every_worker_and_is_refused_until_it_is_resumed(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    gate = slow(yard)
    yard.task(1)
    process = yard.start()
    until(lambda: yard.started() == ["1"])

    yard.genba("stop")

    assert process.wait(60) == 0
    assert not yard.left_running()
    refused = yard.work(check=5)
    assert "genba resume" in refused.err
    open_gate(gate)
    yard.genba("resume")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE
    assert not yard.unreachable()


def test_ctrl_c_suspend_what_runs_and_work_goes_on_with_it(yard: Yard) -> None:
    yard.set(work={"workers": 2})
    gate = slow(yard)
    yard.task(1)
    yard.task(2)
    process = yard.start("--until-empty")
    until(lambda: sorted(yard.started()) == ["1", "2"])

    os.kill(process.pid, signal.SIGINT)

    assert process.wait(60) == 1
    assert "genba work goes on" in yard.log()
    assert "Traceback" not in yard.log()
    assert not yard.left_running()
    open_gate(gate)
    yard.work()
    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    with yard.board() as board:
        assert [len(board.sessions(number)) for number in (1, 2)] == [1, 1], "the same sessions went on"
    assert not yard.unreachable()


def test_a_second_ctrl_c_cuts_nothing_off(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    gate = slow(yard)
    yard.task(1)
    process = yard.start("--until-empty")
    until(lambda: yard.started() == ["1"])

    os.kill(process.pid, signal.SIGINT)
    until(lambda: "suspending" in yard.log())
    if process.poll() is None:
        os.kill(process.pid, signal.SIGINT)

    assert process.wait(60) == 1
    assert "Traceback" not in yard.log()
    assert not yard.left_running()
    open_gate(gate)
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE


def test_with_everything_waiting_for_people_no_agent_is_started(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(attempts={"max": 1, "per_agent": 1}, work={"poll_seconds": 0.02})
    yard.agent(script="exit 1")
    yard.settings["dod"] = [{"custom_script": "false"}]
    yard.set()
    yard.task(1)
    yard.task(2, requires_review=True, dependencies=(1,))
    yard.work(check=1)
    begun = yard.started()
    process = yard.start()

    until(lambda: "nothing can go on" in yard.log())
    with pytest.raises(TimeoutExpired):
        process.wait(3)

    assert yard.started() == begun
    assert len(yard.genba("sessions", "--all", "--json").json) == 1, "no run but the first was ever begun"
