"""An instance in a real sandbox, and the user's repository outside."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from genba.connections.git.private.sandboxed_worktrees import SandboxedWorktrees
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.domain.processes import Command, Exit
from genba.domain.sessions.sandbox import SandboxSpec
from genba.domain.sessions.workspaces import Workspace, WorkspaceRequest
from tests.bubblewrap import needs_bubblewrap
from tests.project import Project

AGENT = "worker"


@dataclass
class Floor:
    project: Project
    trees: SandboxedWorktrees
    sandbox: BubblewrapSandbox
    folder: Path

    async def open(self, branch: str = "genba/work") -> Workspace:
        return await self.trees.open(request(branch))

    async def anew(self, **options: object) -> "Floor":
        """The same project, as a process sees it that starts now: nothing is remembered but what is on the disk."""
        self.trees.plain.release()
        layout = await RepositoryLayout.find(self.project.root)
        trees = SandboxedWorktrees(layout, self.sandbox, **options)  # type: ignore[arg-type]
        return Floor(self.project, trees, self.sandbox, self.folder)

    async def inside(self, workspace: Workspace, line: str, expect: int | None = 0) -> Exit:
        """Run a shell line as the instance does."""
        parts = self.trees.private_binds(workspace)
        handle = await self.sandbox.open(
            SandboxSpec(
                run=workspace.run,
                folder=str(self.folder / "sandbox"),
                tree=workspace.path,
                home=str(self.folder / "home"),
                readable=parts.readable,
                binds=parts.binds,
                overlay=parts.overlay,
            )
        )
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
               for what, value in (("NAME", AGENT), ("EMAIL", f"{AGENT}@agents.invalid"))}  # fmt: skip
        command = Command(
            argv=("sh", "-c", line),
            workdir=workspace.path,
            environment={"PATH": os.environ["PATH"], **who},
            timeout_seconds=60,
            idle_seconds=60,
            mark=workspace.run,
        )
        try:
            done = await handle.run(command, lambda _stream, _line: None)
        finally:
            await handle.close()
        if expect is not None:
            assert done.code == expect, f"{done.ending} {done.code}\n{done.stdout}\n{done.stderr}"
        return done

    def refs(self) -> dict[str, str]:
        lines = self.project.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ", 1) for line in lines)


def request(branch: str | None = "genba/work") -> WorkspaceRequest:
    return WorkspaceRequest(
        run=f"{AGENT}-{os.urandom(4).hex()}",
        agent=AGENT,
        root=".worktrees",
        isolated=True,
        branch=branch,
        base_branch="main",
        issue=None,
        issue_title="",
    )


@pytest.fixture(scope="session")
def sandbox() -> BubblewrapSandbox:
    needs_bubblewrap()
    return BubblewrapSandbox(ProcessSupervisor())


@pytest.fixture
async def floor(project: Project, sandbox: BubblewrapSandbox, tmp_path: Path) -> AsyncIterator[Floor]:
    layout = await RepositoryLayout.find(project.root)
    made = Floor(project, SandboxedWorktrees(layout, sandbox), sandbox, tmp_path)
    yield made
    made.trees.release()
