"""The machine that Genba runs on, for its checkup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

from genba.application.project.machine import AgentTool, Machine
from genba.connections.agents.catalogue import adapter_class
from genba.connections.egress.upstream_proxy import opted_in, unused_parent
from genba.connections.git.repository.environment import host_environment
from genba.connections.git.worktrees.overlay_mount import overlay_problem
from genba.connections.processes import environment
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.removal import removed_afterwards
from genba.connections.sandbox.limits import make_group
from genba.connections.secrets.gitleaks import find_gitleaks
from genba.connections.telemetry.process import check
from genba.domain.ports import Processes, Sandbox
from genba.domain.sessions.sandbox import SandboxKind, SandboxLimits
from genba.wiring.project.connections import OwnFiles
from genba.wiring.project.project_context import ProjectContext
from genba.wiring.sandbox.readable_paths import readable_folders
from genba.wiring.sandbox.sandboxes import make


def this_machine() -> Machine:
    processes = ProcessSupervisor()
    return Machine(
        processes=processes,
        environments=environment,
        files=OwnFiles(),
        tools=Tools(),
        sandboxes=Sandboxes(processes),
        find=ProjectContext.find,
    )


class Tools:
    """The programs and packages that Genba uses."""

    def agent(self, adapter: str, command: str) -> AgentTool:
        kind = adapter_class(adapter)
        return cast(AgentTool, kind(kind.settings_type(type=adapter, command=command), Path()))

    def gitleaks(self, environment: Mapping[str, str]) -> Path | None:
        return find_gitleaks(environment)

    def git_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        return host_environment(environment)

    def telemetry(self, environment: Mapping[str, str]) -> tuple[str, str, str]:
        return check(environment)

    def parent_proxy(self, environment: Mapping[str, str]) -> tuple[str, bool]:
        return unused_parent(environment), bool(opted_in(environment))


class Sandboxes:
    """What trials of sandboxes need."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes

    def make(self, kind: SandboxKind, options: tuple[str, ...]) -> Sandbox:
        return make(kind, self.processes, options)

    def readable(self, asked_for: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
        return readable_folders(None, asked_for, environment)

    def overlay_problem(self, folder: Path) -> str:
        return overlay_problem(folder)

    def limits(self) -> Sequence[str]:
        group = make_group(SandboxLimits(memory_mb=1024, processes=1024, cpus=1))
        limited = sorted(group.folders)
        group.remove()
        return limited

    def scratch(self, folder: str | Path, prefix: str) -> AbstractContextManager[Path]:
        return removed_afterwards(folder, prefix)
