"""The database of the engine: the one of the blackboard, over connections of its own.

Law: few connections, opened on purpose; an unreachable database is reported within seconds, without its password.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from genba.blackboard.database.database_errors import translated
from genba.coordination.engine.executor_lock import CONNECTING, ExecutorLock, FileLock, ServerLock, patient
from genba.domain.errors import ConfigurationError, GenbaError
from genba.domain.problems import Problem

_BUSY_SECONDS = 30.0
_POOL = 8
_PAUSE = 0.05
_MAKING = 0x67656E626165
"""The advisory lock while the tables of the engine are created."""


class EngineDatabase:
    """Where the engine keeps its tables, and the lock of the executor there."""

    def __init__(self, address: str) -> None:
        self.url = _url(address)
        self.on_postgres = self.url.get_backend_name() == "postgresql"
        self.place = (
            self.url.set(drivername="postgresql").render_as_string(hide_password=True)
            if self.on_postgres
            else str(self.url.database)
        )

    def lock(self, executor: str, prefix: str = "") -> ExecutorLock:
        """The lock of an executor; on a server, among those whose names have this prefix there."""
        return ServerLock(self.url, executor, prefix) if self.on_postgres else FileLock(Path(self.place), executor)

    def open(self) -> Engine:
        return _postgres(self.url) if self.on_postgres else _sqlite(self.url)

    def has_tables(self, engine: Engine) -> bool:
        """Whether an engine has ever been opened here."""
        return inspect(engine).has_table("workflow_status", schema="dbos" if self.on_postgres else None)

    @contextlib.contextmanager
    def alone(self, engine: Engine) -> Iterator[None]:
        """One process creates tables at a time. On a file, the lock of the executor ensures that.

        Asked for again and again, outside of a transaction: some indexes are made only when no transaction is open, not
        even one that waits for this lock.
        """
        if not self.on_postgres:
            yield
            return
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _MAKING}).scalar():
                time.sleep(_PAUSE)
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _MAKING})

    def ours(self, error: Exception) -> GenbaError:
        """An error of the driver in the words of the house."""
        cause = error.orig if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else error
        return translated(cause, self.place, _BUSY_SECONDS)


def _url(address: str) -> URL:
    if "://" not in address:
        return URL.create("sqlite", database=os.path.abspath(address))  # noqa: PTH100  (Path would follow links)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:
        raise _bad("it cannot be read as an address") from error
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database and url.database != ":memory:":
        return URL.create("sqlite", database=os.path.abspath(url.database))  # noqa: PTH100
    raise _bad("it is neither a file nor a postgresql:// address")


def _bad(why: str) -> ConfigurationError:
    hint = "see GENBA_DATABASE_URL in the environment, and database in .genba/config.yaml"
    return ConfigurationError(
        (Problem("", "", f"runs cannot be kept at the address of the blackboard: {why}"),), hint=hint
    )


def _sqlite(url: URL) -> Engine:
    """As the engine itself opens a file, but with the log and the durability of the blackboard."""
    engine = create_engine(url, pool_size=_POOL, max_overflow=0, connect_args={"timeout": _BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = "IMMEDIATE"
        connection.execute("PRAGMA journal_mode = WAL").close()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    return engine


def _postgres(url: URL) -> Engine:
    wanted = dict[str, str | int](CONNECTING, application_name="genba engine")
    return create_engine(
        url, pool_size=_POOL, max_overflow=0, pool_timeout=30, pool_pre_ping=True, connect_args=patient(url, wanted)
    )
