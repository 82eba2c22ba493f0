import asyncio
import errno
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import inspect, text

from genba.blackboard.database.connect import open_store
from genba.blackboard.database.schema import metadata
from genba.coordination.engine.durable_engine import MERGES, Engine, Handler, Workflow, sessions_queue
from genba.coordination.engine.engine_database import EngineDatabase
from genba.coordination.engine.engine_log import EngineEvent
from genba.coordination.engine.executor_lock import FileLock
from genba.domain.errors import ConfigurationError, RateLimited, StateConflictError, UnexpectedError
from genba.domain.ports import Steps
from tests.coordination.waiting import DEADLINE, until_so

OWN = sessions_queue("one")

Open = Callable[..., Awaitable[Engine]]


@pytest.fixture
async def opened(address: str) -> AsyncIterator[Open]:
    """Opens engines, one after the other; the last one is closed in the end."""
    known: list[Engine] = []

    async def open_one(part: Handler, workers: int = 4, executor: str = "one", **wanted: Any) -> Engine:
        handlers: Mapping[str, Handler] = {"part": part, "turn": part}
        engine = await Engine.open(
            address, executor=executor, workers=workers, handlers=handlers, poll_seconds=0.02, **wanted
        )
        known.append(engine)
        return engine

    yield open_one
    for engine in known:
        await engine.close()


class Workshop:
    """A handler whose workflows wait until they are let go; it remembers who began, and who was at work together."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.stopped: list[str] = []
        self.most = 0
        self._at_work = 0
        self._go: dict[str, asyncio.Event] = {}

    def go(self, *names: str) -> None:
        for name in names:
            self._event(name).set()

    async def part(self, payload: str, steps: Steps) -> str:
        self.begun.append(payload)
        self._at_work += 1
        self.most = max(self.most, self._at_work)
        try:
            came = await steps.run("work", lambda: self._work(payload), str)
        except asyncio.CancelledError:
            self.stopped.append(payload)
            raise
        finally:
            self._at_work -= 1
        self.ended.append(payload)
        return came

    async def _work(self, payload: str) -> str:
        await self._event(payload).wait()
        return payload.upper()

    def _event(self, name: str) -> asyncio.Event:
        return self._go.setdefault(name, asyncio.Event())


async def put(engine: Engine, *names: str, queue: str = OWN, **more: Any) -> None:
    for name in names:
        await engine.enqueue(kind="part", id=name, payload=name, queue=queue, **more)


async def ended(engine: Engine, name: str) -> Workflow:
    async def has() -> bool:
        found = await engine.status(name)
        return found is not None and found.status not in ("enqueued", "pending")

    await until_so(has)
    found = await engine.status(name)
    assert found is not None
    return found


async def began(workshop: Workshop, *names: str) -> None:
    async def so() -> bool:
        return set(names) <= set(workshop.begun)

    await until_so(so)


async def test_a_handler_runs_on_the_loop_that_opened_the_engine(opened: Open) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def part(payload: str, steps: Steps) -> str:
        async def work() -> dict[str, int]:
            loops.append(asyncio.get_running_loop())
            return {payload: 1}

        return str(await steps.run("work", work, dict[str, int]))

    engine = await opened(part)
    await put(engine, "a")

    assert await ended(engine, "a") == Workflow(
        id="a", kind="part", status="success", executor="one", queue=OWN, result="{'a': 1}"
    )
    assert loops == [asyncio.get_running_loop()]
    assert await engine.status("b") is None


async def test_a_handler_that_fails_leaves_its_words(opened: Open, capfd: pytest.CaptureFixture[str]) -> None:
    async def part(payload: str, steps: Steps) -> str:
        if payload == "house":
            raise StateConflictError("the branch is gone", hint="make it again")
        raise ZeroDivisionError(payload)

    news: list[EngineEvent] = []
    engine = await opened(part, say=news.append)
    await put(engine, "house", "foreign")
    context, foreign = await ended(engine, "house"), await ended(engine, "foreign")

    async def told() -> bool:
        return bool(news)

    await until_so(told)
    assert (context.status, context.error) == ("error", "the branch is gone")
    assert (foreign.status, foreign.error) == ("error", "ZeroDivisionError: foreign")
    assert capfd.readouterr() == ("", "")
    assert [one.kind for one in news] == ["engine.error"]
    assert "ZeroDivisionError: foreign" in news[0].message


async def test_a_handler_that_meets_a_full_disk_begins_again(opened: Open) -> None:
    begun: list[str] = []

    async def part(payload: str, steps: Steps) -> str:
        begun.append(payload)
        if len(begun) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return payload

    engine = await opened(part)
    await put(engine, "a")

    assert (await ended(engine, "a")).result == "a"
    assert begun == ["a", "a"]


async def test_what_was_taken_out_of_its_queue_and_never_began_begins_after_a_while(opened: Open, address: str) -> None:
    """As when the connection is cut between the two."""
    begun: list[str] = []

    async def part(payload: str, steps: Steps) -> str:
        begun.append(payload)
        return payload

    engine = await opened(part)
    await put(engine, "a")
    await ended(engine, "a")
    schema = "dbos." if "://" in address else ""
    writing = EngineDatabase(address).open()
    with writing.begin() as connection:
        taken = "SET status = 'PENDING', output = NULL, completed_at = NULL WHERE name = 'part'"
        connection.execute(text(f"UPDATE {schema}workflow_status {taken}"))
    writing.dispose()

    async def again() -> bool:
        return not await engine.unfinished()

    await until_so(again)
    assert begun == ["a", "a"]
    assert (await ended(engine, "a")).result == "a"


async def test_row_and_workflow_are_committed_together_or_not_at_all(opened: Open, address: str) -> None:
    workshop = Workshop()
    workshop.go("kept", "undone")
    engine = await opened(workshop.part)
    store = open_store(address, 10)

    def transact(name: str, fails: bool) -> None:
        with store.engine.execution_options(writes=True).begin() as connection:
            connection.execute(
                text("INSERT INTO projects (id, name, created_at) VALUES (:id, :id, '2026-01-01')"), {"id": name}
            )
            engine.enqueue_in(connection, kind="part", id=name, payload=name, queue=OWN)
            if fails:
                raise KeyError(name)

    try:
        with pytest.raises(KeyError):
            await asyncio.to_thread(transact, "undone", True)
        await asyncio.to_thread(transact, "kept", False)
        await ended(engine, "kept")
        with store.engine.connect() as connection:
            rows = connection.execute(text("SELECT id FROM projects")).scalars().all()
    finally:
        store.close()

    assert rows == ["kept"]
    assert await engine.status("undone") is None
    assert workshop.begun == ["kept"]


async def test_the_same_id_again_is_the_same_run(opened: Open) -> None:
    workshop = Workshop()
    engine = await opened(workshop.part)
    await put(engine, "a", "a")
    await began(workshop, "a")
    await put(engine, "a")
    workshop.go("a")
    await ended(engine, "a")
    await put(engine, "a")
    with pytest.raises(StateConflictError, match="a was enqueued as something else"):
        await engine.enqueue(kind="turn", id="a", payload="", queue=OWN)

    assert await engine.unfinished() == []
    assert workshop.begun == ["a"]


async def test_what_is_more_urgent_goes_first_and_else_what_is_older(opened: Open) -> None:
    workshop = Workshop()
    engine = await opened(workshop.part, workers=1)
    await put(engine, "first")
    await began(workshop, "first")
    for name, priority in (("late", 3), ("soon", 1), ("later", 3), ("now", 0)):
        await put(engine, name, priority=priority)
    workshop.go("first", "late", "soon", "later", "now")
    await ended(engine, "later")

    assert workshop.begun == ["first", "now", "soon", "late", "later"]


async def test_no_more_workflows_run_than_there_are_workers(opened: Open) -> None:
    workshop = Workshop()
    engine = await opened(workshop.part, workers=3)
    names = [f"w{number}" for number in range(12)]
    await put(engine, *names)
    await began(workshop, *names[:3])
    unfinished = await engine.unfinished("one")
    workshop.go(*names)
    for name in names:
        await ended(engine, name)

    assert workshop.most == 3
    assert [one.id for one in unfinished] == names
    assert {one.status for one in unfinished} == {"pending", "enqueued"}
    assert {one.executor for one in unfinished} == {"one"}


async def test_merges_run_one_at_a_time_for_each_target(opened: Open) -> None:
    workshop = Workshop()
    engine = await opened(workshop.part)
    await put(engine, "main 1", "main 2", queue=MERGES, partition="main")
    await put(engine, "next 1", "next 2", queue=MERGES, partition="next")
    await began(workshop, "main 1", "next 1")
    both = list(workshop.begun)
    workshop.go("main 1")
    await began(workshop, "main 2")
    workshop.go("main 2", "next 1", "next 2")
    await ended(engine, "next 2")

    assert sorted(both) == ["main 1", "next 1"]
    assert workshop.begun[2:] == ["main 2", "next 2"]
    assert workshop.most == 2


async def test_a_cancelled_run_is_stopped_at_once_and_stays_cancelled(
    opened: Open, capfd: pytest.CaptureFixture[str]
) -> None:
    workshop = Workshop()
    news: list[EngineEvent] = []
    engine = await opened(workshop.part, workers=1, say=news.append)
    await put(engine, "running", "waiting")
    await began(workshop, "running")
    await engine.cancel(["running", "waiting"])
    await engine.cancel([])
    await put(engine, "next")
    await began(workshop, "next")
    workshop.go("next")
    await ended(engine, "next")

    assert workshop.stopped == ["running"]
    assert workshop.begun == ["running", "next"]
    for name in ("running", "waiting"):
        found = await engine.status(name)
        assert found is not None
        assert found.status == "cancelled"
    assert news == []
    assert capfd.readouterr() == ("", "")


async def test_what_a_handler_says_while_it_is_stopped_is_no_outcome(opened: Open) -> None:
    inside = asyncio.Event()
    tries: list[str] = []

    async def part(payload: str, steps: Steps) -> str:
        async def work() -> str:
            tries.append(payload)
            inside.set()
            if len(tries) > 1:
                return "done"
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise RateLimited("the agent was killed") from None
            return "never"

        return await steps.run("work", work, str)

    engine = await opened(part)
    await put(engine, "a")
    await asyncio.wait_for(inside.wait(), DEADLINE)
    await engine.close()
    again = await opened(part)
    found = await ended(again, "a")

    assert (found.status, found.result) == ("success", "done")


async def test_a_workflow_of_a_forgetful_kind_begins_again_after_a_restart(opened: Open) -> None:
    worked: list[str] = []
    waiting, go = asyncio.Event(), asyncio.Event()

    async def part(payload: str, steps: Steps) -> str:
        async def first() -> int:
            worked.append("first")
            return len(worked)

        async def last() -> None:
            waiting.set()
            await go.wait()

        found = await steps.run("first", first, int)
        await steps.run("last", last, type(None))
        return str(found)

    engine = await opened(part, forgetful=("part",))
    await put(engine, "a")
    await asyncio.wait_for(waiting.wait(), DEADLINE)
    await engine.close()
    go.set()
    again = await opened(part, forgetful=("part",))
    found = await ended(again, "a")

    assert (worked, found.status, found.result) == (["first", "first"], "success", "2")


async def test_a_step_comes_to_the_same_after_a_restart(opened: Open) -> None:
    worked: list[str] = []
    received: list[tuple[str, float | None, object]] = []
    go = asyncio.Event()
    waiting = asyncio.Event()

    async def part(payload: str, steps: Steps) -> str:
        async def limited() -> int:
            worked.append("limited")
            raise RateLimited("come back later", retry_after=7.5)

        async def foreign() -> int:
            worked.append("foreign")
            raise LookupError("no such key")

        async def parts() -> tuple[Workflow, ...]:
            worked.append("parts")
            return (Workflow(id="x", kind="y", status="z"),)

        async def last() -> None:
            waiting.set()
            await go.wait()

        retry_after = None
        try:
            await steps.run("limited", limited, int)
        except RateLimited as error:
            retry_after = error.retry_after
        try:
            await steps.run("foreign", foreign, int)
        except UnexpectedError as error:
            received.append((error.message, retry_after, await steps.run("parts", parts, tuple[Workflow, ...])))
        await steps.run("last", last, type(None))
        return ""

    engine = await opened(part)
    await put(engine, "a")
    await asyncio.wait_for(waiting.wait(), DEADLINE)
    await engine.close()
    go.set()
    again = await opened(part)
    await ended(again, "a")

    assert worked == ["limited", "foreign", "parts"]
    assert received == [("LookupError: no such key", 7.5, (Workflow(id="x", kind="y", status="z"),))] * 2


async def test_leaving_on_purpose_is_never_held_against_a_run(opened: Open) -> None:
    workshop = Workshop()
    for at in range(8):
        engine = await opened(workshop.part)
        if at == 0:
            await put(engine, "a")

        async def begun(times: int = at + 1) -> bool:
            return len(workshop.begun) == times

        await until_so(begun)
        await engine.close()
    workshop.go("a")
    last = await opened(workshop.part)

    assert (await ended(last, "a")).status == "success"


async def test_an_engine_that_is_closed_leaves_nothing_behind(opened: Open, address: str, tmp_path: Path) -> None:
    await asyncio.to_thread(len, "")
    threads = {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio")}
    tasks = asyncio.all_tasks()
    workshop = Workshop()
    engine = await opened(workshop.part)
    await put(engine, *(f"w{number}" for number in range(9)))
    await began(workshop, "w0")
    await engine.close()
    await engine.close()

    assert {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio")} == threads
    assert asyncio.all_tasks() == tasks
    assert await asyncio.to_thread(lambda: "threads still work") == "threads still work"
    assert _connections(address) == []
    for late in (engine.unfinished(), engine.dead(["two"]), engine.take_over("two"), engine.cancel(["w0"])):
        with pytest.raises(StateConflictError, match="the engine is closed"):
            await late


def _connections(address: str) -> list[str]:
    """Who is connected to the database, as the other side sees it."""
    if "://" not in address:
        links = [link for link in Path("/proc/self/fd").iterdir() if os.path.lexists(link)]
        return [str(link) for link in links if str(link.readlink()).startswith(address)]
    query = (
        "SELECT application_name FROM pg_stat_activity"
        " WHERE application_name LIKE 'genba%' AND datname = current_database()"
    )
    engine = EngineDatabase(address).open()
    try:
        deadline = time.monotonic() + DEADLINE
        while True:
            # A server forgets a connection only some time after it was closed. This one is the last.
            with engine.connect() as connection:
                found = list(connection.execute(text(query)).scalars())
            if len(found) == 1 or time.monotonic() > deadline:
                return found[1:]
    finally:
        engine.dispose()


async def test_nothing_is_pickled(opened: Open, address: str) -> None:
    workshop = Workshop()
    workshop.go("a")

    async def part(payload: str, steps: Steps) -> str:
        if payload == "bad":
            raise KeyError("no")
        return await workshop.part(payload, steps)

    engine = await opened(part, say=lambda _: None)
    await put(engine, "a", "bad")
    await ended(engine, "a")
    await ended(engine, "bad")
    await engine.close()
    schema = "dbos." if "://" in address else ""
    reading = EngineDatabase(address).open()
    with reading.connect() as connection:
        formats = (
            connection.execute(text(f"SELECT DISTINCT serialization FROM {schema}workflow_status")).scalars().all()
        )
        texts = [
            value
            for table, column in (
                ("workflow_input", "inputs"),
                ("workflow_status", "output"),
                ("workflow_status", "error"),
                ("workflow_output", "output"),
                ("operation_outputs", "output"),
            )
            for value in connection.execute(text(f"SELECT {column} FROM {schema}{table}")).scalars()
            if value is not None
        ]
    reading.dispose()

    assert formats == ["genba_json"]
    assert len(texts) >= 4
    assert all(isinstance(msgspec.json.decode(value), dict) for value in texts)


async def test_the_tables_of_the_engine_stand_beside_those_of_the_blackboard(
    opened: Open, address: str, empty: None
) -> None:
    engine = await opened(Workshop().part)
    await engine.close()
    store = open_store(address, 10)
    on_server = "://" in address
    its = set(inspect(store.engine).get_table_names(schema="dbos" if on_server else None))
    ours = set(inspect(store.engine).get_table_names())
    mode = "wal" if on_server else store.read(lambda tx: str(tx._cursor.execute("PRAGMA journal_mode").fetchone()[0]))
    store.close()

    assert "workflow_status" in its
    assert set(metadata.tables) <= ours
    assert on_server or {table.name for table in metadata.tables.values()} & _of_dbos() == set()
    assert mode == "wal"


def _of_dbos() -> set[str]:
    from dbos._schemas.system_database import SystemSchema

    return {table.name for table in SystemSchema.metadata_obj.tables.values()}


async def test_there_is_one_engine_in_a_process(opened: Open, tmp_path: Path) -> None:
    await opened(Workshop().part)

    with pytest.raises(StateConflictError, match="this process has an engine already"):
        await Engine.open(str(tmp_path / "another.db"), executor="two", workers=1, handlers={})


@pytest.mark.parametrize("address", ["postgresql://user:secret@127.0.0.1:1/genba"])
async def test_a_server_that_cannot_be_reached_is_reported_at_once_without_the_password(
    opened: Open, address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    begun = time.monotonic()
    with pytest.raises(StateConflictError) as caught:
        await opened(Workshop().part)

    assert "the database postgresql://user:***@127.0.0.1:1/genba cannot be reached" in caught.value.message
    assert "secret" not in f"{caught.value.message}{caught.value.hint}{capfd.readouterr()}"
    assert caught.value.hint
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("address", ["mysql://user:secret@host/x", "sqlite://", "postgresql://user:secret@host:port/x"])
async def test_an_address_that_is_none_is_refused_without_what_it_says(opened: Open, address: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await opened(Workshop().part)

    assert "secret" not in caught.value.message
    assert "GENBA_DATABASE_URL" in caught.value.hint


async def test_an_executor_with_another_name_on_a_file_takes_over_its_sessions(opened: Open, address: str) -> None:
    if "://" in address:
        pytest.skip("not run: on a server, executors have a lock each; see test_engine_deaths")
    workshop = Workshop()
    engine = await opened(workshop.part, workers=1)
    await put(engine, "a", "b")
    await began(workshop, "a")
    await engine.close()
    workshop.go("a", "b")
    other = await opened(workshop.part, executor="two")
    unfinished = await other.unfinished("one")
    dead = await other.dead(["one", "two"])
    taken = await other.take_over("one")
    for name in ("a", "b"):
        await ended(other, name)

    assert [one.id for one in unfinished] == ["a", "b"]
    assert dead == ["one"]
    assert sorted(taken or []) == ["a", "b"]
    assert await other.unfinished() == []


async def test_a_lock_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    (tmp_path / "board.db.executor.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateConflictError, match=r"board\.db\.executor\.lock cannot be opened") as caught:
        await Engine.open(str(tmp_path / "board.db"), executor="one", workers=1, handlers={})

    assert "ls -ld" in caught.value.hint
    assert not (tmp_path / "elsewhere").exists()


async def test_a_file_that_a_person_works_on_is_refused_with_a_way_out(tmp_path: Path) -> None:
    held = FileLock(tmp_path / "board.db", "another")
    held.take(0)
    with pytest.raises(StateConflictError, match=f"already works on .*board.db \\(process {os.getpid()}\\)") as caught:
        await Engine.open(str(tmp_path / "board.db"), executor="one", workers=1, handlers={})
    held.release()

    assert caught.value.unchanged == "nothing was started."
    assert "ctrl-c" in caught.value.hint
    assert "postgresql://" in caught.value.hint
