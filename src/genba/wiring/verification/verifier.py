"""Everything that a verification needs, wired together. Only what verifies loads this module."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba import __version__
from genba.connections.clock import SystemClock
from genba.connections.git.private.checkouts import GitCheckouts
from genba.connections.git.repository.history import GitHistory
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.goals.commands import Folders
from genba.connections.goals.results import FileResults
from genba.connections.goals.runner import GoalEngine
from genba.connections.goals.tools import identity
from genba.connections.goals.validators import ValidatorRunner
from genba.connections.processes.environment import passed_on
from genba.connections.secrets.scanner import GitSecretScanner
from genba.definitions.project.sandbox_section import (
    AgentEnvironment,
    AgentSandbox,
    MaximumLimits,
    SandboxSettings,
    agent_environment,
)
from genba.domain.goals.goal import CommandLine
from genba.domain.ports import GoalRunner, Processes, Sandbox
from genba.domain.processes import is_of_one_process, service_mark
from genba.domain.sessions.sandbox import SandboxKind
from genba.execution.verification.policy import Policy
from genba.execution.verification.verify import Verifier

if TYPE_CHECKING:
    from genba.domain.sessions.egress import EgressEvent

_RULES = "tests are counted"
"""What results are judged by: kept results of older rules do not count."""
_UNKNOWN_AGENT = "goals"
"""Who the commands of goals are where no agent is known that wrote what they run."""


def engine(
    layout: RepositoryLayout,
    processes: Processes,
    environment: dict[str, str],
    folders: Folders | None = None,
    own_network: bool = False,
    repository: Path | None = None,
) -> GoalEngine:
    """Runs goals, the same for a working tree and for a clean checkout."""
    history = GitHistory(layout.git)
    scanner = GitSecretScanner(processes, environment, layout.common, history.read, layout.own / "secrets")
    return GoalEngine(
        processes,
        environment,
        scanner,
        folders=folders,
        own_network=own_network,
        repository=repository,
        listing=history.files,
    )


def validators(layout: RepositoryLayout, processes: Processes, environment: dict[str, str]) -> ValidatorRunner:
    return ValidatorRunner(engine(layout, processes, environment))


def results(layout: RepositoryLayout) -> FileResults:
    return FileResults(layout.own / "goals")


def verifier(
    layout: RepositoryLayout,
    processes: Processes,
    redact: Callable[[str], str],
    mark: str,
    fence: GoalSandbox | None = None,
    agent: str = "",
) -> Verifier:
    """Looks at commits. With a fence, commands of goals run in that sandbox.

    What they run was written by an agent, so to Genba they are no person, but that agent.
    """
    from genba.application.sandbox.goal_commands import NetworkNoted, OwnTemporaryFolder  # noqa: PLC0415  (only who verifies needs it)

    environment = passed_on(os.environ, *layout.folders)
    known_as = {"GENBA_RUN": mark, "GENBA_AGENT": agent or _UNKNOWN_AGENT}
    overlays = fence is not None and fence.overlays
    checkouts = GitCheckouts(layout, mark, partial(_left_by, processes), filters=fence is None, overlays=overlays)

    def runner_for(policy: Policy) -> GoalRunner:
        variables = {**environment, **policy.environment, **known_as}
        installed = None if policy.setup else layout.main  # a setup installs the commit itself
        if fence is None or not policy.sandboxed:
            own = OwnTemporaryFolder(processes, checkouts.view)
            return engine(layout, own, variables, checkouts, repository=installed)
        used: list[EgressEvent] = []
        around = fence.around(policy, processes, checkouts, used.append)
        return NetworkNoted(engine(layout, around, variables, checkouts, True, installed), used)

    async def tools(policy: Policy, commands: tuple[CommandLine, ...]) -> str:
        found = await asyncio.to_thread(identity, commands, {**environment, **policy.environment})
        return f"{found}\n{await fence.image()}" if fence is not None and policy.sandboxed else found

    return Verifier(
        history=GitHistory(layout.git),
        checkouts=checkouts,
        runner_for=runner_for,
        results=results(layout),
        clock=SystemClock(),
        environment=fingerprint({**environment, "GENBA_SANDBOX": fence.fingerprint if fence is not None else ""}),
        mark=mark,
        redact=redact,
        tools=tools,
    )


async def _left_by(processes: Processes, dead: str) -> None:
    """End what a killed verification left running. A resumed session ends its own."""
    for each in (dead, service_mark(dead)) if is_of_one_process(dead) else ():
        await processes.sweep(each)


async def sweep_checkouts(layout: RepositoryLayout, processes: Processes) -> None:
    """Remove the checkouts of killed verifications."""
    await GitCheckouts(layout, left_by=partial(_left_by, processes)).sweep()


class GoalSandbox:
    """The sandbox of the commands of goals: the project's, with the network of the agent whose work they check."""

    def __init__(
        self,
        layout: RepositoryLayout,
        kind: SandboxKind,
        sandbox: Sandbox,
        settings: SandboxSettings,
        agent: AgentEnvironment | None = None,
    ) -> None:
        project = agent_environment(MaximumLimits(sandbox=settings), AgentSandbox())
        own = agent or project
        self.project = project
        self.own = msgspec.structs.replace(project, network=own.network, allow=own.allow, allow_ptrace=own.allow_ptrace)
        self.layout = layout
        self.kind = kind
        self.sandbox = sandbox
        self.settings = settings

    @property
    def fingerprint(self) -> str:
        """What results depend on, as one text."""
        own = (self.own.network, self.own.allow, self.own.allow_ptrace)
        return f"{self.kind} {msgspec.json.encode((self.settings, own)).decode()}"

    @property
    def overlays(self) -> bool:
        """Whether checkouts can be mounted in layers; otherwise each goal gets a copy."""
        from genba.connections.git.worktrees.overlay_mount import can_overlay  # noqa: PLC0415  (only a sandbox needs it)

        return self.kind is SandboxKind.BUBBLEWRAP and can_overlay(self.layout.own)

    async def image(self) -> str:
        """What the image is now in which commands run; its name may mean another one tomorrow."""
        from genba.connections.sandbox.containers.containers import ContainerSandbox  # noqa: PLC0415  (only containers need it)

        if not self.settings.image or not isinstance(self.sandbox, ContainerSandbox):
            return ""
        return await self.sandbox.image_id(self.settings.image)

    def around(
        self, policy: Policy, processes: Processes, checkouts: GitCheckouts, on_event: Callable[[EgressEvent], None]
    ) -> Processes:
        from genba.application.sandbox.goal_commands import (  # noqa: PLC0415  (see above)
            CheckoutSpecs,
            EnclosedCommands,
            GoalNetworks,
            Reach,
        )
        from genba.wiring.sandbox.environment_ports import environment_ports  # noqa: PLC0415

        own, project = self.own, self.project
        networks = GoalNetworks(
            goals=Reach(own.network, own.allow) if policy.network is None else Reach(policy.network, project.allow),
            setup=Reach(policy.setup_network, project.allow),
        )
        seen = passed_on(os.environ, *self.layout.folders)
        ports = environment_ports()
        specs = CheckoutSpecs(self.layout, ports, own, networks, seen, checkouts.view, on_event)
        return EnclosedCommands(self.sandbox, processes, ports.host, specs.spec)


def fingerprint(environment: dict[str, str]) -> str:
    """What a result depends on besides the tree and the goal: the machine, the tools, and this program."""
    parts = [platform.platform(), sys.version, __version__, _RULES, str(Path(sys.executable))]
    parts += [f"{name}={value}" for name, value in sorted(environment.items())]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
