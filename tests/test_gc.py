"""`genba gc`: what ended tasks left goes after a time, and no commit becomes unreachable."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from genba.connections.git.repository.locks import FileLock
from genba.domain.tasks.task import StatusChange, TaskStatus
from tests.fleet.yard import Yard
from tests.project import GENBA, TESTER, Project, ordinary_environment, until

COMMIT = "echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt; git add -A; git commit -qm work"
OLD = 40 * 24 * 3600


def reachable(project: Project) -> set[str]:
    return set(project.git("rev-list", "--all").splitlines())


def refs(project: Project, *below: str) -> list[str]:
    return project.git("for-each-ref", "--format=%(refname)", *below).splitlines()


def own(project: Project, name: str) -> list[Path]:
    return sorted((project.root / ".git" / "genba" / name).glob("*"))


def cancel(project: Project, number: int) -> None:
    with project.board() as board:
        board.change_status(number, StatusChange(to=TaskStatus.CANCELLED, actor=TESTER))


def unfinished(project: Project, number: int, do: str = COMMIT, recorded: bool = True) -> None:
    """A task on which an agent left work that has not landed, and which the blackboard knows of or not."""
    project.issue(number, f"Task {number}")
    script = {"turns": [{"do": [{"run": do}], "reply": "not yet"}], "repeat": True}
    done = {"type": "keywordSignal", "config": {"completionKeyword": "DONE"}}
    project.agent(
        f"worker{number}",
        script=script,
        completion=done,
        parameters={"issue": {"type": "number"}},
        limits={"maxIterations": 1},
        integrations={"github": {"enabled": recorded}},
    )
    project.genba("run", f"worker{number}", "--issue", str(number), check=6)


def gc(project: Project, *words: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What went, and what stays."""
    found = project.genba("gc", "--json", *words, check=0).json["collected"]
    return [each for each in found if not each["kept"]], [each for each in found if each["kept"]]


@pytest.fixture
def worked(project: Project) -> Yard:
    """Three tasks that a fleet has landed."""
    yard = Yard(project)
    yard.set(merge={"history": "linear"})
    yard.agent()
    for number in range(1, 4):
        yard.task(number)
    yard.work()
    return yard


def test_what_ended_tasks_left_goes_and_no_commit_becomes_unreachable(worked: Yard) -> None:
    project = worked.project
    before = reachable(project)
    assert len(own(project, "runs")) == 3
    journals = [Path((folder / "journal").read_text()) for folder in own(project, "runs")]

    looked, _ = gc(project, "--dry-run", "--keep-days", "0")
    assert len(own(project, "runs")) == 3, "a look changes nothing"
    gone, _ = gc(project, "--keep-days", "0")

    assert [each["kind"] for each in gone if each["kind"] == "run"] == ["run"] * 3
    assert [(each["kind"], each["name"]) for each in gone] == [(each["kind"], each["name"]) for each in looked]
    assert own(project, "runs") == []
    assert not any(journal.exists() for journal in journals)
    assert all(each["size"] > 0 for each in gone if each["kind"] == "run")
    assert before <= reachable(project)
    assert worked.unreachable() == []
    assert gc(project, "--keep-days", "0")[0] == []


def test_what_is_younger_is_kept(worked: Yard) -> None:
    project = worked.project

    done = project.genba("gc", check=0)

    assert "nothing to clear away" in done.err
    assert len(own(project, "runs")) == 3


def test_work_that_has_not_landed_stays_on_its_branch_and_its_tree_goes(project: Project) -> None:
    unfinished(project, 1, f"{COMMIT}; echo loose > loose.txt")
    cancel(project, 1)
    before, tree = reachable(project), next((project.root / ".worktrees").iterdir())
    branch = next(name for name in refs(project, "refs/heads") if "/genba/" in name)

    gone, kept = gc(project, "--keep-days", "0")

    assert not tree.exists()
    assert branch in refs(project)
    assert before < reachable(project), "what was not committed is kept under a rescue ref"
    rescued = refs(project, "refs/genba/rescue")
    assert [project.git("show", f"{name}:loose.txt") for name in rescued] == ["loose"]
    stays = {each["name"]: each["why"] for each in kept}
    assert stays[branch.removeprefix("refs/heads/")] == "nothing else has its commits"
    assert {each["kind"] for each in gone} == {"working tree", "run"}


@pytest.mark.parametrize("recorded", [True, False])
def test_a_branch_goes_as_soon_as_another_has_its_commits(project: Project, recorded: bool) -> None:
    unfinished(project, 1, recorded=recorded)
    cancel(project, 1)
    project.genba("gc", "--keep-days", "0", check=0)
    branch = next(name for name in refs(project, "refs/heads") if "/genba/" in name)
    project.git("tag", "kept", branch)

    done = project.genba("gc", "--keep-days", "0", check=0)

    assert "kept has its commits" in done.out
    assert branch not in refs(project)
    assert own(project, "runs") == []


def test_tasks_that_have_not_ended_keep_everything(project: Project) -> None:
    unfinished(project, 1)
    before = refs(project)

    gone, kept = gc(project, "--keep-days", "0")

    assert (gone, kept) == ([], [])
    assert refs(project) == before
    assert len(own(project, "runs")) == 1
    assert len(list((project.root / ".worktrees").iterdir())) == 1


def test_what_genba_did_not_make_stays(project: Project) -> None:
    unfinished(project, 1)
    cancel(project, 1)
    project.git("branch", "genba/99-of-mine", "main")
    project.git("update-ref", "refs/genba/notes/mine", "main")
    project.git("worktree", "add", "-q", str(project.root.parent / "mine"), "-b", "mine")
    (project.root / ".worktrees" / "mine").mkdir()

    project.genba("gc", "--keep-days", "0", check=0)

    assert {"refs/heads/genba/99-of-mine", "refs/heads/mine", "refs/genba/notes/mine"} <= set(refs(project))
    assert (project.root.parent / "mine" / "README.md").exists()
    assert (project.root / ".worktrees" / "mine").is_dir()


def test_a_branch_that_is_checked_out_by_the_user_stays(project: Project) -> None:
    unfinished(project, 1)
    cancel(project, 1)
    project.genba("gc", "--keep-days", "0", check=0)
    branch = next(name for name in refs(project, "refs/heads") if "/genba/" in name).removeprefix("refs/heads/")
    project.git("tag", "kept", branch)
    project.git("switch", "-q", branch)

    _, kept = gc(project, "--keep-days", "0")

    assert [(each["name"], each["why"]) for each in kept] == [(branch, f"it is checked out at {project.root}")]
    assert f"refs/heads/{branch}" in refs(project)


def test_a_tree_that_a_run_holds_stays(project: Project) -> None:
    unfinished(project, 1)
    cancel(project, 1)
    branch = next(name for name in refs(project, "refs/heads") if "/genba/" in name).removeprefix("refs/heads/")
    lock = project.root / ".git" / "genba" / "locks" / "branches" / branch.replace("/", "%2F")
    assert lock.is_file()
    taken = FileLock(lock)
    assert taken.try_acquire("worker1")

    _, kept = gc(project, "--keep-days", "0")
    taken.release()

    assert [each["why"] for each in kept if each["kind"] == "working tree"] == [f"a run holds {branch}"]
    assert len(list((project.root / ".worktrees").iterdir())) == 1


def test_rescued_work_is_deleted_only_when_it_is_old_and_on_request(project: Project) -> None:
    project.agent()
    made = {"GIT_COMMITTER_DATE": f"@{int(time.time()) - OLD} +0000"}
    old = subprocess.run(
        ["git", "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Uncommitted work"],
        cwd=project.root, env={**os.environ, **made}, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    young = project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Uncommitted work, today")
    project.git("update-ref", "refs/genba/rescue/old-run", old)
    project.git("update-ref", "refs/genba/rescue/young-run", young)
    project.git("update-ref", "refs/genba/rescue/landed-run", "HEAD~1")

    assert [each["name"] for each in gc(project)[1]] == ["refs/genba/rescue/old-run"]
    assert len(refs(project, "refs/genba/rescue")) == 3

    assert [each["name"] for each in gc(project, "--rescued")[0]] == ["refs/genba/rescue/old-run"]
    assert refs(project, "refs/genba/rescue") == ["refs/genba/rescue/landed-run", "refs/genba/rescue/young-run"]


def test_two_at_once_and_one_killed_in_the_middle_leave_nothing_half_done(worked: Yard) -> None:
    project = worked.project
    for number in range(4, 8):
        unfinished(project, number, f"{COMMIT}; echo loose > loose.txt")
        cancel(project, number)
    before = reachable(project)
    environment = {**ordinary_environment(), **project.environment}
    words = [str(GENBA), "gc", "--keep-days", "0"]
    for patience in (0.25, 0.4, 0.55, 0.7):
        cut = subprocess.Popen(words, cwd=project.root, env=environment, stdout=subprocess.DEVNULL)
        try:
            cut.wait(patience)
        except subprocess.TimeoutExpired:
            cut.send_signal(signal.SIGKILL)
            cut.wait()

    both = [subprocess.Popen(words, cwd=project.root, env=environment, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]

    assert before <= reachable(project)
    assert own(project, "runs") == []
    assert list((project.root / ".worktrees").iterdir()) == []
    loose = [project.git("show", f"{name}:loose.txt") for name in refs(project, "refs/genba/rescue")]
    assert loose.count("loose") >= 4
    assert project.git("fsck", "--no-dangling") == ""


def test_logs_of_goals_go_when_they_are_old(project: Project) -> None:
    goals = project.root / ".git" / "genba" / "goals"
    goals.mkdir(parents=True)
    for name, age in (("0123456789ab.log", OLD), ("ba9876543210.log", 0)):
        (goals / name).write_text("seen\n")
        os.utime(goals / name, (time.time() - age, time.time() - age))

    project.genba("gc", check=0)

    assert [path.name for path in goals.iterdir()] == ["ba9876543210.log"]


@pytest.mark.parametrize("words", [(), ("--rescued",), ("--dry-run",)])
def test_an_agent_may_clear_nothing_away(worked: Yard, words: tuple[str, ...]) -> None:
    project = worked.project
    before = own(project, "runs"), refs(project)

    done = project.genba("gc", "--keep-days", "0", *words, check=5, GENBA_RUN="worker-1")

    assert "an agent may not clear anything away" in done.err
    assert done.out == ""
    assert (own(project, "runs"), refs(project)) == before
    assert len(gc(project, "--keep-days", "0")[0]) >= 3, "a person clears it away"


def test_what_the_engine_remembers_of_ended_tasks_goes_without_a_fleet(worked: Yard) -> None:
    def remembered() -> int:
        with contextlib.closing(sqlite3.connect(worked.project.root / ".genba" / "genba.db")) as database:
            return int(database.execute("SELECT count(*) FROM workflow_status").fetchone()[0])

    before = remembered()
    assert before > 3
    looked = [each["name"] for each in gc(worked.project, "--dry-run", "--keep-days", "0")[0]]
    assert remembered() == before
    gone = [each["name"] for each in gc(worked.project, "--keep-days", "0")[0]]

    assert f"{before} durable runs" in gone
    assert f"{before} durable runs" in looked
    assert remembered() == 0
    worked.task(4)
    worked.work()
    assert worked.look(4).status is TaskStatus.DONE


def failed_alone(project: Project, do: str) -> tuple[str, Path]:
    """A session without a task that failed: its id, and its worktree."""
    conditions = {"completionConditions": [{"validator": "git-clean"}], "onFailure": {"action": "abort"}}
    project.agent(
        completion={"type": "stepMachine"},
        script={"turns": [{"do": [{"run": do}], "reply": "not yet"}], "repeat": True},
        steps={"work": {"stepKind": "closure", **conditions}},
    )
    result = project.run("worker", check=1)
    assert result["outcome"] == "aborted"
    return result["run"], Path(result["workdir"])


def test_a_failed_session_without_a_task_is_listed_and_stays_for_its_time(project: Project) -> None:
    run, tree = failed_alone(project, "echo unsaved > left.txt")
    gone, kept = gc(project)
    assert gone == []
    assert [(each["kind"], each["name"]) for each in kept] == [("working tree", str(tree))]
    assert f"genba run --resume {run}" in kept[0]["why"]
    assert (tree / "left.txt").is_file()


def test_the_worktree_of_a_failed_session_without_a_task_goes_and_its_work_is_rescued(project: Project) -> None:
    run, tree = failed_alone(project, "git commit -q --allow-empty -m kept; echo unsaved > left.txt")
    before = reachable(project)
    gone, _ = gc(project, "--keep-days", "0", "--dry-run")
    assert tree.is_dir(), "a dry run removes nothing"
    assert ("working tree", str(tree)) in [(each["kind"], each["name"]) for each in gone]
    gc(project, "--keep-days", "0")
    assert not tree.exists()
    assert before <= reachable(project)
    rescued = refs(project, f"refs/genba/rescue/{run}*")
    assert [project.git("show", f"{ref}:left.txt") for ref in rescued] == ["unsaved"]
    assert gc(project, "--keep-days", "0")[0] == [], "there is nothing left to clear away"


def test_a_session_without_a_task_that_runs_is_left_alone(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"run": "touch ../started; exec sleep 600"}], "reply": "x"}]})
    running = subprocess.Popen(
        [str(GENBA), "run", "worker"], cwd=project.root, env=ordinary_environment(), start_new_session=True
    )
    try:
        until(lambda: list((project.root / ".worktrees").glob("started")))
        assert gc(project, "--keep-days", "0")[0] == []
        assert [path for path in (project.root / ".worktrees").iterdir() if path.is_dir()]
    finally:
        running.kill()
        running.wait()
    gone, _ = gc(project, "--keep-days", "0")
    assert [each["kind"] for each in gone if each["kind"] == "working tree"] == ["working tree"], "its process is gone"
