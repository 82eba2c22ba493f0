from collections.abc import AsyncIterator

import pytest

from genba.connections.git.merging.merge import GitRepository
from genba.domain.ports import Repository, WorkingTrees
from genba.domain.sessions.workspaces import Workspace, WorkspaceRequest
from genba.testing.conformance import RepositorySuite, WorkingTreesSuite
from tests.git.conftest import Floor, request


class TestSandboxedWorktrees(WorkingTreesSuite):
    @pytest.fixture(params=["plain folders", "overlays"])
    async def trees(self, request: pytest.FixtureRequest, floor: Floor) -> AsyncIterator[WorkingTrees]:
        made = await floor.anew(overlays=request.param == "overlays", large=1)
        yield made.trees
        made.trees.release()

    @pytest.fixture
    def request_(self) -> WorkspaceRequest:
        return request()


class TestMergingFromSandbox(RepositorySuite):
    @pytest.fixture
    def repository(self, floor: Floor) -> Repository:
        return GitRepository(floor.trees.layout)

    @pytest.fixture(params=["plain folders", "overlays"])
    async def ready(self, request: pytest.FixtureRequest, floor: Floor) -> AsyncIterator[Workspace]:
        made = await floor.anew(overlays=request.param == "overlays", large=1)
        workspace = await made.open()
        await made.inside(workspace, "echo new > new.txt && git add -A && git commit -qm 'Add new.txt'")
        await made.trees.observe(workspace)
        yield workspace
        made.trees.release()
