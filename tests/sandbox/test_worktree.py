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


class TestScriptedHandle(ProcessesSuite):
    @pytest.fixture
    async def processes(self, spec: SandboxSpec) -> Processes:
        scripted = ScriptedSandbox({"sh": [exited(0, "hello\n")], "bash": [exited(3, "hello\n")]})
        return await scripted.open(spec)

    @pytest.fixture
    def command(self, spec: SandboxSpec) -> object:
        return lambda code: command_in(spec, "bash" if code else "sh", "-c", f"echo hello; exit {code}")


async def test_two_cells_with_the_same_gate_get_ports_of_their_own(sandbox: Sandbox, spec: SandboxSpec) -> None:
    async def never(_reader: object, _writer: object) -> None:
        raise AssertionError

    def gated(run: str) -> SandboxSpec:
        egress_port = EgressPort(name="model", port=3129, serve=never)
        return SandboxSpec(run=run, folder=spec.folder, tree=spec.tree, home=spec.home, egress_ports=(egress_port,))

    async with opened(sandbox, gated("one")) as one, opened(sandbox, gated("two")) as two:
        assert one.ports["model"] != two.ports["model"]


async def test_a_double_reports_an_open_sandbox(spec: SandboxSpec) -> None:
    scripted = ScriptedSandbox({"true": [exited(0, "")]})
    handle = await scripted.open(spec)
    command: Command = command_in(spec, "true")
    await handle.run(command, unheard)
    with pytest.raises(UnexpectedStep, match="never closed"):
        scripted.finish()
    await handle.close()
    scripted.finish()
    with pytest.raises(UnexpectedStep, match="closed"):
        await handle.run(command, unheard)
