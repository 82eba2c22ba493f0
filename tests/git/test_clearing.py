import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from genba.connections.git.merging.merge_target import GitRework
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock
from genba.connections.git.worktrees.records import read_record, write_record
from genba.connections.git.worktrees.worktree_create import CLEARING
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.errors import GitError, StateConflictError
from genba.domain.sessions.workspaces import WorkspaceRequest
from tests.preloaded import ROOT, ordinary_environment
from tests.project import Project

REQUEST = WorkspaceRequest(
    run="worker-1", agent="worker", root=".worktrees", isolated=True, branch="genba/1", base_branch="main", issue=1,
    issue_title="",
)  # fmt: skip


async def test_a_branch_that_is_being_cleared_is_waited_for(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    clearing = FileLock(layout.branch_lock("genba/1"))
    assert clearing.try_acquire(CLEARING)

    opening = asyncio.create_task(trees.open(REQUEST))
    done, _ = await asyncio.wait({opening}, timeout=0.2)
    assert not done
    clearing.release()

    workspace = await asyncio.wait_for(opening, 30)
    assert workspace.taken_from == ""
    trees.release()


async def test_a_branch_that_another_run_has_is_refused(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    other = FileLock(layout.branch_lock("genba/1"))
    assert other.try_acquire("worker-0")

    with pytest.raises(StateConflictError, match="in use by worker-0"):
        await GitWorkingTrees(layout).open(REQUEST)

    other.release()


async def test_a_run_that_just_locked_a_branch_is_no_other_run(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    path = layout.branch_lock("genba/1")
    before = FileLock(path)
    assert before.try_acquire("worker-0")
    before.release()
    taken = os.open(path, os.O_RDWR)
    fcntl.flock(taken, fcntl.LOCK_EX)

    opening = asyncio.create_task(GitWorkingTrees(layout).open(REQUEST))
    await asyncio.sleep(0.05)
    os.close(taken)

    assert (await asyncio.wait_for(opening, 30)).taken_from == "worker-0"


_OPENS = """
import asyncio, sys
from pathlib import Path
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.merging.merge_target import GitRework
from genba.connections.git.worktrees.records import read_record, write_record
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from tests.git.test_clearing import REQUEST
async def main():
    await GitWorkingTrees(await RepositoryLayout.find(Path(sys.argv[1]))).open(REQUEST)
asyncio.run(main())
"""


async def test_a_git_that_fills_the_tree_of_a_dead_run_is_waited_for(project: Project, tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    project.write(".gitattributes", "slow.txt filter=slow\n")
    project.write("slow.txt", "slow\n")
    project.commit("Slow")
    once = f"if mkdir {begun} 2>/dev/null; then sleep 1; touch {ended}; fi; cat"
    project.git("config", "filter.slow.smudge", once)
    layout = await RepositoryLayout.find(project.root)
    first = await asyncio.create_subprocess_exec(sys.executable, "-c", _OPENS, str(project.root))
    async with asyncio.timeout(60):
        while not begun.exists():  # noqa: ASYNC110  (another process makes it)
            await asyncio.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    await first.wait()

    workspace = await GitWorkingTrees(layout).open(REQUEST)

    assert ended.exists()
    assert project.git("status", "--porcelain", cwd=Path(workspace.path)) == ""
    assert Path(workspace.path, "slow.txt").read_text() == "slow\n"  # noqa: ASYNC240


async def _cut_off(project: Project, branch: str, run: str) -> Path:
    """A working tree whose run died before it was whole; says where it is."""
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(msgspec.structs.replace(REQUEST, branch=branch, run=run))
    trees.release()
    record = read_record(layout.tree_record(branch))
    assert record is not None
    write_record(layout, msgspec.structs.replace(record, ready=False))
    return Path(workspace.path)


async def test_a_worktree_whose_creator_died_before_it_named_its_git_folder_says_so(project: Project) -> None:
    tree = await _cut_off(project, "genba/1", "worker-0")
    (tree / ".git").write_text("")

    workspace = await GitWorkingTrees(await RepositoryLayout.find(project.root)).open(REQUEST)

    assert workspace.path == str(tree)
    assert project.git("status", "--porcelain", "--branch", cwd=tree) == "## genba/1"


@pytest.mark.parametrize(
    "lock", ["refs/heads/genba/1.lock", "worktrees/genba-1/index.lock", "worktrees/genba-1/HEAD.lock"]
)
async def test_locks_that_a_dead_git_left_on_a_branch_of_genba_do_not_block_it(project: Project, lock: str) -> None:
    await _cut_off(project, "genba/1", "worker-0")
    project.git("commit", "-q", "--allow-empty", "-m", "Meanwhile")
    left = project.root / ".git" / lock
    left.touch()

    await GitWorkingTrees(await RepositoryLayout.find(project.root)).open(REQUEST)

    assert not left.exists()


async def test_a_branch_is_begun_where_only_the_lock_of_it_was_left(project: Project) -> None:
    left = project.root / ".git" / "refs/heads/genba/1.lock"
    left.parent.mkdir(parents=True)
    left.touch()

    workspace = await GitWorkingTrees(await RepositoryLayout.find(project.root)).open(REQUEST)

    assert workspace.branch == "genba/1"
    assert not left.exists()


@pytest.mark.parametrize("lock", ["refs/heads/genba/2.lock", "packed-refs.lock"])
async def test_what_is_left_of_one_is_no_fault_of_another(project: Project, lock: str) -> None:
    await _cut_off(project, "genba/2", "worker-2")
    (project.root / ".git" / lock).touch()

    workspace = await GitWorkingTrees(await RepositoryLayout.find(project.root)).open(REQUEST)

    assert workspace.branch == "genba/1"


async def test_the_lock_of_a_branch_that_the_user_has_named_is_the_users(project: Project) -> None:
    project.git("branch", "feature")
    lock = project.root / ".git" / "refs/heads/feature.lock"
    lock.touch()
    layout = await RepositoryLayout.find(project.root)

    with pytest.raises(GitError, match=r"feature\.lock"):
        await GitWorkingTrees(layout).open(msgspec.structs.replace(REQUEST, branch="feature"))

    assert lock.exists()


@pytest.mark.parametrize("lock", ["refs/heads/genba/1.lock", "worktrees/genba-1/HEAD.lock"])
async def test_work_that_comes_back_for_a_conflict_goes_on_past_a_lock_that_was_left(
    project: Project, lock: str
) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(REQUEST)
    project.git("commit", "-q", "--allow-empty", "-m", "Meanwhile")
    (project.root / ".git" / lock).touch()

    adopted = await GitRework(layout).adopt(workspace, project.git("rev-parse", "main"), "Bring it in")

    assert project.git("rev-parse", "genba/1") == adopted.commit
    assert project.git("status", "--porcelain", "--branch", cwd=Path(workspace.path)) == "## genba/1"
    trees.release()


async def test_a_tree_that_was_left_on_no_branch_is_put_back_past_a_lock_that_was_left(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    first = GitWorkingTrees(layout)
    workspace = await first.open(REQUEST)
    project.git("checkout", "-q", "--detach", cwd=Path(workspace.path))
    project.git("commit", "-q", "--allow-empty", "-m", "On no branch", cwd=Path(workspace.path))
    commit = project.git("rev-parse", "HEAD", cwd=Path(workspace.path))
    first.release()
    (project.root / ".git" / "refs/heads/genba/1.lock").touch()

    await GitWorkingTrees(layout).open(msgspec.structs.replace(REQUEST, run="worker-2"))

    assert project.git("rev-parse", "genba/1") == commit


_COMMITS = """
import asyncio, pathlib, sys
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from tests.git.test_clearing import REQUEST
async def main():
    trees = GitWorkingTrees(await RepositoryLayout.find(pathlib.Path(sys.argv[1])))
    workspace = await trees.open(REQUEST)
    (pathlib.Path(workspace.path) / "new.txt").write_text("new")
    await trees.commit(workspace, "Add a file", "worker <worker@agents.invalid>")
asyncio.run(main())
"""


def test_a_git_that_holds_a_branch_lock_starts_no_background_maintenance(project: Project, tmp_path: Path) -> None:
    environment = {**ordinary_environment(), "GIT_TRACE": str(tmp_path / "trace")}

    words = [sys.executable, "-c", _COMMITS, str(project.root)]
    subprocess.run(words, cwd=ROOT, env=environment, check=True, timeout=60)

    result = (tmp_path / "trace").read_text("utf-8")
    assert "commit-tree" in result
    assert "maintenance run" not in result
    assert " gc " not in result
