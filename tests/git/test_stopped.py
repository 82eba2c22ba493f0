"""Whoever is told to stop, or does what another one does at the same time, leaves nothing half done."""

import asyncio
from pathlib import Path

import pytest

from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.removal import remove
from genba.connections.git.worktrees import GitWorkingTrees
from tests.git.conftest import request
from tests.project import Project


async def test_who_is_told_to_stop_waits_for_the_end_of_its_git(project: Project, tmp_path: Path) -> None:
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
