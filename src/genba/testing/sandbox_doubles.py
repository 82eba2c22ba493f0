"""A sandbox that starts nothing: it remembers the specs, and ends commands as scripted."""

from collections.abc import Sequence

from genba.domain.errors import UsageError
from genba.domain.processes import Command, Exit, OutputListener
from genba.domain.sessions.sandbox import SandboxSpec
from genba.testing.doubles import ScriptedProcesses, UnexpectedStep


class ScriptedSandbox:
    """Gives out handles whose commands end by their first argument. `finish` fails on an end that was never used."""

    def __init__(self, exits: dict[str, Sequence[Exit]], problem: str = "") -> None:
        self.processes = ScriptedProcesses(exits)
        self.specs: list[SandboxSpec] = []
        self.open_handles = 0
        self._problem = problem

    def problem(self) -> str:
        return self._problem

    async def open(self, spec: SandboxSpec) -> "ScriptedHandle":
        if self._problem:
            raise UsageError(self._problem)
        self.specs.append(spec)
        self.open_handles += 1
        return ScriptedHandle(self, spec)

    def finish(self) -> None:
        self.processes.finish()
        if self.open_handles:
            raise UnexpectedStep(f"{self.open_handles} sandboxes were never closed")


class ScriptedHandle:
    """One open sandbox. Its egress ports are those that it asked for, with no handler behind them."""

    def __init__(self, sandbox: ScriptedSandbox, spec: SandboxSpec) -> None:
        self.sandbox = sandbox
        self.spec = spec
        self.ports = {egress_port.name: egress_port.port for egress_port in spec.egress_ports}
        self.closed = False

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        if self.closed:
            raise UnexpectedStep(f"{command.argv} was run in a sandbox that is closed")
        return await self.sandbox.processes.run(command, on_output)

    async def sweep(self, mark: str) -> int:
        return await self.sandbox.processes.sweep(mark)

    async def close(self) -> None:
        self.sandbox.open_handles -= 0 if self.closed else 1
        self.closed = True
