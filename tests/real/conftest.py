"""A scripted model for each test, and the real agents. An agent that is not there is a test that says: not run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clis import cli
from tests.standins.model_server import ModelServer


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model server of the test's own. It must not have been asked what its scenarios do not know."""
    with ModelServer() as server:
        yield server
    assert not server.unexpected


@pytest.fixture
def claude() -> Path:
    return cli("claude")


@pytest.fixture
def codex() -> Path:
    return cli("codex")


@pytest.fixture
def opencode() -> Path:
    return cli("opencode")


@pytest.fixture
def gemini() -> Path:
    return cli("gemini")
