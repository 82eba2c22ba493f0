import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import FileLock
from genba.connections.git.worktrees.records import TreeRecord, write_record
from genba.connections.git.worktrees.removal import remove
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from tests.git.conftest import request
from tests.project import Project


async def test_a_stopped_process_waits_for_the_end_of_its_git(project: Project, tmp_path: Path) -> None:
    layout = await RepositoryLayout.find(project.root)
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    slow = f"alias.slow=!touch {begun}; sleep 0.3; touch {ended}"
    working = asyncio.create_task(layout.git.run("-c", slow, "slow"))
    async with asyncio.timeout(30):
        while not begun.exists():  # noqa: ASYNC110  (another process makes it)
            await asyncio.sleep(0.01)

    working.cancel()

    with pytest.raises(asyncio.CancelledError):
        await working
    assert ended.exists()


async def test_two_who_remove_the_same_tree_at_once_both_find_it_gone(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(request("genba/work"))
    trees.release()

    strangers = [await RepositoryLayout.find(project.root) for _ in range(6)]  # each has to ask git for itself
    removed = await asyncio.gather(*(remove(one, workspace) for one in strangers))

    assert [(one.removed, one.reason) for one in removed] == [(True, "")] * 6
    assert project.branches() == ["main"]
    assert not Path(workspace.path).exists()  # noqa: ASYNC240


async def test_a_git_that_has_not_begun_when_its_caller_leaves_never_does(project: Project, tmp_path: Path) -> None:
    layout = await RepositoryLayout.find(project.root)
    begun, gate = tmp_path / "begun", threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    busy = asyncio.create_task(asyncio.to_thread(gate.wait, 30))
    await asyncio.sleep(0)
    working = asyncio.create_task(layout.git.run("-c", f"alias.mark=!touch {begun}", "mark"))
    await asyncio.sleep(0)

    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(working, 5)
    gate.set()
    await busy
    await asyncio.to_thread(int)  # whatever was in line before has had its turn

    assert not begun.exists()


@pytest.mark.parametrize("known", [True, False])
async def test_a_tree_that_another_run_was_given_meanwhile_is_not_removed(project: Project, known: bool) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(request("genba/work"))
    trees.release()
    assert (await remove(layout, workspace)).removed
    lock = FileLock(layout.repository_lock)
    assert lock.try_acquire("test")
    late = asyncio.create_task(remove(await RepositoryLayout.find(project.root), workspace))
    await asyncio.sleep(0)
    new = Path(workspace.path) / "new.txt"
    new.parent.mkdir()
    new.write_text("of the next one\n", "utf-8")
    if known:
        write_record(
            layout,
            TreeRecord(branch="genba/work", path=workspace.path, base="", new_branch=True, ready=True, run="next"),
        )
    lock.release()

    found = await late

    assert (found.removed, found.reason.partition(" ")[2]) == (
        False,
        "belongs to next now" if known else "was made again meanwhile",
    )
    assert new.is_file()
