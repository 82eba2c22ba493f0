"""What an engine costs while nothing happens, and what it forgets in the end."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy

from genba.coordination.engine.durable_engine import MERGES, Engine, Workflow, prune, sessions_queue
from genba.coordination.engine.engine_database import EngineDatabase
from genba.coordination.engine.queue_polling import SELDOM_SECONDS
from genba.domain.ports import Steps
from tests.coordination.waiting import until_so

OWN = sessions_queue("one")


async def _part(payload: str, steps: Steps) -> str:
    return payload


@pytest.fixture
async def engine(address: str) -> AsyncIterator[Engine]:
    handlers = {"part": _part}
    made = await Engine.open(
        address, executor="one", workers=2, handlers=handlers, project="prj_this", poll_seconds=0.05
    )
    yield made
    await made.close()


def _rows(address: str, what: str) -> list[tuple[object, ...]]:
    database = EngineDatabase(address)
    connections = database.open()
    try:
        with connections.connect() as connection:
            query = what.replace("$", "dbos." if database.on_postgres else "")
            return [tuple(row) for row in connection.execute(sqlalchemy.text(query))]
    finally:
        connections.dispose()


def _intervals(address: str) -> set[float]:
    return {float(str(row[0])) for row in _rows(address, "SELECT polling_interval_sec FROM $queues")}


async def _ended(engine: Engine, name: str) -> None:
    async def so() -> bool:
        found = await engine.status(name)
        return found is not None and found.status == "success"

    await until_so(so)


def _any(workflow: Workflow) -> bool:
    return True


async def test_the_queues_are_looked_at_seldom_while_nothing_happens_and_often_again_when_something_does(
    engine: Engine, address: str
) -> None:
    assert _intervals(address) == {0.05, 0.1}

    async def slow() -> bool:
        return min(_intervals(address)) >= SELDOM_SECONDS

    async def quick() -> bool:
        return max(_intervals(address)) < SELDOM_SECONDS

    await until_so(slow)
    await engine.enqueue(kind="part", id="a", payload="{}", queue=OWN)
    await until_so(quick)
    await _ended(engine, "a")


async def test_what_ended_is_forgotten_when_it_is_old_enough_and_may_go(engine: Engine, address: str) -> None:
    for name in ("a", "b"):
        await engine.enqueue(kind="part", id=name, payload="{}", queue=OWN)
    await engine.enqueue(kind="part", id="turn", payload="{}", queue=MERGES, partition="main")
    for name in ("a", "b", "turn"):
        await _ended(engine, name)
    later, earlier = datetime.now(UTC) + timedelta(minutes=1), datetime.now(UTC) - timedelta(days=1)

    assert prune(address, project="prj_this", before=earlier, may_go=_any) == 0
    assert prune(address, project="prj_other", before=later, may_go=_any) == 0
    assert prune(address, project="prj_this", before=later, may_go=_any, dry_run=True) == 3
    assert prune(address, project="prj_this", before=later, may_go=lambda found: found.id != "b") == 2
    assert [await engine.status(name) is None for name in ("a", "b", "turn")] == [True, False, True]
    left = _rows(address, "SELECT workflow_uuid FROM $workflow_status")
    assert left == [("prj_this/b",)]


async def test_what_is_unfinished_is_never_forgotten(engine: Engine, address: str) -> None:
    await engine.enqueue(kind="part", id="waits", payload="{}", queue=sessions_queue("nobody"))

    assert prune(address, project="prj_this", before=datetime.now(UTC) + timedelta(days=1), may_go=_any) == 0
    found = await engine.status("waits")
    assert found is not None
    assert found.status == "enqueued"


def test_where_no_engine_was_nothing_is_made(tmp_path: Path) -> None:
    place = tmp_path / "board.db"
    place.touch()

    assert prune(str(place), project="prj_this", before=datetime.now(UTC), may_go=_any) == 0
    assert _rows(str(place), "SELECT name FROM sqlite_master") == []
