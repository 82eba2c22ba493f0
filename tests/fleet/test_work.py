"""Many tasks, many workers: right order, all verified, all merged, each once."""

from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary

DEPENDENCIES = {4: (1, 2), 5: (3,), 6: (4,), 7: (4, 5), 8: (6,), 9: (7,), 10: (8, 9)}
GREEN = "! ls | grep -q broken"


def test_ten_tasks_with_dependencies_land_in_the_right_order(yard: Yard) -> None:
    yard.set(work={"workers": 4})
    yard.agent()
    for number in range(1, 11):
        yard.task(number, dependencies=DEPENDENCIES.get(number, ()))

    done = summary(yard.work("--workers", "4"))

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    assert done["done"] == done["merged"] == 10
    order = [int(line.rpartition("#")[2].rstrip(")")) for line in yard.landed() if line.startswith("Merge")]
    assert sorted(order) == list(range(1, 11))
    for number, needed in DEPENDENCIES.items():
        assert all(order.index(before) < order.index(number) for before in needed), order
    assert sorted(yard.started(), key=int) == [str(number) for number in range(1, 11)]
    assert not yard.unreachable()
    assert not yard.left_running()


def test_tasks_that_do_not_depend_on_each_other_are_worked_on_at_the_same_time(small_yard: Yard) -> None:
    yard = small_yard
    meet = yard.project.root.parent / "meet"
    meet.mkdir()
    wait = f"touch {meet}/$GENBA_ISSUE; until [ $(ls {meet} | wc -l) = 4 ]; do sleep 0.02; done"
    yard.set(work={"workers": 4})
    yard.agent(script=f"{wait}; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt")
    for number in range(1, 5):
        yard.task(number)

    yard.work("--workers", "4")

    assert set(yard.statuses().values()) == {TaskStatus.DONE}


def test_a_linear_history_has_one_commit_for_each_task_and_keeps_the_commits_of_its_branch(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(merge={"history": "linear"})
    yard.agent()
    for number in range(1, 4):
        yard.task(number)

    yard.work()

    assert not yard.project.git("rev-list", "--merges", "main")
    assert len([line for line in yard.landed() if "#" in line]) == 3
    assert not yard.unreachable()


def test_with_nothing_to_do_no_agent_is_asked(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent()

    done = summary(yard.work())

    assert done["ended"] == "empty"
    assert yard.started() == []


def test_three_processes_on_one_server_share_the_work_and_do_nothing_twice(server_yard: Yard) -> None:
    yard = server_yard
    yard.set()
    yard.agent()
    for number in range(1, 11):
        yard.task(number, dependencies=DEPENDENCIES.get(number, ()))

    processes = [yard.start("--until-empty", "--workers", "2", "--executor", f"host-{name}") for name in "abc"]
    codes = [process.wait(timeout=150) for process in processes]

    assert codes == [0, 0, 0], "\n".join(yard.log(number) for number in range(3))
    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    merged = [line for line in yard.landed() if line.startswith("Merge")]
    assert len(merged) == len(set(merged)) == 10
    assert sorted(yard.started(), key=int) == [str(number) for number in range(1, 11)]
    with yard.board() as board:
        executors = {session.executor for number in range(1, 11) for session in board.sessions(number)}
    assert len(executors) > 1
    assert not yard.unreachable()
