import signal
import subprocess

from genba.definitions.project.goal_text import read_goals
from genba.domain.fleet.records import Executor, WaitsFor
from genba.domain.sessions.session import SessionStart
from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary
from tests.project import GENBA, ordinary_environment, until


def executors(yard: Yard) -> tuple[Executor, ...]:
    with yard.board() as board:
        return board.executors()


def test_what_a_goal_runs_cannot_approve_in_the_name_of_a_person(small_yard: Yard) -> None:
    yard = small_yard
    result = yard.project.root.parent / "told.txt"
    yard.set(sandbox={"kind": "worktree"})
    yard.agent(
        script=f"echo 'cd {yard.project.root}; {GENBA} approve 1 > {result} 2>&1; true' > new.sh; echo x > x.txt"
    )
    yard.task(1, requires_review=True, reviewer_type="human")
    yard.work(check=1)
    yard.task(9, goals=tuple(read_goals(["tests_pass: sh new.sh"], "")))

    yard.work(check=1)

    assert "an agent may not" in result.read_text("utf-8")
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


def test_the_parts_of_a_paused_task_are_suspended_with_it(small_yard: Yard) -> None:
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
        (suspended,) = board.sessions(2)
    assert suspended.waits_for is WaitsFor.RESUME
    gate.touch()
    yard.genba("resume", "1")
    yard.work()
    assert yard.statuses() == {1: TaskStatus.DONE, 2: TaskStatus.DONE}


def test_work_that_landed_and_cannot_be_pushed_is_pushed_when_that_is_possible(small_yard: Yard) -> None:
    yard = small_yard
    remote = yard.project.root.parent / "remote.git"
    yard.project.git("remote", "add", "origin", str(remote))
    yard.set()
    yard.agent(execution={"finalize": {"push": True}})
    yard.task(1)
    yard.task(2, dependencies=(1,))

    done = summary(yard.work(check=1))

    assert [(need["task"], need["command"]) for need in done["needs"]] == [(1, "genba decisions show 1")]
    with yard.board() as board:
        (session,) = board.sessions(1)
        (asked,) = board.escalations()
    assert session.waits_for is WaitsFor.MERGE
    assert asked.question.startswith(f"The work is on main as {yard.project.git('rev-parse', 'main')[:7]}")
    yard.project.git("init", "-q", "--bare", str(remote))
    yard.genba("approve", "1")
    yard.work()
    assert yard.statuses() == {1: TaskStatus.DONE, 2: TaskStatus.DONE}
    assert yard.started() == ["1", "2"]
    assert yard.project.git("ls-remote", "origin", "main").split()[0] == yard.project.git("rev-parse", "main")


def test_landed_work_that_is_not_pushed_is_done_when_a_person_says_so(small_yard: Yard) -> None:
    yard = small_yard
    yard.project.git("remote", "add", "origin", str(yard.project.root.parent / "nowhere.git"))
    yard.set(attempts={"backoff_seconds": 0.2, "max": 2})
    yard.agent(execution={"finalize": {"push": True}})
    yard.task(1)
    yard.work(check=1)
    with yard.board() as board:
        (session,) = board.sessions(1)
    assert session.part > 2, "it was tried more than once"

    yard.genba("reject", "1", "--reason", "There is no such remote.")
    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    with yard.board() as board:
        (session,) = board.sessions(1)
    assert (session.status, session.outcome) == ("ended", "completed")


def test_work_whose_branch_was_deleted_in_the_queue_is_done_again(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(merge={"retry_seconds": 0.1})
    yard.agent(script="echo mine > README.md")
    yard.task(1)
    yard.project.write("README.md", "not committed\n")
    yard.work(check=1)
    with yard.board() as board:
        (first,) = board.sessions(1)
    trees = [
        line[9:] for line in yard.project.git("worktree", "list", "--porcelain").splitlines() if line[:9] == "worktree "
    ]
    for tree in trees[1:]:
        yard.project.git("worktree", "remove", "--force", tree)
    yard.project.git("branch", "-D", first.branch)
    yard.project.git("checkout", "README.md")

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    with yard.board() as board:
        outcomes = [session.outcome for session in board.sessions(1)]
    assert outcomes == ["failed", "completed"]
    assert yard.project.read("README.md") == "mine\n"


def test_a_run_without_the_fleet_that_was_killed_gives_its_task_back(small_yard: Yard) -> None:
    yard = small_yard
    gate = yard.project.root.parent / "gate"
    yard.set()
    script = f"until [ -f {gate} ]; do sleep 0.02; done; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt"
    yard.agent(script=script, integrations={"github": {"enabled": True}})
    yard.task(1)
    plain = subprocess.Popen(
        [str(GENBA), "run", "worker", "--issue", "1"],
        cwd=yard.project.root,
        env={**ordinary_environment(), **yard.project.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: yard.started() == ["1"])
        fleet = yard.start()
        until(lambda: any(one.status == "live" for one in executors(yard)))
        with yard.board() as board:
            assert [session.status for session in board.sessions(1)] == ["running"], "whoever lives is left alone"
    finally:
        plain.kill()
        plain.wait()
    gate.touch()
    until(lambda: yard.look(1).status is TaskStatus.DONE)
    yard.kill(fleet, signal.SIGTERM)
    with yard.board() as board:
        first, second = board.sessions(1)
    assert (first.outcome, first.reason) == ("failed", "its process died")
    assert second.outcome == "completed"


def test_a_run_without_the_fleet_on_another_host_is_left_alone_and_reported(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent()
    yard.task(1)
    start = SessionStart(run="worker-far", agent="worker", branch="genba/1-x", base="b", workdir="/", host="far-away")
    with yard.board() as board:
        board.board.begin_session(1, start)
    fleet = yard.start()

    until(lambda: "genba run --resume worker-far" in yard.log())

    yard.kill(fleet, signal.SIGTERM)
    assert yard.look(1).status is TaskStatus.IN_PROGRESS
    assert yard.started() == []


def test_a_question_of_any_length_is_asked_in_a_page(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    turns = {"turns": [{"reply": {"status": "blocked", "question": "which one? " * 10_000}}], "repeat": True}
    yard.project.agent("worker", script=turns, parameters={"issue": {"type": "number"}})
    yard.task(1)

    yard.work(check=1)

    with yard.board() as board:
        (asked,) = board.escalations()
        (session,) = board.sessions(1)
        lines = [str(event.data) for event in board.board.events(1)]
    blocker = yard.look(1).blocker
    assert blocker is not None
    for text in (asked.question, session.reason, blocker.reason, *lines):
        assert len(text) < 10_000
    assert asked.question.startswith("which one? which one?")
    assert "(106039 characters are left out)" in asked.question
