"""The real service on a real SQLite file, behind a real port."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.mcp.door import Door, open_house
from tests.workflow.context import House


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as made:
        yield made


@pytest.fixture
async def door(context: House) -> AsyncIterator[Door]:
    async with Door.opened(context) as made:
        yield made
