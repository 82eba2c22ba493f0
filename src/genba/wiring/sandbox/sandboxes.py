"""Constructs sandboxes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from genba.application.sandbox.sandbox_choice import SandboxChooser
from genba.domain.ports import Processes, Sandbox
from genba.domain.sessions.sandbox import SandboxKind

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext


def make(kind: SandboxKind, processes: Processes, options: tuple[str, ...] = ()) -> Sandbox:
    """The sandbox of a kind. `options` are the project's; the user's own are in the environment."""
    match kind:
        case SandboxKind.WORKTREE:
            from genba.connections.sandbox.worktree import WorktreeSandbox  # noqa: PLC0415  (one kind at a time)

            return WorktreeSandbox(processes)
        case SandboxKind.BUBBLEWRAP:
            from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox  # noqa: PLC0415  (see above)

            return BubblewrapSandbox(processes)
        case SandboxKind.DOCKER | SandboxKind.PODMAN:
            from genba.connections.sandbox.containers.containers import ContainerSandbox  # noqa: PLC0415  (see above)
            from genba.connections.sandbox.containers.options import OPTIONS_VARIABLE  # noqa: PLC0415  (see above)

            own = tuple(os.environ.get(OPTIONS_VARIABLE, "").split())
            return ContainerSandbox(kind, processes, options=own, project_options=options)


def sandbox_chooser(context: ProjectContext) -> SandboxChooser:
    return SandboxChooser(
        context.layout, context.ports.files, lambda kind, options: make(kind, context.processes, options)
    )
