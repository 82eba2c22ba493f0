"""GitHub in the tests: ours, and one that others made. Every request and answer is held to GitHub's own schemas."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.github.contract import Contract
from tests.github.emulated import Emulate, not_its_faults, running
from tests.github.watched import received, the_judge, watched
from tests.standins.github.server import GitHub

Hubs = Callable[..., GitHub]


@pytest.fixture(scope="session")
def judge() -> Contract:
    return the_judge()


@pytest.fixture
def contract(judge: Contract) -> Iterator[Contract]:
    """What is wrong with any exchange of a test is the failure of that test."""
    with received(judge):
        yield judge


@pytest.fixture
def hubs() -> Iterator[Hubs]:
    """As many GitHubs as a test wants: `hubs()`, or `hubs(graphql=False)` for one that answers GraphQL with 404."""
    with ExitStack() as opened:

        def make(*, graphql: bool = True) -> GitHub:
            return opened.enter_context(watched(graphql=graphql))

        yield make


@pytest.fixture
def hub(hubs: Hubs) -> GitHub:
    """A GitHub with nothing on it."""
    return hubs()


@pytest.fixture(scope="module")
def emulating(judge: Contract, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulate]:
    with running(tmp_path_factory.mktemp("emulate"), judge.check) as made:
        yield made


@pytest.fixture
def emulate(emulating: Emulate, judge: Contract) -> Iterator[Emulate]:
    """npm's emulate, one for all tests of a module. What it is known to do otherwise than GitHub is left out."""
    with received(judge, but=not_its_faults):
        yield emulating
