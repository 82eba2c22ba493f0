"""A blackboard with its workflow, a desk that judges by a script, and callers of every kind."""

from collections.abc import Callable, Iterator

import pytest

from tests.blackboard.conftest import Postgres, address, board, open_board, postgres
from tests.workflow.house import House

__all__ = ["Postgres", "address", "board", "house", "open_board", "postgres"]


@pytest.fixture
def house(open_board: Callable[..., object]) -> Iterator[House]:
    made = House(open_board)
    yield made
    made.close()
