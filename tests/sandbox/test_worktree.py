"""The kind without walls, and the double: commands behave as commands do."""

import pytest

from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.worktree import WorktreeSandbox
from genba.domain.ports import Processes, Sandbox
from genba.domain.processes import Command
from genba.domain.sessions.sandbox import EgressPort, SandboxSpec
from genba.testing.conformance import ProcessesSuite
from genba.testing.doubles import UnexpectedStep, exited
from genba.testing.sandbox_conformance import UnwalledSuite, command_in, opened, unheard
from genba.testing.sandbox_doubles import ScriptedSandbox


@pytest.fixture
def sandbox() -> Sandbox:
    return WorktreeSandbox(ProcessSupervisor())


class TestWorktree(UnwalledSuite):
    pass


class TestScriptedWalls(ProcessesSuite):
    @pytest.fixture
    async def processes(self, cell: SandboxSpec) -> Processes:
        scripted = ScriptedSandbox({"sh": [exited(0, "hello\n")], "bash": [exited(3, "hello\n")]})
        return await scripted.open(cell)

    @pytest.fixture
    def command(self, cell: SandboxSpec) -> object:
        return lambda code: command_in(cell, "bash" if code else "sh", "-c", f"echo hello; exit {code}")


async def test_two_cells_with_the_same_gate_get_ports_of_their_own(sandbox: Sandbox, cell: SandboxSpec) -> None:
    async def never(_reader: object, _writer: object) -> None:
        raise AssertionError

    def gated(run: str) -> SandboxSpec:
        gate = EgressPort(name="model", port=3129, serve=never)
        return SandboxSpec(run=run, folder=cell.folder, tree=cell.tree, home=cell.home, gates=(gate,))

    async with opened(sandbox, gated("one")) as one, opened(sandbox, gated("two")) as two:
        assert one.ports["model"] != two.ports["model"]


async def test_a_double_tells_of_walls_that_nobody_closed(cell: SandboxSpec) -> None:
    scripted = ScriptedSandbox({"true": [exited(0, "")]})
    walls = await scripted.open(cell)
    command: Command = command_in(cell, "true")
    await walls.run(command, unheard)
    with pytest.raises(UnexpectedStep, match="never closed"):
        scripted.finish()
    await walls.close()
    scripted.finish()
    with pytest.raises(UnexpectedStep, match="closed"):
        await walls.run(command, unheard)
