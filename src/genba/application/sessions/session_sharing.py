"""Sessions that hosts share through a remote."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from genba.domain.errors import GenbaError, StateConflictError
from genba.domain.events import Notice

if TYPE_CHECKING:
    from genba.domain.ports import Journal
    from genba.domain.sessions.workspaces import Workspace

_PATIENCE_SECONDS = 30.0
_SHORTEST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.25, 8.0


class SessionSync(Protocol):
    """What hosts share of their sessions through a remote."""

    async def share(self, workspace: Workspace) -> None:
        """Push what a session has come to. Raises where the remote is out of reach, or another host has gone on."""
        ...

    async def bring_commit(self, commit: str) -> None:
        """Fetch a commit that another host made."""
        ...

    async def forget(self, run: str, branch: str) -> bool:
        """Remove what was shared of a session, if other refs keep all of it; True when it is gone."""
        ...


async def forget_session(sync: SessionSync, workspace: Workspace | None, journal: Journal) -> None:
    """Remove what was shared of a session that is over."""
    if workspace is None:
        return
    try:
        await sync.forget(workspace.run, workspace.branch)
    except GenbaError as error:
        journal.emit(Notice(message=f"what was shared with other hosts stays there: {error.message}"))


class FleetSharing:
    """What other hosts see of one session."""

    def __init__(self, sync: SessionSync, journal: Journal, say: Callable[[str], None]) -> None:
        self.sync = sync
        self.journal = journal
        self.say = say

    async def share(self, workspace: Workspace) -> None:
        try:
            await self.sync.share(workspace)
        except GenbaError as error:
            self._note(error)

    async def hand_over(self, workspace: Workspace) -> None:
        """Push work that another host may land. A remote that refuses it is asked again, for half a minute.

        Then it is handed over all the same: a host that cannot find it leaves it in the queue; this one can land it.
        """
        patience, wait = _PATIENCE_SECONDS, _SHORTEST_WAIT_SECONDS
        while True:
            try:
                return await self.sync.share(workspace)
            except StateConflictError as error:
                return self._note(error)
            except GenbaError as error:
                message = _not_shared(error)
            if patience <= 0:
                self.journal.emit(Notice(message=message))
                return self.say(message)
            if wait == _SHORTEST_WAIT_SECONDS:
                self.say(f"{message}; trying again for {patience:g} s")
            await asyncio.sleep(min(wait, patience))
            patience, wait = patience - wait, min(2 * wait, _LONGEST_WAIT_SECONDS)

    def _note(self, error: GenbaError) -> None:
        self.journal.emit(Notice(message=_not_shared(error)))


def _not_shared(error: GenbaError) -> str:
    return f"not shared with other hosts: {error.message}"
