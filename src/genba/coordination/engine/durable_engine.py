"""Durable runs, on DBOS Transact: the one module that names it.

Law: what was enqueued is carried out, however often its process dies. Steps run at least once and are remembered once.
A workflow is carried out by its owner; one that another executor has taken is dropped. Handlers run on the event
loop that opened the engine. DBOS is one per process, and so is an engine.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import sqlalchemy
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from genba.coordination.engine import checkpoints
from genba.coordination.engine.engine_database import EngineDatabase
from genba.coordination.engine.engine_log import EngineEvent, log, quieten
from genba.coordination.engine.executor_lock import ExecutorLock
from genba.coordination.engine.queue_polling import PollingInterval
from genba.coordination.engine.stalled_workflows import StalledWorkflows
from genba.coordination.engine.workflow_names import (
    FINISHED,
    MERGES,
    SESSIONS,
    Workflow,
    WorkflowNames,
    WorkflowTable,
    sessions_queue,
)
from genba.domain.errors import DiskFullError, GenbaError, StateConflictError, is_disk_full
from genba.domain.ports import Steps

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions, WorkflowStatus

__all__ = ["MERGES", "VERSION", "Engine", "Handler", "Workflow", "make_tables", "prune", "sessions_queue"]

T = TypeVar("T")
Handler = Callable[[str, Steps], Awaitable[str]]
"""Takes the payload of a workflow and returns its result, both JSON. It may be cancelled."""

VERSION = "1"
"""What recorded steps mean. A workflow goes on only under the version that it began with."""

_APPLICATION = "genba"
_RECOVERIES, _RECOVERED = 5, "recovered"
_WATCH_SECONDS, _LOCK_SECONDS, _PATIENCE = 0.25, 1.0, 3.0
_TURNS_SLOWER = 2
_AT_ONCE = 500
_OPEN = threading.Lock()


class Engine:
    """The durable runs that this process carries out. There is one per process."""

    def __init__(
        self,
        database: EngineDatabase,
        executor: str,
        workers: int,
        version: str,
        say: Callable[[EngineEvent], None] | None,
        project: str,
        poll_seconds: float,
    ) -> None:
        self.executor = executor
        self.suspended = asyncio.Event()
        """Set when another process has taken this executor's place: leave."""
        self.lost = False
        """Whether the lock of this executor is gone for now: others hold it for dead."""
        self._database = database
        self._say = say or log
        self._loop = asyncio.get_running_loop()
        self._running: dict[asyncio.Task[Any], str] = {}
        self._cancel_requested: set[asyncio.Task[Any]] = set()
        self._unsure: set[str] = set()
        """What was begun here since the lock was last seen to be held."""
        self._unwritten = StalledWorkflows()
        self._stopping = False
        self._closed = False
        self._watches: list[asyncio.Task[None]] = []
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="genba-engine")
        self._names = WorkflowNames(project)
        self._own_queue = self._names.inside(sessions_queue(executor))
        self._merges = self._names.inside(MERGES)
        self._lock: ExecutorLock = database.lock(executor, self._names.prefix)
        self._connections: sqlalchemy.Engine | None = None
        self._client: DBOSClient | None = None
        self._glancing: WorkflowTable | None = None
        self._version = version
        self._workers = workers
        self._slots = asyncio.Semaphore(workers)
        self._pace = PollingInterval(self._look_every, self._is_idle, poll_seconds, self._loop)
        self._poll_seconds = poll_seconds

    @classmethod
    async def open(
        cls,
        address: str,
        *,
        executor: str,
        workers: int,
        handlers: Mapping[str, Handler],
        forgetful: Collection[str] = (),
        project: str = "",
        version: str = VERSION,
        poll_seconds: float = 0.1,
        say: Callable[[EngineEvent], None] | None = None,
    ) -> "Engine":
        """Work on a database, and go on with what this executor left unfinished.

        The address is that of the blackboard. Refused while another process works there under the same name, or at
        all if it is a file. Several projects on one server do not see each other. The steps of kinds that are
        `forgetful` are not written down: such a workflow starts over after it was cut off, and must allow that.
        """
        if not _OPEN.acquire(blocking=False):
            raise StateConflictError("this process has an engine already", unchanged="nothing was started.")
        engine: Engine | None = None
        try:
            engine = cls(EngineDatabase(address), executor, workers, version, say, project, poll_seconds)
            await engine._begin(handlers, forgetful)
        except BaseException as error:
            if engine is not None:
                await engine._end()
            _OPEN.release()
            if engine is not None and isinstance(error, DBAPIError):
                raise engine._database.ours(error) from error
            raise
        return engine

    async def _begin(self, handlers: Mapping[str, Handler], forgetful: Collection[str]) -> None:
        await self._do(self._lock.take, _PATIENCE)
        quieten(self._loop, self._say)
        self._client = await self._do(self._prepare)
        from dbos import DBOS  # noqa: PLC0415  (half a second, for `genba work` alone)

        for kind, handler in handlers.items():
            steps = _PassingSteps if kind in forgetful else _DurableSteps
            DBOS.workflow(name=kind, max_recovery_attempts=_RECOVERIES)(self._workflow(handler, steps))
        DBOS(config=self._settings())
        DBOS.listen_queues([self._own_queue, self._merges])
        # On the loop on purpose: DBOS runs handlers on the loop that it is launched from.
        DBOS.launch()
        for watch in (self._watch_workflows(), self._watch_lock(), self._pace.keep()):
            task = asyncio.create_task(watch)
            task.add_done_callback(self._tell_of)
            self._watches.append(task)

    def _settings(self) -> Any:
        return {
            "name": _APPLICATION,
            "system_database_engine": self._connections,
            "application_version": self._version,
            "executor_id": self._name,
            "serializer": checkpoints.JsonSerializer(),
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": 0.25,
            "max_executor_threads": 32 + self._workers,
            "enable_otlp": False,
            "log_level": "ERROR",
        }

    def _prepare(self) -> "DBOSClient":
        """The tables, the queues and a client. Two who do it at once on a new server wait for each other."""
        from dbos import DBOS  # noqa: PLC0415

        self._connections = self._database.open()
        self._glancing = WorkflowTable(self._connections)
        with self._database.alone(self._connections):
            DBOS.migrate(self._database.url.render_as_string(hide_password=False))
            client = _client(self._connections)
            # Known before the launch: DBOS looks for new queues only once a second.
            often = self._poll_seconds
            client.register_queue(self._own_queue, worker_concurrency=self._workers, polling_interval_sec=often)
            # A turn takes many entries, so it is looked for less often: to look is the dearest thing that DBOS does.
            client.register_queue(self._merges, partition_concurrency=1, polling_interval_sec=_TURNS_SLOWER * often)
        return client

    def _workflow(
        self, handler: Handler, steps: Callable[[Callable[[], None]], Steps]
    ) -> Callable[[str, str], Awaitable[str]]:
        async def carry_out(payload: str, queue: str) -> str:
            from dbos import DBOS  # noqa: PLC0415

            task = asyncio.current_task()
            name = str(DBOS.workflow_id)
            self._unsure.add(name)
            if self._stopping or task is None:
                raise asyncio.CancelledError
            self._running[task] = name
            task.add_done_callback(self._forget)
            heed = partial(self._heed, task)
            # DBOS counts those that run a little late, and may begin one too many.
            slot = self._slots if queue.startswith(SESSIONS) else contextlib.nullcontext()
            try:
                async with slot:
                    return await handler(payload, steps(heed))
            except Exception as error:
                if isinstance(error, OperationalError | DiskFullError) or is_disk_full(error):
                    raise asyncio.CancelledError from error  # it could not be written down, and begins again
                heed()
                raise

        return carry_out

    def _heed(self, task: asyncio.Task[Any]) -> None:
        """What comes of being stopped is no outcome: the workflow goes on later, elsewhere, or never."""
        if self._stopping or task in self._cancel_requested:
            raise asyncio.CancelledError

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._unwritten.ended(self._running.pop(task, ""), self._loop.time())
        self._cancel_requested.discard(task)

    def enqueue_in(
        self,
        connection: sqlalchemy.Connection,
        *,
        kind: str,
        id: str,  # noqa: A002  (the word of the house)
        payload: str,
        queue: str,
        priority: int = 0,
        partition: str = "",
    ) -> None:
        """Enqueue in the transaction of the caller: both are committed, or neither. The same id again changes nothing.

        A smaller priority goes first. Any thread may call it.
        """
        options = self._options(kind, id, queue, priority, partition)
        with _translated(self._database, id):
            self._connected.enqueue_in_transaction(connection, options, payload, queue)
        self._pace.stir()

    async def enqueue(
        self,
        *,
        kind: str,
        id: str,  # noqa: A002
        payload: str,
        queue: str,
        priority: int = 0,
        partition: str = "",
    ) -> None:
        options = self._options(kind, id, queue, priority, partition)
        with _translated(self._database, id):
            await self._do(self._connected.enqueue, options, payload, queue)
        self._pace.stir(shared=queue == MERGES and self._database.on_postgres)

    def _options(self, kind: str, name: str, queue: str, priority: int, partition: str) -> "EnqueueOptions":
        options: EnqueueOptions = {
            "workflow_name": kind,
            "queue_name": self._names.inside(queue),
            "workflow_id": self._names.inside(name),
            "app_version": self._version,
            "priority": priority + 1,
        }
        if partition:
            options["queue_partition_key"] = partition
        return options

    async def cancel(self, ids: Sequence[str]) -> None:
        """Cancel what has not ended, wherever it runs: its handler gets a CancelledError within half a second."""
        if ids:
            with _translated(self._database):
                await self._do(self._connected.cancel_workflows, [self._names.inside(id_) for id_ in ids])

    async def unfinished(self, executor: str | None = None) -> list[Workflow]:
        """What is enqueued, pending or poisoned in this project, oldest first; that of one executor, or all."""
        with _translated(self._database):
            workflows = await self._do(self._glance.unfinished, self._names)
        held = {self._names.inside(one.id) for one in workflows if one.is_carried_out_by(self.executor)}
        self._unwritten.not_begun(held.difference(self._running.values()), self._loop.time())
        return [one for one in workflows if executor is None or one.executor == executor]

    async def status(self, id: str) -> Workflow | None:  # noqa: A002
        found = await self._list(workflow_ids=[self._names.inside(id)], load_input=False)
        return self._names.seen(found[0]) if found else None

    async def dead(self, executors: Sequence[str]) -> list[str]:
        """Those of these executors that are dead: their lock is free."""
        return [executor for executor in executors if await self._do(self._lock.free, executor)]

    async def take_over(self, executor: str) -> list[str] | None:
        """Go on here with what a dead executor left, and say which. One who is not dead keeps everything: None."""
        with _translated(self._database):
            return await self._do(self._take_over, executor)

    def _take_over(self, executor: str) -> list[str] | None:
        client = self._connected
        with self._lock.borrow(executor) as dead:
            if not dead:
                return None
            listed = partial(client.list_workflows, load_input=False, load_output=False)
            pending = listed(status="PENDING", executor_id=self._names.inside(executor))
            waiting = listed(status="ENQUEUED", queue_name=self._names.inside(sessions_queue(executor)))
            going = [status.workflow_id for status in pending if self._may_go_on(client, status)]
            merging = {status.workflow_id for status in pending if status.queue_name == self._merges}
            here = [name for name in going if name not in merging] + [status.workflow_id for status in waiting]
            turns = [name for name in going if name in merging]
            if here:
                client.resume_workflows(here, queue_name=self._own_queue)
            if turns:
                client.resume_workflows(turns, queue_name=self._merges)
            self._pace.stir()
            return [self._names.outside(name) for name in here + turns]

    def _may_go_on(self, client: "DBOSClient", status: "WorkflowStatus") -> bool:
        """Whether it has not killed too many processes. Counted here: resuming sets the count of DBOS to zero."""
        earlier = (status.attributes or {}).get(_RECOVERED, 0)
        begun = earlier + (status.recovery_attempts or 0)
        if begun > _RECOVERIES:
            # DBOS has no public word for this, and it must not be found by the next process of that name.
            client._sys_db.dead_letter_workflows([status.workflow_id], min_recovery_attempts=0)
            return False
        client.update_workflow_attributes(status.workflow_id, {_RECOVERED: begun}, merge=True)
        return True

    async def close(self) -> None:
        """Stop, and leave what is unfinished to the next executor of this name. Handlers are cancelled and awaited."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._end()
        finally:
            _OPEN.release()

    async def _end(self) -> None:
        self._stopping = True
        await _stopped(self._watches)
        await _stopped(self._running)
        launched = self._client is not None
        try:
            if launched:
                await _in_thread(_destroy)
                await _stopped(self._running)
                # DBOS has put its threads under this loop, and they are gone.
                self._loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
                with contextlib.suppress(SQLAlchemyError):
                    await self._do(self._hand_back)
        finally:
            if self._connections is not None:
                await self._do(self._connections.dispose)
            await self._do(self._lock.release)
            self._client = self._glancing = None
            await _in_thread(self._threads.shutdown)

    def _hand_back(self) -> None:
        """Workflows that were stopped on purpose are enqueued again, and their recoveries are not counted.

        Where another process has this name by now, what was begun before is that one's: only the rest is handed back.
        """
        found = self._glance.held(self._name)
        self._resume([name for name in found if not self.suspended.is_set() or name in self._unsure])

    def _resume(self, names: list[str]) -> None:
        client = self._connected
        found = client.list_workflows(workflow_ids=names, load_input=False, load_output=False) if names else []
        for queue in (self._own_queue, self._merges):
            if ids := [status.workflow_id for status in found if status.queue_name == queue]:
                client.resume_workflows(ids, queue_name=queue)

    async def _look_every(self, seconds: float) -> None:
        await self._do(self._set_intervals, seconds)

    def _set_intervals(self, seconds: float) -> None:
        for name, interval in ((self._own_queue, seconds), (self._merges, _TURNS_SLOWER * seconds)):
            queue = self._connected.retrieve_queue(name)
            if queue is not None:
                queue.set_polling_interval_sec(interval)

    async def _is_idle(self) -> bool:
        """Whether nothing of this project is enqueued or under way, here or anywhere."""
        return not self._running and not await self.unfinished()

    async def _watch_workflows(self) -> None:
        """Stop the handlers of workflows that were cancelled or that another executor has taken."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if not self._running and not self._unwritten:
                continue
            begun, asked = list(self._running.values()), self._loop.time()
            try:
                pending = await self._do(self._glance.held, self._name)
                due = self._unwritten.due(pending, self._running.values(), asked, self._loop.time())
                await self._do(self._resume, due)
                self._unwritten.begun_again(due, self._loop.time())
                names = [name for name in begun if name not in pending]
                found = await self._list(workflow_ids=names, load_input=False, load_output=False) if names else []
            except (GenbaError, SQLAlchemyError):
                continue
            held = {
                status.workflow_id
                for status in found
                if status.status in ("SUCCESS", "ERROR")
                or (status.status == "PENDING" and status.executor_id == self._name)
            }
            for task, name in list(self._running.items()):
                if name in names and name not in held and task not in self._cancel_requested:
                    self._stop(task)

    def _stop(self, task: asyncio.Task[Any]) -> None:
        self._cancel_requested.add(task)
        task.cancel()

    async def _watch_lock(self) -> None:
        """Keep the lock. An executor that finds another one in its place suspends and is closed."""
        while True:
            await asyncio.sleep(_LOCK_SECONDS)
            begun = set(self._unsure)
            if not self.lost and await self._do(self._lock.held):
                self._unsure -= begun
                continue
            if not self.lost:
                self.lost = True
                self._say(EngineEvent("engine.lost", f"the connection to {self._database.place} is lost; trying again"))
            try:
                await self._do(self._lock.take, _PATIENCE)
            except StateConflictError as error:
                self._suspend(error.message)
                return
            except SQLAlchemyError:
                continue
            self.lost = False
            self._say(EngineEvent("engine.back", f"the connection to {self._database.place} is back"))

    def _tell_of(self, watch: asyncio.Task[None]) -> None:
        """Report a watch that ended by itself: that is an error."""
        error = None if watch.cancelled() else watch.exception()
        if error is not None:
            self._say(EngineEvent("engine.error", checkpoints.keep(error).message))

    def _suspend(self, why: str) -> None:
        self._stopping = True
        for task in list(self._running):
            self._stop(task)
        self.suspended.set()
        self._say(EngineEvent("engine.suspended", f"{why}: this one starts nothing more"))

    @property
    def _name(self) -> str:
        """What this executor is called in the database."""
        return self._names.inside(self.executor)

    @property
    def _glance(self) -> WorkflowTable:
        if self._glancing is None:
            raise _gone()
        return self._glancing

    @property
    def _connected(self) -> "DBOSClient":
        if self._client is None:
            raise _gone()
        return self._client

    async def _list(self, **wanted: Any) -> "list[WorkflowStatus]":
        with _translated(self._database):
            return await self._do(partial(self._connected.list_workflows, **wanted))

    async def _do(self, work: Callable[..., T], *values: Any) -> T:
        if self._closed and self._client is None:
            raise _gone()
        return await self._loop.run_in_executor(self._threads, work, *values)


class _PassingSteps:
    """Steps that are not stored. A cancelled workflow ends after its current step."""

    def __init__(self, heed: Callable[[], None]) -> None:
        self._heed = heed

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:  # noqa: ARG002  (the port's)
        try:
            return await work()
        finally:
            self._heed()


class _DurableSteps:
    """Steps that are remembered. Called one after the other, in the same order in every run of the same workflow."""

    def __init__(self, heed: Callable[[], None]) -> None:
        self._heed = heed

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        from dbos import DBOS  # noqa: PLC0415
        from dbos import error as faults  # noqa: PLC0415

        async def step() -> str:
            try:
                came = checkpoints.write_value(await work())
            except Exception as error:  # noqa: BLE001  (the edge of a worker: unexpected errors are stored too)
                came = checkpoints.write_error(error)
            self._heed()
            return came

        try:
            came = await DBOS.run_step_async({"name": name}, step)
        except (faults.DBOSWorkflowCancelledError, faults.DBOSWorkflowConflictIDError) as error:
            # It was cancelled, or another one has it: to its handler that is one and the same.
            raise asyncio.CancelledError from error
        except faults.DBOSUnexpectedStepError as error:
            output = f"this run was begun by another version of Genba, which had another step where {name} is now"
            raise StateConflictError(output, unchanged="nothing more was done.", hint="start the task again") from error
        return checkpoints.read(came, kind)


def prune(
    address: str, *, project: str, before: datetime, may_go: Callable[[Workflow], bool], dry_run: bool = False
) -> int:
    """Forget workflows that ended before that moment, as far as they may go, and say how many. It needs no executor.

    What is unfinished stays, whatever its age. Where no engine ever was, nothing is made, and DBOS is not even loaded.
    """
    database = EngineDatabase(address)
    connections = database.open()
    try:
        if not database.has_tables(connections):
            return 0
        client, names = _client(connections), WorkflowNames(project)
        found = client.list_workflows(
            status=FINISHED,
            completed_before=before.isoformat(),
            workflow_id_prefix=names.prefix or None,
            load_input=False,
            load_output=False,
        )
        going = [status.workflow_id for status in found if may_go(names.seen(status))]
        for first in range(0, 0 if dry_run else len(going), _AT_ONCE):
            client.delete_workflows(going[first : first + _AT_ONCE])
        return len(going)
    except DBAPIError as error:
        raise database.ours(error) from error
    finally:
        connections.dispose()


def make_tables(address: str) -> None:
    """Make the tables of the engine on a server, for workers whose role may not. On a file each worker makes them."""
    database = EngineDatabase(address)
    if database.on_postgres:
        from dbos import DBOS  # noqa: PLC0415

        connections = database.open()
        try:
            with database.alone(connections):
                DBOS.migrate(database.url.render_as_string(hide_password=False))
        except DBAPIError as error:
            raise database.ours(error) from error
        finally:
            connections.dispose()


def _client(connections: sqlalchemy.Engine) -> "DBOSClient":
    from dbos import DBOSClient  # noqa: PLC0415

    return DBOSClient(
        system_database_engine=connections,
        serializer=cast("Any", checkpoints.JsonSerializer()),
        application_name=_APPLICATION,
        retry_connection_errors=False,
    )


def _gone() -> StateConflictError:
    return StateConflictError("the engine is closed", unchanged="nothing was changed.")


@contextlib.contextmanager
def _translated(database: EngineDatabase, name: str = "") -> Iterator[None]:
    from dbos import error as faults  # noqa: PLC0415

    try:
        yield
    except faults.DBOSConflictingWorkflowError as error:
        output = f"{name} was enqueued as something else before"
        raise StateConflictError(output, unchanged="nothing was enqueued.") from error
    except DBAPIError as error:
        raise database.ours(error) from error


async def _stopped(tasks: Iterable[asyncio.Task[Any]]) -> None:
    lines = list(tasks)
    for task in lines:
        task.cancel()
    await asyncio.gather(*lines, return_exceptions=True)


async def _in_thread(work: Callable[[], None]) -> None:
    """Outside of every pool, for what ends the pools."""
    with ThreadPoolExecutor(1) as one:
        await asyncio.get_running_loop().run_in_executor(one, work)


def _destroy() -> None:
    from dbos import DBOS  # noqa: PLC0415

    DBOS.destroy(destroy_registry=True)
    for thread in threading.enumerate():
        if thread.name.startswith(("dbos-executor-", "queue-worker-")):
            thread.join(10)
