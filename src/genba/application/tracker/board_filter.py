"""The issues on a board of GitHub, for an executor that works on no others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from genba.application.facilitator.facilitator import fresh_copy
from genba.application.project.project_context import ProjectContext
from genba.coordination.facilitator.facilitator import Scope
from genba.domain.errors import GenbaError, RemoteUnavailable


class BoardFilter:
    """Which issues are on the board, as this executor read it last."""

    def __init__(self, context: ProjectContext, scope: Scope, numbers: frozenset[int]) -> None:
        self.context = context
        self.scope = scope
        self.numbers = numbers

    @classmethod
    async def read(cls, context: ProjectContext, scope: Scope) -> "BoardFilter":
        """Raises where the board cannot be read now: no executor guesses what is on it."""
        numbers, notes = await _numbers(context, scope)
        if numbers is None:
            raise RemoteUnavailable(
                f"the board {_name(scope)} could not be read: {'; '.join(notes)}", hint="genba doctor"
            )
        return cls(context, scope, numbers)

    @property
    def name(self) -> str:
        return _name(self.scope)

    @asynccontextmanager
    async def followed(
        self, seconds: float, note: Callable[[str], None], wake: Callable[[], None]
    ) -> AsyncIterator[None]:
        """Read the board every so often, beside whatever is done meanwhile."""
        reading = asyncio.ensure_future(self._follow(seconds, note, wake))
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.wait({reading})

    async def _follow(self, seconds: float, note: Callable[[str], None], wake: Callable[[], None]) -> None:
        noted: tuple[str, ...] = ()
        while True:
            await asyncio.sleep(seconds)
            try:
                numbers, notes = await _numbers(self.context, self.scope)
            except GenbaError as error:
                numbers, notes = None, (error.message,)
            if notes and not noted:
                note(f"the board {self.name} was not read again: {'; '.join(notes)}")
            noted = notes
            if numbers is not None and numbers != self.numbers:
                self.numbers = numbers
                wake()


async def _numbers(context: ProjectContext, scope: Scope) -> tuple[frozenset[int] | None, tuple[str, ...]]:
    asked = msgspec.structs.replace(scope, numbers=None)
    found, notes = await fresh_copy(context, asked, offline=False, old_board=False)
    return found.numbers, notes


def _name(scope: Scope) -> str:
    owner, number = scope.board or ("", 0)
    return f"{owner}/{number}"
