"""The steps of a session that its journal alone remembers."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from genba.domain.errors import GenbaError
from genba.domain.ports import Steps

T = TypeVar("T")

_NEED_THE_TREE = ("iterate", "verify", "send back")


class PlainSteps:
    """Does each step once, as it comes."""

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:  # noqa: ARG002  (the port's)
        return await work()


class GroundlessSteps:
    """Steps of a session whose worktree is gone: what was done is remembered, and what needs the tree is refused."""

    def __init__(self, steps: Steps, gone: GenbaError) -> None:
        self.steps = steps
        self.gone = gone

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        async def refused() -> T:
            raise self.gone

        return await self.steps.run(name, refused if name in _NEED_THE_TREE else work, kind)
