import signal
import subprocess

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.fleet.chaos import SOON, Chaos, end, on_both
from tests.fleet.yard import Yard
from tests.project import until

AGAIN = {"agent", "supervisor"}
"""With one of these the answer is gone, and the question is put once more."""


def at_work(yard: Yard, tasks: int = 1) -> tuple[Chaos, "subprocess.Popen[bytes]"]:
    """A fleet whose agents have all begun, and wait for a word."""
    home = yard.project.root.parent
    chaos = Chaos(yard, tasks, line=f"until [ -e {home}/go ]; do sleep 0.02; done")
    worker = yard.start("--until-empty", "--workers", str(tasks))
    until(lambda: len(yard.started()) == tasks and len(chaos.supervisors()) == tasks, SOON)
    return chaos, worker


def kill(chaos: Chaos, worker: "subprocess.Popen[bytes]", victim: str) -> None:
    found = {
        "worker": lambda: [worker.pid],
        "agent": chaos.agents,
        "supervisor": chaos.supervisors,
        "nursery": chaos.nurseries,
    }[victim]()
    assert found, f"there is no {victim}"
    for process in found:
        end(process)
    if victim == "worker":
        assert worker.wait(SOON) == -signal.SIGKILL


VICTIMS = [
    ("worker",),
    ("agent",),
    ("supervisor",),
    ("nursery",),
    ("worker", "nursery"),
    ("nursery", "worker"),
    ("worker", "agent"),
    ("worker", "supervisor"),
    ("supervisor", "worker"),
    ("nursery", "supervisor"),
    ("worker", "nursery", "supervisor"),
]


@pytest.mark.parametrize(
    ("yard", "victims"),
    on_both(VICTIMS),
    indirect=["yard"],
    ids=lambda found: found if isinstance(found, str) else "+".join(found),
)
def test_a_death_around_an_agent_neither_loses_nor_doubles_it(yard: Yard, victims: tuple[str, ...]) -> None:
    chaos, worker = at_work(yard)

    for victim in victims:
        kill(chaos, worker, victim)

    (yard.project.root.parent / "go").touch()
    if "worker" in victims:
        chaos.check_sane()
        yard.work()
    else:
        assert worker.wait(120) == 0, yard.log()
    chaos.check_done(starts=2 if AGAIN & set(victims) else 1)


def test_agents_that_answer_while_no_worker_runs_are_read_by_the_next_one(yard: Yard) -> None:
    chaos, worker = at_work(yard, tasks=2)
    assert yard.genba("sessions").out.count("◐ running") == 2
    kill(chaos, worker, "worker")
    result = yard.genba("sessions")
    assert result.out.count("■ suspended") == 2, result.out
    assert "hint: genba work   continues stopped sessions" in result.err

    (yard.project.root.parent / "go").touch()
    until(lambda: not chaos.supervisors(), SOON)

    yard.work()
    chaos.check_done(starts=1)


def test_the_sessions_of_one_who_is_killed_for_good_go_on_with_the_others(server_yard: Yard) -> None:
    yard = server_yard
    home = yard.project.root.parent
    chaos = Chaos(yard, 6, line=f"until [ -e {home}/go ]; do sleep 0.02; done")
    workers = [yard.start("--until-empty", "--workers", "2", "--executor", f"host-{name}") for name in "abc"]
    until(lambda: len(yard.started()) == 6, SOON)
    with yard.board() as board:
        lost = [
            session.run for number in chaos.tasks for session in board.sessions(number) if session.executor == "host-a"
        ]

    kill(chaos, workers[0], "worker")
    (home / "go").touch()
    codes = [worker.wait(150) for worker in workers[1:]]

    assert codes == [0, 0], yard.log(1) + yard.log(2)
    chaos.check_done(starts=1)
    with yard.board() as board:
        took = {board.session(run).executor for run in lost}
    assert len(lost) == 2
    assert took <= {"host-b", "host-c"}
    assert set(yard.statuses().values()) == {TaskStatus.DONE}
