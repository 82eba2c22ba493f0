"""The steps of a run that nobody remembers but its journal."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class PlainSteps:
    """Does each step once, as it comes."""

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:  # noqa: ARG002  (the port's)
        return await work()
