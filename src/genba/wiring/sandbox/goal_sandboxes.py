"""The sandbox that goals run in, by who made the work that they check.

Law: goals run in the sandbox that the work was made in, and with its network. Where neither the session, nor its agent,
nor the project has a sandbox, any that an agent of the project has is taken: a branch may contain work of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba.connections.journal.jsonl import read_journal
from genba.domain.errors import ConfigurationError, NotFoundError
from genba.domain.events import RunStarted
from genba.domain.sessions.sandbox import SandboxKind
from genba.wiring.sandbox.sandbox_choice import kind_for

if TYPE_CHECKING:
    from genba.definitions.project.sandbox_section import AgentEnvironment
    from genba.wiring.project.project_context import ProjectContext
    from genba.wiring.verification.verifier import GoalSandbox

_NEWEST_JOURNALS = 500


class Maker(msgspec.Struct, frozen=True, kw_only=True):
    """The agent and the session that made some work, as far as they are known."""

    agent: str = ""
    run: str = ""


def maker_of_branch(context: ProjectContext, branch: str) -> Maker:
    """The newest session on a branch: by the journals of this machine, or by the tasks of the project."""
    for journal in islice(context.journals(), _NEWEST_JOURNALS) if branch else ():
        started = _started(journal)
        if started is not None and started.workspace.branch == branch:
            return Maker(agent=started.agent, run=started.run)
    numbers = context.board().tasks_of_branch(branch) if branch and context.has_board() else ()
    for number in numbers:
        session = context.board().newest_session(number)
        if session.branch == branch:
            return Maker(agent=session.agent, run=session.run)
    return Maker()


def fence_for(context: ProjectContext, maker: Maker) -> GoalSandbox | None:
    """The sandbox of the goals that check some work; None where neither the project nor its maker has one."""
    own = _quarters(context, maker.agent)
    kinds = (kind for kind in _kinds(context, maker, own) if kind is not None and kind.has_walls)
    return context.fence(next(kinds, SandboxKind.WORKTREE), agent=own)


def _kinds(context: ProjectContext, maker: Maker, own: AgentEnvironment | None) -> Iterator[SandboxKind | None]:
    yield _recorded(context, maker.run)
    yield own.kind if own is not None else None
    yield kind_for(context.project, context.layout, context.processes)
    for name in context.registry.folders():
        each = _quarters(context, name)
        yield each.kind if each is not None else None


def _quarters(context: ProjectContext, agent: str) -> AgentEnvironment | None:
    """What the definition of an agent says; None where there is none that can be read."""
    if not agent:
        return None
    try:
        return context.registry.load(agent).quarters
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
    started = _started(journal)
    return SandboxKind(started.sandbox) if started is not None and started.sandbox in list(SandboxKind) else None


def _started(journal: Path) -> RunStarted | None:
    try:
        return next((event for event in islice(read_journal(journal), 3) if isinstance(event, RunStarted)), None)
    except OSError:
        return None
