"""How a command gets its house: the repository around the current folder."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from genba.wiring import House

T = TypeVar("T")


def house_here() -> House:
    return asyncio.run(House.find(Path.cwd()))


def run_async(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)
