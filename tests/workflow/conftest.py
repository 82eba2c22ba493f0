"""A blackboard with its workflow, a desk that judges by a script, and callers of every kind."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.blackboard.conftest import Postgres, address, board, open_board, postgres
from tests.workflow.context import House

__all__ = ["Postgres", "address", "board", "context", "open_board", "postgres"]


@pytest.fixture
async def context(open_board: Callable[..., object]) -> AsyncIterator[House]:
    made = House(open_board)
    yield made
    await made.close()
