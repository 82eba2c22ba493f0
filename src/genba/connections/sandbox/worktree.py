"""No sandbox: a worktree of its own, a private HOME, and for the rest the user's own machine.

Limits of memory, processes and disk need a sandbox and have no effect here; time is limited as everywhere.
"""

from collections.abc import Mapping

import msgspec

from genba.connections.sandbox.port_server import PortServer
from genba.domain.ports import Processes
from genba.domain.processes import Command, Exit, OutputListener
from genba.domain.sessions.sandbox import SandboxSpec


class WorktreeSandbox:
    """Passes commands on as they are. The egress ports of a sandbox open on the loopback of the host."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes

    def problem(self) -> str:
        return ""

    async def open(self, spec: SandboxSpec) -> "Unsandboxed":
        port_server = PortServer()
        return Unsandboxed(self.processes, spec, port_server, await port_server.open_on_loopback(spec.egress_ports))


class Unsandboxed:
    """The handle where there is no sandbox."""

    def __init__(
        self, processes: Processes, spec: SandboxSpec, port_server: PortServer, ports: Mapping[str, int]
    ) -> None:
        self.processes = processes
        self.spec = spec
        self.port_server = port_server
        self.ports = ports
        self.running: list[str] = []
        """The marks of commands that have not ended."""

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        at_home = {**command.environment, "HOME": self.spec.home}
        self.running.append(command.mark)
        try:
            return await self.processes.run(msgspec.structs.replace(command, environment=at_home), on_output)
        finally:
            self.running.remove(command.mark)

    async def sweep(self, mark: str) -> int:
        return await self.processes.sweep(mark)

    async def close(self) -> None:
        await self.port_server.close()
        for mark in tuple(self.running):
            await self.processes.sweep(mark)
