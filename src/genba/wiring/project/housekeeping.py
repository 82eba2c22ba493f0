"""Clearing away what ended work left: in git, in folders of sessions, and on the remote."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from genba.connections.detached.job_dir import questions
from genba.connections.git.merging.session_sync import Sharing
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import held
from genba.connections.git.worktrees.housekeeping import GitHousekeeping
from genba.connections.git.worktrees.trash import delete_later, sweep, throw_away
from genba.domain.tasks.housekeeping import Candidate, SessionLeftovers

_PATIENCE_SECONDS = 600.0
_AT_ONCE = 500


class RepositoryHousekeeping:
    """Clears away in one repository."""

    def __init__(self, layout: RepositoryLayout) -> None:
        self.layout = layout

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        async with held(self.layout.own / "locks" / "housekeeping", "genba gc", _PATIENCE_SECONDS):
            yield
            await asyncio.to_thread(sweep, self.layout, self.layout.own)

    async def find(self, runs: Mapping[str, SessionLeftovers], before: float, rescued: bool) -> Sequence[Candidate]:
        return await GitHousekeeping(self.layout, runs, before, rescued).find()

    async def discard(self, name: str, *paths: Path) -> str:
        await asyncio.to_thread(self._discard, name, *paths)
        return ""

    def _discard(self, name: str, *paths: Path) -> None:
        moved = [throw_away(self.layout, path, name) for path in paths]
        for first in range(0, len(moved), _AT_ONCE):
            delete_later(*moved[first : first + _AT_ONCE])

    def has_agent(self, folder: Path) -> bool:
        return any(question.is_held() for question in questions(folder))

    def shared(self, remote: str) -> Sharing:
        return Sharing(self.layout, remote)
