"""Work that does not fit what has landed meanwhile: it comes back to its author, and never lands broken."""

import signal
from pathlib import Path

from genba.domain.fleet.records import EscalationKind
from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary
from tests.project import until

RESOLVES = (
    "if grep -q '<<<<<<<' shared.txt; then printf 'both\\n' > shared.txt; else echo $GENBA_ISSUE > shared.txt; fi"
)
LEAVES_MARKERS = "if grep -q '<<<<<<<' shared.txt; then echo kept > other.txt; else echo $GENBA_ISSUE > shared.txt; fi"


def meeting(yard: Yard, number: int = 2) -> str:
    """A line of shell that comes back when so many agents are there."""
    place = yard.project.root.parent / "meeting"
    place.mkdir(exist_ok=True)
    return f"touch {place}/$GENBA_ISSUE; until [ $(ls {place} | wc -l) -ge {number} ]; do sleep 0.02; done"


def conflicting(yard: Yard, script: str) -> None:
    """Two tasks that write the same file, begun at the same base."""
    yard.project.write("shared.txt", "begin\n")
    yard.agent(script=f"{meeting(yard)}; {script}")
    yard.task(1)
    yard.task(2)


def runs_of(yard: Yard, number: int) -> list[str]:
    with yard.board() as board:
        return [session.run for session in board.sessions(number)]


def came_back(yard: Yard) -> int:
    """The task whose work came back from the merge queue."""
    with yard.board() as board:
        return next(number for number in (1, 2) if any(one.rounds for one in board.sessions(number)))


def test_the_second_of_two_conflicting_tasks_comes_back_with_the_paths_and_lands_resolved(yard: Yard) -> None:
    yard.set(work={"workers": 2})
    conflicting(yard, RESOLVES)

    worked = yard.work()

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    assert summary(worked)["merged"] == 2
    assert "nothing can go on" not in worked.err, "whoever waits to land waits for nobody"
    assert yard.project.git("show", "main:shared.txt") == "both"
    late = came_back(yard)
    assert len(runs_of(yard, late)) == 1, "the same session went on"
    result = yard.project.prompts(runs_of(yard, late)[0])[-1]
    assert "conflicts with main in shared.txt" in result
    assert yard.started().count(str(late)) == 2
    assert not yard.unreachable()
    assert not yard.left_running()


def test_work_with_markers_left_in_it_never_lands(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"workers": 2}, attempts={"max": 2, "per_agent": 2})
    conflicting(yard, LEAVES_MARKERS)

    yard.work(check=1)

    statuses = yard.statuses()
    late = came_back(yard)
    assert sorted(statuses.values()) == [TaskStatus.BLOCKED, TaskStatus.DONE]
    assert statuses[late] is TaskStatus.BLOCKED
    assert "<<<<<<<" not in yard.project.git("show", "main:shared.txt")
    shown = yard.genba("decisions", "show", str(late)).out
    assert "the markers of the conflict are still in shared.txt" in shown
    branch = yard.project.git("for-each-ref", "--format=%(refname:short)", f"refs/heads/genba/{late}-*")
    assert "<<<<<<<" in yard.project.git("show", f"{branch}:shared.txt"), "the work is kept as it is"


def test_after_the_rounds_a_person_is_asked_and_gives_one_more(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"workers": 2}, merge={"rounds": 0})
    conflicting(yard, RESOLVES)

    yard.work(check=1)

    with yard.board() as board:
        (asked,) = board.escalations()
    assert asked.kind is EscalationKind.CONFLICT
    assert asked.evidence["paths"] == ["shared.txt"]
    listed = yard.genba("decisions").out
    assert "conflicts with main in shared.txt" in listed
    assert f"genba decisions show {asked.task}" in listed
    shown = yard.genba("decisions", "show", str(asked.task)).out
    assert f"genba approve {asked.task}" in shown
    assert f"genba answer {asked.task}" in shown
    yard.genba("answer", str(asked.task), "Both lines are wanted.")
    yard.work()

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    assert yard.project.git("show", "main:shared.txt") == "both"
    assert "Both lines are wanted." in yard.project.prompts(asked.run)[-1]
    assert runs_of(yard, asked.task) == [asked.run]


def test_a_conflict_that_a_person_rejects_stays_on_its_branch(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"workers": 2}, merge={"rounds": 0})
    conflicting(yard, RESOLVES)
    yard.work(check=1)
    with yard.board() as board:
        (asked,) = board.escalations()

    yard.genba("reject", str(asked.task), "--reason", "It is not wanted any more.")
    begun = len(yard.started())
    yard.work(check=None)

    assert yard.statuses()[asked.task] is TaskStatus.BLOCKED
    assert len(yard.started()) == begun
    assert not yard.unreachable()
    yard.genba("task", "unblock", str(asked.task))
    yard.genba("task", "edit", str(asked.task), "--body", "Both lines are wanted.")
    yard.set(merge={"rounds": 1})
    yard.work()
    assert yard.statuses()[asked.task] is TaskStatus.DONE
    assert yard.project.git("show", "main:shared.txt") == "both"


TOGETHER = "! { [ -f one.txt ] && [ -f two.txt ] && [ ! -f both.txt ]; }"


def test_work_that_passes_alone_and_fails_together_is_fixed_and_main_passes_at_every_commit(yard: Yard) -> None:
    yard.settings["dod"] = [{"custom_script": TOGETHER}]
    yard.set(work={"workers": 2})
    own = "case $GENBA_ISSUE in 1) touch one.txt;; *) touch two.txt;; esac"
    yard.agent(
        script=f"{meeting(yard)}; if [ -f one.txt ] && [ -f two.txt ]; then touch both.txt; else {own}; fi",
    )
    yard.task(1)
    yard.task(2)

    yard.work()

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    assert {"one.txt", "two.txt", "both.txt"} <= set(yard.files())
    for commit in yard.project.git("rev-list", "--first-parent", "main").split():
        files = set(yard.files(commit))
        assert not {"one.txt", "two.txt"} <= files or "both.txt" in files, commit
    late = came_back(yard)
    result = yard.project.prompts(runs_of(yard, late)[0])[-1]
    assert "fails together with what main has now" in result
    assert "both.txt" in result, "the failing goal is named"


def held_up(yard: Yard) -> Path:
    """An agent that works until its gate is opened, and a task for it."""
    gate = yard.project.root.parent / "gate"
    yard.agent(script=f"until [ -f {gate} ]; do sleep 0.02; done; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt")
    yard.task(1)
    return gate


def test_a_target_that_a_person_moves_meanwhile_is_landed_on(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    gate = held_up(yard)
    process = yard.start("--until-empty")
    until(lambda: yard.started() == ["1"])

    yard.project.write("mine.txt", "by hand\n")
    mine = yard.project.commit("By hand")
    gate.touch()

    assert process.wait(60) == 0
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.landed()[-2:] == ["By hand", "Merge Task 1 (#1)"]
    assert mine in yard.project.git("rev-list", "main").split()
    assert (yard.project.root / "task-1.txt").is_file(), "a clean checkout is brought along"
    assert not yard.project.git("status", "--porcelain")


def test_a_checkout_with_changes_in_the_way_is_left_alone_until_it_is_clean(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(merge={"retry_seconds": 0.2})
    gate = held_up(yard)
    process = yard.start()
    until(lambda: yard.started() == ["1"])

    yard.project.write("task-1.txt", "my own\n")
    gate.touch()
    until(lambda: "stuck" in yard.log())

    queue = yard.genba("queue").out
    assert "main was not moved" in queue
    assert "task-1.txt" in yard.log(), "the log says which file is in the way"
    assert yard.project.read("task-1.txt") == "my own\n", "what is not committed is never touched"
    assert process.poll() is None
    (yard.project.root / "task-1.txt").unlink()

    until(lambda: yard.look(1).status is TaskStatus.DONE)
    yard.kill(process, signal.SIGTERM)
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.project.read("task-1.txt") == "1\n"
    assert yard.started() == ["1"], "nobody was asked again"


def test_what_cannot_land_is_verified_and_written_down_once_however_often_it_is_tried(small_yard: Yard) -> None:
    yard = small_yard
    yard.agent()
    yard.project.write("checks.sh", f"echo checked >> {yard.project.root.parent}/checks.txt\n")
    yard.settings["dod"] = [{"custom_script": "sh checks.sh"}]
    yard.set(merge={"retry_seconds": 0.05})
    yard.task(1)
    yard.project.write("task-1.txt", "my own\n")
    process = yard.start("--plain")
    until(lambda: "stuck" in yard.log())
    seen: set[str] = set()

    def tried_often() -> bool:
        seen.add(finished_at(yard))
        return len(seen) > 5

    until(tried_often)

    with yard.board() as board:
        lines = [each.data["commit"] for each in board.board.events(1) if each.kind == "verified"]
    assert len(lines) == 2, "its branch, and what would land"
    assert (yard.project.root.parent / "checks.txt").read_text("utf-8").split() == ["checked"] * 2
    (yard.project.root / "task-1.txt").unlink()
    until(lambda: yard.look(1).status is TaskStatus.DONE)
    yard.kill(process, signal.SIGTERM)


def finished_at(yard: Yard) -> str:
    """When the one entry of the merge queue was given back last."""
    with yard.board() as board:
        return str(next(iter(board.entries())).finished_at)
