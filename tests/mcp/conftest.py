"""The real service on a real SQLite file, behind a real port."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.mcp.door import Door, open_house
from tests.workflow.house import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as made:
        yield made


@pytest.fixture
async def door(house: House) -> AsyncIterator[Door]:
    async with Door.opened(house) as made:
        yield made
