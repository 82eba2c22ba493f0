"""Who made the work that goals check: the agent and the session."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from genba.domain.events import RunStarted

if TYPE_CHECKING:
    from pathlib import Path

    from genba.application.project.project_context import ProjectContext

_NEWEST_JOURNALS = 500


class Maker(msgspec.Struct, frozen=True, kw_only=True):
    """The agent and the session that made some work, as far as they are known."""

    agent: str = ""
    run: str = ""


def maker_of_branch(context: ProjectContext, branch: str) -> Maker:
    """The newest session on a branch: by the journals of this machine, or by the tasks of the project."""
    for journal in islice(context.journals(), _NEWEST_JOURNALS) if branch else ():
        started = first_event(context, journal)
        if started is not None and started.workspace.branch == branch:
            return Maker(agent=started.agent, run=started.run)
    numbers = context.board().tasks_of_branch(branch) if branch and context.has_board() else ()
    for number in numbers:
        session = context.board().newest_session(number)
        if session.branch == branch:
            return Maker(agent=session.agent, run=session.run)
    return Maker()


def first_event(context: ProjectContext, journal: Path) -> RunStarted | None:
    try:
        return next(
            (event for event in islice(context.ports.journals.read(journal), 3) if isinstance(event, RunStarted)), None
        )
    except OSError:
        return None
