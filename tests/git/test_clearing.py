"""Whoever takes away what a dead run had begun to make keeps nobody from its branch."""

import asyncio

import pytest

from genba.connections.git.layout import RepositoryLayout
from genba.connections.git.locks import FileLock
from genba.connections.git.making import CLEARING
from genba.connections.git.worktrees import GitWorkingTrees
from genba.domain.errors import StateConflictError
from genba.domain.workspaces import WorkspaceRequest
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


async def test_a_branch_that_another_run_has_is_refused_at_once(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    other = FileLock(layout.branch_lock("genba/1"))
    assert other.try_acquire("worker-0")

    with pytest.raises(StateConflictError, match="in use by worker-0"):
        await GitWorkingTrees(layout).open(REQUEST)

    other.release()
