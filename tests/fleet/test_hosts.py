"""Hosts that share a database and a git remote, and nothing else: what one leaves, another goes on with."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.blackboard.conftest import Postgres
from tests.coordination.queue_floor import clone
from tests.coordination.waiting import until
from tests.fleet.yard import Yard
from tests.project import Project


@pytest.fixture
def hosts(postgres: Postgres, project: Project, tmp_path: Path) -> Iterator[tuple[Yard, Yard, Path]]:
    """Two clones of one bare repository. The folder has the same name on both, and so has the project."""
    yard = Yard(project, postgres.database())
    yard.set(work={"workers": 2, "grace_seconds": 1}, merge={"remote": "origin"})
    yard.agent()
    remote = tmp_path / "shared.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(project.root), str(remote)], check=True)
    made = [clone(project, remote, tmp_path / name / "repository") for name in "ab"]
    with Yard(made[0], yard.address) as a, Yard(made[1], yard.address) as b:
        yield a, b, remote


def _main(remote: Path) -> list[str]:
    words = ["git", "--git-dir", str(remote), "ls-tree", "-r", "--name-only", "main"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()


def _refs(remote: Path) -> str:
    words = ["git", "--git-dir", str(remote), "for-each-ref", "--format=%(refname)", "refs/genba"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_a_host_begins_with_what_another_host_has_landed(hosts: tuple[Yard, Yard, Path]) -> None:
    a, b, remote = hosts
    a.task(1)
    a.work(GENBA_HOST="a")
    a.task(2, dependencies=(1,))

    b.work(GENBA_HOST="b")

    assert set(a.statuses().values()) == {TaskStatus.DONE}
    assert {"task-1.txt", "task-2.txt"} <= set(_main(remote))
    merged = b.project.git("log", "--format=%P", "-1", "origin/main").split()
    first = b.project.git("log", "--format=%s", "-1", f"{merged[1]}~1")
    assert first.startswith("Merge"), "the second task began at the merge of the first"
    assert _refs(remote) == "", "what has landed is no longer shared"


def test_a_host_that_is_gone_with_its_disk_is_taken_over_by_another(hosts: tuple[Yard, Yard, Path]) -> None:
    a, b, remote = hosts
    meet = a.project.root.parent / "working"
    half = f"echo half > half.txt; touch {meet}; sleep 600"
    rest = "cat half.txt > task-$GENBA_ISSUE.txt; echo loose > loose.txt"
    turns = {
        "turns": [
            {"do": [{"run": "echo begun > begun.txt; git add -A; git commit -qm begun; echo half > half.txt"}]},
            {"do": [{"run": f"test -e {meet} && {{ {rest}; git add -A; git commit -qm rest; }} || {{ {half}; }}"}]},
        ],
        "repeat": True,
    }
    budget = {"type": "iterationBudget", "config": {"maxIterations": 2}}
    a.project.agent("worker", script=turns, completion=budget, parameters={"issue": {"type": "number"}})
    a.project.git("push", "-q", "origin", "main")
    b.project.git("pull", "-q")
    a.task(1)

    worker = a.start("--executor", "worker-a", GENBA_HOST="a")
    until(meet.exists, 60)
    a.kill(worker)
    shutil.rmtree(a.project.root / ".worktrees")
    b.work("--executor", "worker-b", GENBA_HOST="b")

    assert a.statuses() == {1: TaskStatus.DONE}
    assert {"begun.txt", "half.txt", "task-1.txt", "loose.txt"} <= set(_main(remote))
    until(lambda: not a.left_running(), 60)


def _refuses_to_share(remote: Path, times: int) -> None:
    """The remote takes no sessions, so often."""
    left = "test $(cat refused 2> /dev/null | wc -l) -ge " + str(times)
    hook = f"#!/bin/sh\ngrep -q refs/genba/sessions || exit 0\n{left} || {{ echo no >> refused; exit 1; }}\n"
    path = remote / "hooks" / "pre-receive"
    path.parent.mkdir(exist_ok=True)
    path.write_text(hook, "utf-8")
    path.chmod(0o755)


def test_work_that_could_not_be_shared_is_shared_again_before_it_is_handed_over(
    hosts: tuple[Yard, Yard, Path],
) -> None:
    a, _, remote = hosts
    _refuses_to_share(remote, 2)
    a.task(1)

    done = a.project.genba("work", "--until-empty", "--plain", check=0, GENBA_HOST="a")

    assert (remote / "refused").read_text("utf-8").split() == ["no", "no"]
    assert "#1: not shared with other hosts" in done.out + done.err
    assert a.statuses() == {1: TaskStatus.DONE}
