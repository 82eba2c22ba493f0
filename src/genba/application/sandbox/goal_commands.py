"""Commands of goals and checks in a sandbox: they run what an agent wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba.application.sandbox.agent_environment import PROXY, PROXY_PORT, loopback_address, sandboxed_environment
from genba.definitions.project.sandbox_section import AgentEnvironment
from genba.domain.errors import UnrecoverableError
from genba.domain.goals.goal import Goal
from genba.domain.goals.verification import Place
from genba.domain.ports import GoalRunner, Processes, Sandbox, SandboxHandle
from genba.domain.processes import Command, Exit, OutputListener
from genba.domain.sessions.evidence import CheckResult
from genba.domain.sessions.sandbox import Bind, EgressPort, Network, SandboxSpec, proxy_variables

if TYPE_CHECKING:
    from genba.application.ports import Files, Layout
    from genba.application.sandbox.ports import EnvironmentPorts, Host
    from genba.domain.sessions.egress import EgressEvent
    from genba.domain.sessions.sandbox import CheckoutView

SpecFor = Callable[[Command], SandboxSpec | None]
ViewOf = Callable[[str], "CheckoutView | None"]
_NAMED = 5
"""Hosts that one line names."""


class EnclosedCommands:
    """Runs each command in a sandbox of its own; one that needs none, as it is."""

    def __init__(self, sandbox: Sandbox, processes: Processes, host: Host, spec_for: SpecFor) -> None:
        self.sandbox = sandbox
        self.processes = processes
        self.host = host
        self.spec_for = spec_for
        self._open: set[SandboxHandle] = set()

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        spec = self.spec_for(command)
        if spec is None:
            return await self.processes.run(command, on_output)
        handle = await self.sandbox.open(spec)
        self._open.add(handle)
        try:
            environment = inside(self.host, command.environment, spec.home, handle.ports)
            return await handle.run(msgspec.structs.replace(command, environment=environment), on_output)
        finally:
            self._open.discard(handle)
            await asyncio.shield(handle.close())

    async def sweep(self, mark: str) -> int:
        ended = [await handle.sweep(mark) for handle in tuple(self._open)]
        return sum(ended) + await self.processes.sweep(mark)


class EnclosedSweeps:
    """Processes whose sweeps reach into sandboxes too: a container is not a child process."""

    def __init__(self, sandbox: Sandbox, processes: Processes, files: Files, folder: Path) -> None:
        self.sandbox = sandbox
        self.processes = processes
        self.files = files
        self.folder = folder

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        return await self.processes.run(command, on_output)

    async def sweep(self, mark: str) -> int:
        self.files.make_private_folder(self.folder)
        place = str(self.folder)
        handle = await self.sandbox.open(SandboxSpec(run=mark, folder=place, tree=place, home=place))
        try:
            return await handle.sweep(mark)
        finally:
            await handle.close()


class OwnTemporaryFolder:
    """Processes without a sandbox: commands in a checkout get the temporary folder of its view."""

    def __init__(self, processes: Processes, view_of: ViewOf) -> None:
        self.processes = processes
        self.view_of = view_of

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        view = self.view_of(command.workdir)
        if view is not None:
            environment = {**command.environment, "TMPDIR": view.temporary}
            command = msgspec.structs.replace(command, environment=environment)
        return await self.processes.run(command, on_output)

    async def sweep(self, mark: str) -> int:
        return await self.processes.sweep(mark)


class CheckoutSpecs:
    """The sandboxes of clean checkouts: one for each view of them, with a HOME that goes away with it."""

    def __init__(
        self,
        layout: Layout,
        ports: EnvironmentPorts,
        agent: AgentEnvironment,
        networks: GoalNetworks,
        environment: Mapping[str, str],
        view_of: ViewOf,
        report: Callable[[EgressEvent], None],
    ) -> None:
        self.limits = agent.limits
        self.image = agent.image
        self.allow_ptrace = agent.allow_ptrace
        self.networks = networks
        self.view_of = view_of
        self.report = report
        self.root = layout.own / "checkouts"
        self.objects = str(layout.common / "objects")
        self.egress = ports.egress
        self.readable = ports.host.readable_folders(None, agent.read, environment)

    def spec(self, command: Command) -> SandboxSpec | None:
        """The sandbox of a command in a checkout; None for what Genba runs elsewhere for itself."""
        workdir = Path(command.workdir)
        if not workdir.is_relative_to(self.root):
            return None
        view = self.view_of(command.workdir)
        if view is None:
            raise UnrecoverableError(f"{workdir} is no checkout that commands can run in")
        folder = Path(view.tree).parent / "sandbox"
        folder.mkdir(mode=0o700, exist_ok=True)
        return SandboxSpec(
            run=command.mark,
            folder=str(folder),
            tree=view.tree,
            home=view.home,
            overlay=view.overlay,
            home_overlay=view.home_overlay,
            writable=(view.reports,),
            readable=self.readable,
            binds=(Bind(source=view.objects, target=self.objects), *view.read_only),
            egress_ports=self._egress_ports(self.networks.setup if view.setup else self.networks.goals),
            limits=self.limits,
            image=self.image,
            allow_ptrace=self.allow_ptrace,
            entry=command.entry,
        )

    def _egress_ports(self, reach: Reach) -> tuple[EgressPort, ...]:
        if reach.network is Network.NONE:
            return ()
        server = self.egress.proxy(reach.network, reach.allow, self.report, checked=bool(reach.allow))
        return (EgressPort(name=PROXY, port=PROXY_PORT, serve=server.serve),)


class Reach(msgspec.Struct, frozen=True):
    """A network, and the hosts of its list."""

    network: Network
    allow: tuple[str, ...]


class GoalNetworks(msgspec.Struct, frozen=True, kw_only=True):
    """What the commands of a verification can reach."""

    goals: Reach
    setup: Reach


class NetworkNoted:
    """Runs goals, and adds to each result the hosts that its commands asked for, and the answers."""

    def __init__(self, runner: GoalRunner, used: list[EgressEvent]) -> None:
        self.runner = runner
        self.used = used
        """What the egress ports of the commands report; one goal runs at a time."""

    async def run(self, goal: Goal, place: Place, mark: str) -> CheckResult:
        self.used.clear()
        result = await self.runner.run(goal, place, mark)
        return with_network(result, tuple(self.used)) if self.used else result


def with_network(result: CheckResult, used: tuple[EgressEvent, ...]) -> CheckResult:
    """A result with what its commands reached in its log; one that did not pass names the hosts that were denied."""
    lines = [f"{event.verdict}  {event.target or 'a request'}{_because(event)}" for event in used]
    output = "\n\n".join(part for part in (result.output, "network:\n" + "\n".join(lines)) if part)
    denied = list(dict.fromkeys(event.target for event in used if event.verdict == "denied" and event.target))
    detail = result.detail
    if denied and not result.passed:
        named = ", ".join(denied[:_NAMED]) + (f" and {len(denied) - _NAMED} more" if len(denied) > _NAMED else "")
        detail = f"{detail}; the network policy denied {named} (sandbox.allow and verification.network permit hosts)"
    return msgspec.structs.replace(result, output=output, detail=detail)


def _because(event: EgressEvent) -> str:
    return f": {event.detail}" if event.detail else ""


def inside(host: Host, environment: Mapping[str, str], home: str, ports: Mapping[str, int]) -> dict[str, str]:
    """The variables inside a sandbox, with its proxy."""
    way = proxy_variables(loopback_address(ports[PROXY])) if PROXY in ports else {}
    return {**sandboxed_environment(host, environment, home), **way}
