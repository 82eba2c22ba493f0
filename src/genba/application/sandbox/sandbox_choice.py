"""Chooses the sandbox of a session."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.project.project import Project
from genba.domain.errors import ConfigurationError
from genba.domain.ports import Sandbox
from genba.domain.problems import Problem, did_you_mean
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.sandbox import SANDBOX_VARIABLE, SandboxKind

if TYPE_CHECKING:
    from genba.application.ports import Files, Layout

_RISK = "--i-accept-the-risk   runs it all the same, as you, on this machine"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The sandbox that a session gets."""

    kind: SandboxKind
    fallen_back: str = ""
    """Why there is none although a sandbox was the default."""


class SandboxChooser:
    """Chooses sandboxes on this machine."""

    def __init__(self, layout: Layout, files: Files, make: Callable[[SandboxKind, tuple[str, ...]], Sandbox]) -> None:
        self.layout = layout
        self.files = files
        self.make = make
        """Makes the sandbox of a kind, with the options of the project."""

    def choose(self, definition: AgentDefinition, accepts_risk: bool) -> Choice:
        """The kind of sandbox. Raises ConfigurationError where the agent may not run in one that works here."""
        wanted = definition.environment.kind or _from_environment()
        isolated = definition.file.runner.execution.worktree.enabled
        choice = self._chosen(wanted, isolated, definition)
        if (
            not choice.kind.is_sandboxed
            and definition.widest_permission is PermissionMode.BYPASS_PERMISSIONS
            and not accepts_risk
        ):
            why = f": {choice.fallen_back}" if choice.fallen_back else ""
            message = f"bypassPermissions without a sandbox lets the agent do on this machine whatever you can do{why}"
            source = definition.sources.get("runner.boundaries.permissionMode", definition.sources["name"])
            raise ConfigurationError((Problem(source, "runner.boundaries.permissionMode", message, _RISK),))
        return choice

    def _chosen(self, wanted: SandboxKind | None, isolated: bool, definition: AgentDefinition) -> Choice:
        if not isolated:
            if wanted is not None and wanted.is_sandboxed:
                message = f"{wanted} needs a working tree of its own: runner.execution.worktree.enabled is false"
                source = definition.sources.get("runner.execution.worktree.enabled", definition.sources["name"])
                raise ConfigurationError((Problem(source, "runner.execution.worktree.enabled", message),))
            message = "it works in your own checkout" if wanted is None else ""
            return Choice(kind=SandboxKind.WORKTREE, fallen_back=message)
        if wanted is None:
            problem = self._trial()
            return Choice(kind=SandboxKind.WORKTREE if problem else SandboxKind.BUBBLEWRAP, fallen_back=problem)
        if wanted is SandboxKind.BUBBLEWRAP:
            problem = self._trial()
        else:
            problem = self.make(wanted, definition.environment.options).problem()
        if problem:
            source = definition.sources.get("runner.sandbox.kind", "sandbox")
            raise ConfigurationError((Problem(source, "sandbox.kind", f"{wanted}: {problem}", "genba doctor"),))
        return Choice(kind=wanted)

    def kind_for(self, project: Project) -> SandboxKind:
        """The kind of sandbox that the project has on this machine."""
        wanted = project.file.sandbox.kind or _from_environment()
        if wanted is not None:
            return wanted
        return SandboxKind.WORKTREE if self._trial() else SandboxKind.BUBBLEWRAP

    def _trial(self) -> str:
        """Why bubblewrap cannot be used. That it can is remembered, until the machine or its bwrap is another."""
        mark = _this_machine()
        memory = self.layout.own / "bubblewrap"
        if mark:
            try:
                if memory.read_text("utf-8") == mark:
                    return ""
            except OSError:
                pass
        problem = self.make(SandboxKind.BUBBLEWRAP, ()).problem()
        if mark and not problem:
            self.files.make_private_folder(memory.parent)
            self.files.put(memory, mark.encode())
        return problem


def _from_environment() -> SandboxKind | None:
    named = os.environ.get(SANDBOX_VARIABLE, "")
    if not named:
        return None
    try:
        return SandboxKind(named)
    except ValueError as error:
        hint = did_you_mean(named, list(SandboxKind)) or f"known: {', '.join(SandboxKind)}"
        problem = Problem("environment", SANDBOX_VARIABLE, f'"{named[:80]}" is no kind of sandbox', hint)
        raise ConfigurationError((problem,)) from error


def _this_machine() -> str:
    """What the answer to "does bubblewrap work here" depends on; empty where that is unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        found = next(
            path
            for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
            if (path := Path(folder) / "bwrap").is_file()
        )
        return f"{boot} {os.getuid()} {found} {found.stat().st_mtime_ns}"
    except (OSError, StopIteration):
        return ""
