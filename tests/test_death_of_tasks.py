"""Kill anything that works on a task or verifies it: nothing is lost, done twice, or left running."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.project import GENBA, Project, ordinary_environment, until


def start(project: Project, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(GENBA), *words],
        cwd=project.root,
        env={**ordinary_environment(), **project.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def below(folder: Path) -> list[int]:
    """The processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return [process for process in found if process != os.getpid()]


def checkouts(project: Project) -> list[Path]:
    return list((project.root / ".git" / "genba" / "checkouts").glob("*"))


def branch_held_to(project: Project, goals: str) -> None:
    project.write(".genba/config.yaml", f"dod:\n{goals}\n")
    project.commit("Say what done means")
    project.git("checkout", "-q", "-b", "work")
    project.write("work.txt", "work\n")
    project.commit("work")
    project.git("checkout", "-q", "main")


def test_a_killed_verification_leaves_nothing_that_the_next_one_does_not_end(project: Project, tmp_path: Path) -> None:
    serve = f"touch {tmp_path}/serving; exec sleep 1000"
    goal = f"  - {{type: endpoint_responds, url: /x, ready_seconds: 900, serve: '{serve}'}}"
    branch_held_to(project, goal)
    killed = start(project, "verify", "work")
    until((tmp_path / "serving").exists)
    killed.kill()
    killed.wait()
    assert below(project.root)
    branch_again = "  - {type: custom_script, script: 'true'}"
    project.write(".genba/config.yaml", f"dod:\n{branch_again}\n")
    project.commit("Say it in another way")

    project.genba("verify", "work", check=0)

    assert below(project.root) == []
    assert checkouts(project) == []


def test_ctrl_c_ends_a_verification_with_all_that_it_started(project: Project, tmp_path: Path) -> None:
    branch_held_to(project, f"  - {{type: custom_script, script: 'touch {tmp_path}/seen; sleep 1000'}}")
    stopped = start(project, "verify", "work")
    until((tmp_path / "seen").exists)
    stopped.send_signal(signal.SIGINT)

    assert stopped.wait(90) == 1
    assert below(project.root) == []
    assert checkouts(project) == []


def with_task(project: Project) -> None:
    """An agent that works on issues, and a task for it."""
    project.agent(parameters={"issue": {"type": "number"}}, integrations={"github": {"enabled": True}})
    project.issue(1, "One")


def git_that_kills(folder: Path, at: str, then: str = "exit 1") -> str:
    real = shutil.which("git")
    folder.mkdir()
    script = folder / "git"
    script.write_text(f'#!/bin/sh\ncase "$*" in {at}) kill -9 $PPID; {then};; esac\nexec {real} "$@"\n')
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def git_that_goes_on(folder: Path, at: str) -> str:
    """The same, but it does what it was asked for, a while later."""
    return git_that_kills(folder, at, f'sleep 3; {shutil.which("git")} "$@"; touch {folder}/done; exit')


def newest_run(project: Project) -> str:
    with project.board() as board:
        return board.newest_session(1).run


@pytest.fixture
def cut_off(project: Project, tmp_path: Path) -> Project:
    """A run died when the user's checkout was brought forward, and its branch was not."""
    with_task(project)
    path = git_that_kills(tmp_path / "bin", '*"update-ref -m genba: merge"*')
    project.genba("run", "worker", "--issue", "1", check=-signal.SIGKILL, PATH=path)
    assert project.git("status", "--porcelain", "--untracked-files=no") == "A  work.txt"
    return project


@pytest.mark.parametrize("how", ["resumed", "again"])
def test_who_dies_between_the_files_and_the_branch_of_a_merge_stands_in_nobodys_way(cut_off: Project, how: str) -> None:
    if how == "again":
        cut_off.sql("UPDATE tasks SET status = 'open'")
    words = ("--resume", newest_run(cut_off)) if how == "resumed" else ("worker", "--issue", "1")

    assert cut_off.run(*words)["outcome"] == "completed"

    assert cut_off.task(1).status is TaskStatus.DONE
    assert len(cut_off.git("log", "--merges", "--format=%h").splitlines()) == 1
    assert cut_off.git("status", "--porcelain", "--untracked-files=no") == ""


def test_what_the_user_changed_since_is_never_put_back(cut_off: Project) -> None:
    cut_off.write("work.txt", "mine\n")

    done = cut_off.genba("run", "--resume", newest_run(cut_off), check=5)

    assert "has uncommitted changes (work.txt)" in done.err
    assert cut_off.read("work.txt") == "mine\n"


def assert_landed_once(project: Project, merges: int = 1) -> None:
    assert project.run("--resume", newest_run(project))["outcome"] == "completed"
    assert project.task(1).status is TaskStatus.DONE
    assert len(project.git("log", "--merges", "--format=%h").splitlines()) == merges
    assert project.git("status", "--porcelain") == ""
    assert project.read("work.txt")


def test_a_git_that_outlives_who_started_it_is_waited_for(project: Project, tmp_path: Path) -> None:
    """Else it would bring files of its merge into a checkout that is somewhere else by then."""
    with_task(project)
    other = {"write": {"path": "other.txt", "text": "other\n"}}
    project.agent("other", script={"turns": [{"do": [other, {"commit": "Other work"}], "reply": "done"}]})
    path = git_that_goes_on(tmp_path / "bin", '*"read-tree -m -u"*')
    project.genba("run", "worker", "--issue", "1", check=-signal.SIGKILL, PATH=path)

    project.genba("run", "other", check=0)

    until((tmp_path / "bin" / "done").exists)
    assert project.git("status", "--porcelain") == ""
    assert_landed_once(project, merges=2)


def test_who_dies_in_putting_back_leaves_that_to_the_next_one(cut_off: Project, tmp_path: Path) -> None:
    path = git_that_kills(tmp_path / "again", "*checkout-index*")
    cut_off.genba("run", "--resume", newest_run(cut_off), check=-signal.SIGKILL, PATH=path)
    assert cut_off.git("status", "--porcelain") == "?? work.txt"

    assert_landed_once(cut_off)


@pytest.mark.parametrize("left", ["", "wo", None])
def test_a_file_that_was_being_written_is_put_back(cut_off: Project, left: str | None) -> None:
    cut_off.git("reset", "-q")
    whole = cut_off.read("work.txt")
    (cut_off.root / "work.txt").unlink()
    if left is not None:
        cut_off.write("work.txt", whole[: len(left)])

    assert_landed_once(cut_off)


def test_a_file_of_the_users_own_with_that_name_stays(cut_off: Project) -> None:
    cut_off.git("reset", "-q")
    cut_off.write("work.txt", "mine\n")

    done = cut_off.genba("run", "--resume", newest_run(cut_off), check=5)

    assert "has files that the merge would overwrite (work.txt)" in done.err
    assert cut_off.read("work.txt") == "mine\n"


def test_who_dies_in_review_is_gone_on_with_by_the_command_that_the_task_shows(
    project: Project, tmp_path: Path
) -> None:
    with_task(project)
    path = git_that_kills(tmp_path / "bin", "*merge-tree*")
    project.genba("run", "worker", "--issue", "1", check=-signal.SIGKILL, PATH=path)
    assert project.task(1).status is TaskStatus.REVIEW

    refused = project.genba("run", "worker", "--issue", "1", check=5)

    assert "waits to be merged" in refused.err
    assert "hint: genba work" in refused.err
    assert f"genba run --resume {newest_run(project)}" in project.genba("task", "show", "1", check=0).out
    assert project.run("--resume", newest_run(project))["outcome"] == "completed"
    assert project.task(1).status is TaskStatus.DONE
    assert len(project.git("log", "--merges", "--format=%h").splitlines()) == 1


@pytest.mark.parametrize("verb", ["cancel", "block"])
def test_a_task_that_is_taken_away_while_it_is_verified_lands_nothing(
    project: Project, tmp_path: Path, verb: str
) -> None:
    hold = f"touch {tmp_path}/seen; while test ! -e {tmp_path}/go; do sleep 0.02; done"
    project.write(".genba/config.yaml", f"dod: [{{custom_script: '{hold}'}}]\n")
    with_task(project)
    before = project.git("rev-parse", "main")
    run = start(project, "run", "worker", "--issue", "1")
    until((tmp_path / "seen").exists)
    project.genba("task", verb, "1", "--reason", "not now", check=0)
    (tmp_path / "go").touch()

    assert run.wait(90) == 1
    assert project.task(1).status is {"cancel": TaskStatus.CANCELLED, "block": TaskStatus.BLOCKED}[verb]
    assert project.git("rev-parse", "main") == before
    assert "work" in project.git("log", "--all", "--format=%s").splitlines()


def test_of_five_who_start_on_a_task_one_works(project: Project) -> None:
    with_task(project)
    runs = [start(project, "run", "worker", "--issue", "1") for _ in range(5)]

    assert sorted(run.wait(60) for run in runs) == [0, 5, 5, 5, 5]
    assert project.task(1).status is TaskStatus.DONE
    assert len(project.git("log", "--merges", "--format=%h").splitlines()) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes, mounted for this test alone."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT RUN: a small disk needs the right to mount")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("room", [0, 20_000])
def test_a_full_disk_is_reported_and_leaves_verdicts_and_tasks_whole(
    project: Project, small_disk: Path, room: int
) -> None:
    branch_held_to(project, "  - {type: custom_script, script: 'test -e work.txt'}")
    project.git("checkout", "-q", "work")
    (project.root / "big").write_bytes(os.urandom(100_000))
    project.commit("big")
    project.git("checkout", "-q", "main")
    project.issue(1, "One")
    shutil.copytree(project.root, small_disk / "repository")
    there = Project(small_disk / "repository", project.environment)
    free = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(b"x" * (free.f_bavail * free.f_frsize - room))

    for words in (("verify", "work"), ("task", "add", "y" * 30_000)):
        done = there.genba(*words, check=1)
        assert "the disk is full" in done.err
        assert "hint: " in done.err

    (small_disk / "ballast").unlink()
    assert [task["number"] for task in there.genba("task", "list", "--json", check=0).json] == [1]
    there.genba("verify", "work", check=0)
    assert checkouts(there) == []
