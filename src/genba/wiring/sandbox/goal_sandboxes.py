"""The sandbox that goals run in, by who made the work that they check.

Law: goals run in the sandbox that the work was made in, and with its network. Where neither the session, nor its agent,
nor the project has a sandbox, any that an agent of the project has is taken: a branch may contain work of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from genba.application.verification.maker import Maker, first_event
from genba.domain.errors import ConfigurationError, NotFoundError
from genba.domain.sessions.sandbox import SandboxKind
from genba.wiring.sandbox.sandboxes import sandbox_chooser

if TYPE_CHECKING:
    from genba.definitions.project.sandbox_section import AgentEnvironment
    from genba.wiring.project.project_context import ProjectContext
    from genba.wiring.verification.verifier import GoalSandbox


def fence_for(context: ProjectContext, maker: Maker) -> GoalSandbox | None:
    """The sandbox of the goals that check some work; None where neither the project nor its maker has one."""
    own = _environment(context, maker.agent)
    kinds = (kind for kind in _kinds(context, maker, own) if kind is not None and kind.is_sandboxed)
    return context.fence(next(kinds, SandboxKind.WORKTREE), agent=own)


def _kinds(context: ProjectContext, maker: Maker, own: AgentEnvironment | None) -> Iterator[SandboxKind | None]:
    yield _recorded(context, maker.run)
    yield own.kind if own is not None else None
    yield sandbox_chooser(context).kind_for(context.project)
    for name in context.registry.folders():
        each = _environment(context, name)
        yield each.kind if each is not None else None


def _environment(context: ProjectContext, agent: str) -> AgentEnvironment | None:
    """What the definition of an agent says; None where there is none that can be read."""
    if not agent:
        return None
    try:
        return context.registry.load(agent).environment
    except (ConfigurationError, NotFoundError):
        return None


def _recorded(context: ProjectContext, run: str) -> SandboxKind | None:
    """The kind of sandbox that a session began in, where its journal is on this machine."""
    if not run:
        return None
    try:
        journal = Path((context.layout.run_folder(run) / "journal").read_text("utf-8"))
    except OSError:
        return None
    started = first_event(context, journal)
    return SandboxKind(started.sandbox) if started is not None and started.sandbox in list(SandboxKind) else None
