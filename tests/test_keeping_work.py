"""Nothing is lost: conflicts, dirty checkouts, branches in use, uncommitted work, full disks."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import GENBA, Project, until

WRITE = {"write": {"path": "shared.txt", "text": "from the agent\n"}}
TURN = {"do": [WRITE, {"commit": "Change shared.txt"}], "reply": "done"}
MOVE_MAIN = 'cd "$(git rev-parse --git-common-dir)/.." && echo from the user > shared.txt && git add shared.txt && '
MOVE_MAIN += 'git -c user.name=U -c user.email=u@localhost commit -qm "Change it, too"'


def _conflicting(project: Project) -> None:
    project.write("shared.txt", "in the beginning\n")
    project.agent(script={"turns": [{"do": [WRITE, {"commit": "Change it"}, {"run": MOVE_MAIN}], "reply": "done"}]})


def test_a_conflict_is_an_outcome_of_its_own_and_keeps_everything(project: Project) -> None:
    _conflicting(project)

    result = project.run("worker", check=5)

    assert result["outcome"] == "blocked"
    assert result["merge"] == "conflict"
    assert result["conflicts"] == ["shared.txt"]
    assert project.read("shared.txt") == "from the user\n"
    assert project.git("show", f"{result['branch']}:shared.txt") == "from the agent"
    assert Path(result["workdir"]).is_dir()
    assert f"git -C {result['workdir']} merge main" in result["hint"]


def test_a_resolved_conflict_is_merged_by_resuming(project: Project) -> None:
    _conflicting(project)
    result = project.run("worker", check=5)
    tree = Path(result["workdir"])
    who = ("-c", "user.name=U", "-c", "user.email=u@localhost")
    subprocess.run(["git", *who, "merge", "main"], cwd=tree, check=False, capture_output=True)
    (tree / "shared.txt").write_text("from both\n")
    subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
    subprocess.run(["git", *who, "commit", "-qm", "Resolve"], cwd=tree, check=True)

    resumed = project.run("--resume", result["run"])

    assert resumed["outcome"] == "completed"
    assert project.read("shared.txt") == "from both\n"
    assert not tree.exists()


@pytest.mark.parametrize("staged", [False, True])
def test_a_dirty_checkout_is_never_touched(project: Project, staged: bool) -> None:
    project.agent(script={"turns": [TURN]})
    project.write("README.md", "my unfinished thought\n")
    if staged:
        project.git("add", "README.md")
    before = project.git("rev-parse", "main")

    result = project.run("worker", check=5)

    assert result["merge"] == "checkout_in_the_way"
    assert project.git("rev-parse", "main") == before
    assert project.read("README.md") == "my unfinished thought\n"
    assert "README.md" in result["reason"]
    assert "commit or stash" in result["hint"]

    project.commit("My thought")
    assert project.run("--resume", result["run"])["outcome"] == "completed"
    assert project.read("shared.txt") == "from the agent\n"


def test_an_untracked_file_in_the_way_is_not_overwritten(project: Project) -> None:
    project.agent(script={"turns": [TURN]})
    project.write("shared.txt", "mine, not yet added\n")

    result = project.run("worker", check=5)

    assert result["merge"] == "checkout_in_the_way"
    assert project.read("shared.txt") == "mine, not yet added\n"
    assert project.git("show", f"{result['branch']}:shared.txt") == "from the agent"


def test_a_clean_checkout_is_brought_forward(project: Project) -> None:
    project.agent(script={"turns": [TURN]})
    project.write("notes.txt", "untracked and out of the way\n")

    project.run("worker")

    assert project.read("shared.txt") == "from the agent\n"
    assert project.git("status", "--porcelain") == "?? notes.txt"


def test_a_base_that_is_not_checked_out_is_moved_alone(project: Project) -> None:
    project.agent(script={"turns": [TURN]})
    project.git("switch", "-q", "-c", "elsewhere")

    result = project.run("worker", "--base-branch", "main")

    assert project.git("rev-parse", "main") == result["merged"]
    assert not (project.root / "shared.txt").exists()
    assert project.git("branch", "--show-current") == "elsewhere"


def test_without_a_base_branch_the_current_branch_is_the_base(project: Project) -> None:
    project.agent(script={"turns": [TURN]})
    main = project.git("rev-parse", "main")
    project.git("switch", "-q", "-c", "elsewhere")

    result = project.run("worker")

    assert project.git("rev-parse", "elsewhere") == result["merged"]
    assert project.git("rev-parse", "main") == main


def test_the_merge_keeps_both_sides_of_a_base_that_moved(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"write": {"path": "a.txt", "text": "a"}}, {"commit": "a"},
                                            {"run": MOVE_MAIN}], "reply": "done"}]})  # fmt: skip

    result = project.run("worker")

    assert project.read("a.txt") == "a"
    assert project.read("shared.txt") == "from the user\n"
    assert len(project.git("rev-list", "--parents", "-1", result["merged"]).split()) == 3


def test_a_branch_in_use_is_refused(project: Project, tmp_path: Path) -> None:
    gate, inside = tmp_path / "gate", tmp_path / "inside"
    os.mkfifo(gate)
    line = f"touch {inside}; cat {gate}; echo x > x; git add -A; git commit -qm x"
    project.agent(adapter={"type": "custom", "command": line})
    first = subprocess.Popen(
        [str(GENBA), "run", "worker", "--branch", "genba/one", "--quiet"],
        cwd=project.root,
        env={**os.environ, **project.environment},
    )
    until(inside.exists)

    second = project.genba("run", "worker", "--branch", "genba/one", check=5)
    gate.write_text("go\n")

    assert 'the branch "genba/one" is in use by worker-' in second.err
    assert "one branch has one agent" in second.err
    assert len(list((project.root / "tmp/logs/agents/worker").glob("*.jsonl"))) == 1
    assert first.wait(90) == 0


def test_a_branch_that_the_user_has_checked_out_is_left_alone(project: Project, tmp_path: Path) -> None:
    project.agent()
    project.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine"))

    done = project.genba("run", "worker", "--branch", "mine", check=5)

    assert f'the branch "mine" is checked out at {tmp_path / "mine"}' in done.err


def test_uncommitted_work_is_kept_under_a_rescue_ref(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"write": {"path": "left.txt", "text": "not committed\n"}}]}]})

    result = project.run("worker")

    ref = f"refs/genba/rescue/{result['run']}"
    assert project.git("show", f"{ref}:left.txt") == "not committed"
    assert not Path(result["workdir"]).exists()


def test_commits_beside_the_branch_are_kept_under_a_rescue_ref(project: Project) -> None:
    line = "git checkout -q --detach && echo x > stray.txt && git add -A && git commit -qm stray"
    project.agent(adapter={"type": "custom", "command": line})

    result = project.run("worker")

    assert project.git("show", f"refs/genba/rescue/{result['run']}:stray.txt") == "x"


@pytest.mark.parametrize("and_then", ["", " && cd .. && git add inner 2>/dev/null && git commit -qm outer"])
def test_a_repository_inside_the_working_tree_is_never_removed(project: Project, and_then: str) -> None:
    line = "git init -q inner && cd inner && echo x > x && git add -A && git commit -qm inner" + and_then
    project.agent(adapter={"type": "custom", "command": line})

    result = project.run("worker")

    closed = next(event for event in project.events() if event["event"] == "workspace_closed")
    assert closed["removed"] is False
    assert "a repository of its own (inner)" in closed["reason"]
    assert (Path(result["workdir"]) / "inner/x").read_text() == "x\n"


def test_a_run_that_does_not_complete_keeps_its_branch_and_its_tree(project: Project) -> None:
    steps = {"work": {"completionConditions": [{"validator": "never"}], "onFailure": {"action": "abort"}}}
    project.agent(steps=steps, registry={"validators": {"never": {"type": "command", "command": "exit 1"}}})

    result = project.run("worker", check=1)

    assert result["outcome"] == "aborted"
    assert result["branch"] in project.branches()
    assert (Path(result["workdir"]) / "work.txt").exists()


def test_many_runs_at_once_all_arrive(project: Project) -> None:
    line = "echo $GENBA_RUN > $GENBA_RUN.txt && git add -A && git commit -qm $GENBA_RUN"
    project.agent(adapter={"type": "custom", "command": line})
    words = [str(GENBA), "run", "worker", "--json", "--quiet"]
    environment = {**os.environ, **project.environment}

    running = [subprocess.Popen(words, cwd=project.root, env=environment, stdout=subprocess.PIPE) for _ in range(8)]
    results = [json.loads(each.communicate(timeout=100)[0]) for each in running]

    assert {result["outcome"] for result in results} == {"completed"}
    for result in results:
        assert project.read(f"{result['run']}.txt").strip() == result["run"]
    assert project.branches() == ["main"]
    assert project.git("status", "--porcelain") == ""
    assert project.git("fsck", "--no-dangling") == ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes, mounted for this test alone."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("NOT RUN: a small disk needs the right to mount")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_loses_no_commit_and_the_run_goes_on_when_there_is_room(project: Project, small_disk: Path) -> None:
    root = small_disk / "repository"
    shutil.copytree(project.root, root)
    there = Project(root, project.environment)
    ballast = small_disk / "ballast"
    once = 'test -e "$HOME/filled" || { touch "$HOME/filled"; '
    fill = once + f"head -c 100M /dev/zero > {ballast} 2>/dev/null || true; }}"
    turns = [
        {"do": [{"write": {"path": "kept.txt", "text": "kept\n"}}, {"commit": "Keep this"}], "reply": "first"},
        {"do": [{"run": fill}, {"print": "x" * 200}], "reply": "second"},
        {"do": [{"write": {"path": "more.txt", "text": "more\n"}}, {"commit": "And more"}], "reply": "third"},
    ]
    completion = {"type": "iterationBudget", "config": {"maxIterations": 3}}
    there.agent(completion=completion, script={"turns": turns})

    done = there.genba("run", "worker", "--branch", "genba/full")

    assert done.code == 1
    assert "the disk is full" in done.err
    assert "Traceback" not in done.err
    assert "genba run --resume worker-" in done.err
    assert there.git("show", "genba/full:kept.txt") == "kept"

    ballast.unlink()
    run = done.err.split("genba run --resume ")[1].split()[0]
    resumed = there.run("--resume", run)
    assert resumed["outcome"] == "completed"
    assert (there.read("kept.txt"), there.read("more.txt")) == ("kept\n", "more\n")


def test_a_disk_that_is_full_before_the_start_is_reported_and_harms_nothing(project: Project, small_disk: Path) -> None:
    root = small_disk / "repository"
    shutil.copytree(project.root, root)
    there = Project(root, project.environment)
    there.agent()
    before = there.git("rev-parse", "main")
    ballast = small_disk / "ballast"
    subprocess.run(["sh", "-c", f"head -c 100M /dev/zero > {ballast}"], check=False, capture_output=True)

    done = there.genba("run", "worker")

    assert done.code == 1
    assert "the disk is full" in done.err
    assert "free some space" in done.err
    assert there.git("rev-parse", "main") == before
    ballast.unlink()
    assert there.run("worker")["outcome"] == "completed"


def test_a_disk_that_fills_before_the_merge_keeps_the_work(project: Project, small_disk: Path) -> None:
    root = small_disk / "repository"
    shutil.copytree(project.root, root)
    there = Project(root, project.environment)
    ballast = small_disk / "ballast"
    fill = f"head -c 100M /dev/zero > {ballast} 2>/dev/null || true"
    there.agent(script={"turns": [{"do": [WRITE, {"commit": "Keep this"}, {"run": fill}], "reply": "x"}]})

    done = there.genba("run", "worker", "--branch", "genba/full")

    assert done.code == 1
    assert "the disk is full" in done.err
    assert there.git("show", "genba/full:shared.txt") == "from the agent"
    ballast.unlink()
    run = done.err.split("genba run --resume ")[1].split()[0]
    assert there.run("--resume", run)["outcome"] == "completed"
    assert there.read("shared.txt") == "from the agent\n"
