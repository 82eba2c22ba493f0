"""What goes wrong beside the work itself: a fleet mends it, or says who can."""

from genba.definitions.goal_text import read_goals
from genba.domain.fleet import WaitsFor
from genba.domain.tasks import TaskStatus
from tests.fleet.yard import Yard, summary
from tests.project import GENBA, until


def test_what_a_goal_runs_cannot_approve_in_the_name_of_a_person(small_yard: Yard) -> None:
    yard = small_yard
    told = yard.project.root.parent / "told.txt"
    yard.set(sandbox={"kind": "worktree"})
    yard.agent(script=f"echo 'cd {yard.project.root}; {GENBA} approve 1 > {told} 2>&1; true' > new.sh; echo x > x.txt")
    yard.task(1, requires_review=True, reviewer_type="human")
    yard.work(check=1)
    yard.task(9, goals=tuple(read_goals(["tests_pass: sh new.sh"], "")))

    yard.work(check=1)

    assert "an agent may not" in told.read_text("utf-8")
    assert (yard.look(1).status, yard.look(9).status) == (TaskStatus.REVIEW, TaskStatus.DONE)


def test_work_until_empty_ends_when_nothing_but_a_target_in_the_way_is_left(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(merge={"retry_seconds": 0.1})
    yard.agent(script="echo mine > README.md")
    yard.task(1)
    yard.project.write("README.md", "not committed\n")

    done = yard.project.genba("work", "--until-empty", check=1)

    assert "#1 cannot land on main: main was not moved" in done.err
    assert "genba queue" in done.err
    assert yard.project.read("README.md") == "not committed\n"
    yard.project.git("checkout", "README.md")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1"]


def test_an_agent_that_once_failed_at_a_task_is_never_asked_to_review_it(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"agent": "other"}, attempts={"max": 1}, review={"agent": "worker"})
    yard.agent("worker", script="exit 1")
    yard.agent("other")
    yard.task(1, assignee="worker", requires_review=True, reviewer_type="ai")
    yard.work(check=1)
    yard.genba("task", "edit", "1", "--assignee", "other")
    yard.genba("approve", "1")

    done = summary(yard.work(check=1))

    assert yard.look(1).status is TaskStatus.REVIEW
    assert [(need["task"], need["kind"]) for need in done["needs"]] == [(1, "review")], "a person judges it"


def test_the_parts_of_a_paused_task_are_parked_with_it(small_yard: Yard) -> None:
    yard = small_yard
    gate = yard.project.root.parent / "gate"
    yard.set()
    yard.agent(script=f"until [ -f {gate} ]; do sleep 0.02; done; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt")
    yard.task(1)
    yard.task(2, parent=1)
    process = yard.start("--until-empty")
    until(lambda: yard.started() == ["2"])

    yard.genba("pause", "1")

    assert process.wait(60) == 1
    assert not yard.left_running()
    with yard.board() as board:
        (parked,) = board.sessions(2)
    assert parked.waits_for is WaitsFor.RESUME
    gate.touch()
    yard.genba("resume", "1")
    yard.work()
    assert yard.statuses() == {1: TaskStatus.DONE, 2: TaskStatus.DONE}
