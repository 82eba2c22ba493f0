"""What the checkup of this machine needs of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from genba.domain.sessions.sandbox import SandboxKind

if TYPE_CHECKING:
    from genba.application.ports import Environments, Files
    from genba.application.project.project_context import ProjectContext
    from genba.domain.ports import Processes, Sandbox
    from genba.domain.sessions.sandbox import Provider


class AgentTool(Protocol):
    """An agent that is a program of its own."""

    @property
    def install(self) -> str: ...

    def executable(self, environment: Mapping[str, str]) -> str | None: ...

    def problem(self, environment: Mapping[str, str]) -> str: ...

    def provider(self, environment: Mapping[str, str]) -> Provider | None: ...


class MachineTools(Protocol):
    """The programs and packages that Genba uses."""

    def agent(self, adapter: str, command: str) -> AgentTool: ...

    def gitleaks(self, environment: Mapping[str, str]) -> Path | None: ...

    def git_environment(self, environment: Mapping[str, str]) -> dict[str, str]: ...

    def telemetry(self, environment: Mapping[str, str]) -> tuple[str, str, str]:
        """Where telemetry goes, or why it goes nowhere, and the remedy."""
        ...

    def parent_proxy(self, environment: Mapping[str, str]) -> tuple[str, bool]:
        """The variable of a proxy that sandboxes do not use, and whether they use another proxy."""
        ...


class SandboxTools(Protocol):
    """What trials of sandboxes need."""

    def make(self, kind: SandboxKind, options: tuple[str, ...]) -> Sandbox: ...

    def readable(self, asked_for: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]: ...

    def overlay_problem(self, folder: Path) -> str: ...

    def limits(self) -> Sequence[str]:
        """The limits that control groups can set here."""
        ...

    def scratch(self, folder: str | Path, prefix: str) -> AbstractContextManager[Path]:
        """A new folder that only this user may enter; removed in the end."""
        ...


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, as the checkup reaches it."""

    processes: Processes
    environments: Environments
    files: Files
    tools: MachineTools
    sandboxes: SandboxTools
    find: Callable[[Path], Awaitable[ProjectContext]]
    """The project around a folder."""
