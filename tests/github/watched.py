"""A GitHub of our own at which the contract listens, for tests wherever they are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import pytest

from tests.github import material
from tests.github.contract import Contract
from tests.standins.github.server import GitHub


@lru_cache(maxsize=1)
def the_judge() -> Contract:
    """GitHub's schemas, read once for each process of the tests."""
    made = Contract(material.openapi(), material.sdl())
    made.read()
    return made


@contextmanager
def received(judge: Contract, but: Callable[[list[str]], list[str]] = list) -> Iterator[Contract]:
    try:
        yield judge
    finally:
        wrong = but(judge.take())
    if wrong:
        pytest.fail("GitHub has not this:\n" + "\n".join(wrong), pytrace=False)


@contextmanager
def watched(*, graphql: bool = True) -> Iterator[GitHub]:
    """A server with nothing on it; without GraphQL it answers 404 there."""
    with received(the_judge()) as judge, GitHub(schema=material.sdl() if graphql else None, watch=judge.watch) as hub:
        yield hub
