"""From an address to a store whose tables are there and up to date.

Law: a fresh database gets today's tables at once; one that is up to date is only read; only an older one pays for its
migration. Each happens in one transaction, so that two who open it at once, or one who is killed, leave it whole.
"""

import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from genba.blackboard.faults import translated
from genba.blackboard.schema import HEAD, REVISIONS, metadata, tasks, versions
from genba.blackboard.store import Store
from genba.domain.errors import ConfigurationError, DiskFullError, GenbaError, StateConflictError
from genba.domain.problems import Problem

_ADVISORY_LOCK = 0x67656E6261
"""Held on PostgreSQL while the tables are made: the letters of genba."""

_WHERE = "see GENBA_DATABASE_URL in the environment, and database in .genba/config.yaml"
_WAL_PAUSE = 0.01
_MAKING = threading.Lock()


def open_store(address: str, busy_seconds: float) -> Store:
    """The store at a path, or at a `sqlite://` or `postgresql://` address, with its tables as of today."""
    url = _url(address)
    if url.get_backend_name() == "postgresql":
        place = url.set(drivername="postgresql").render_as_string(hide_password=True)
        engine = _postgres(url, busy_seconds)
    else:
        place = str(url.database)
        _make_file(Path(place))
        engine = _sqlite(url, busy_seconds)
    try:
        _bring_up_to_date(engine, place, busy_seconds)
    except DBAPIError as error:
        engine.dispose()
        raise translated(error.orig if isinstance(error.orig, Exception) else error, place, busy_seconds) from error
    except (sqlite3.Error, GenbaError) as error:
        engine.dispose()
        if isinstance(error, GenbaError):
            raise
        raise translated(error, place, busy_seconds) from error
    return Store(engine, place, busy_seconds)


def _url(address: str) -> URL:
    if "://" not in address:
        if not address or address == ":memory:" or "\0" in address:
            raise _bad_address(address, "expected a file or a postgresql:// address")
        return URL.create("sqlite", database=os.path.abspath(address))  # noqa: PTH100  (Path would follow links)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:
        raise _bad_address(address.partition("://")[0] + "://…", "it cannot be read as an address") from error
    match url.drivername:
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return url.set(drivername="postgresql+psycopg")
        case "sqlite" if url.database and url.database != ":memory:":
            return URL.create("sqlite", database=os.path.abspath(url.database))  # noqa: PTH100
        case "sqlite":
            raise _bad_address(address, "the blackboard needs a file, such as sqlite:///folder/blackboard.db")
    raise _bad_address(f"{url.drivername}://…", "it is neither sqlite:// nor postgresql://")


def _bad_address(shown: str, why: str) -> ConfigurationError:
    return ConfigurationError((Problem("", "", f"the blackboard cannot be at {shown!r}: {why}"),), hint=_WHERE)


def _make_file(path: Path) -> None:
    """An empty file that only its owner can read.

    A file that is there is left alone: closing it here would drop the locks that SQLite holds on it in this process.
    """
    try:
        with _MAKING:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(path):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> GenbaError:
    import errno  # noqa: PLC0415  (only this pays for it)

    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"the disk is full: {path} cannot be made", hint="free some space, then try again")
    return StateConflictError(
        f"the blackboard {path} cannot be made: {error.strerror}",
        unchanged="nothing was changed.",
        hint=f"see who may write there: ls -ld {path.parent}",
    )


def _sqlite(url: URL, busy_seconds: float) -> Engine:
    engine = create_engine(url, paramstyle="named", connect_args={"timeout": busy_seconds})

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgres(url: URL, busy_seconds: float) -> Engine:
    patience = {} if "connect_timeout" in url.query else {"connect_timeout": max(2, int(busy_seconds))}
    try:
        engine = create_engine(url, connect_args=patience)
    except (ImportError, NoSuchModuleError) as error:
        problem = Problem("", "", "PostgreSQL needs the package psycopg, which is not installed")
        raise ConfigurationError((problem,), hint="pip install 'genba[postgres]'") from error

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {int(busy_seconds * 1000)}")
        connection.commit()

    return engine


def _bring_up_to_date(engine: Engine, place: str, busy_seconds: float) -> None:
    on_sqlite = engine.dialect.name == "sqlite"
    if on_sqlite:
        _switch_to_wal(engine, busy_seconds)
    with engine.connect() as connection:
        if _revision(connection, place) == HEAD:
            return
    with engine.execution_options(writes=True).begin() as connection:
        if not on_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        revision = _revision(connection, place)
        if revision is None:
            _make_tables(connection, place)
        elif revision != HEAD:
            _migrate(connection)


def _switch_to_wal(engine: Engine, busy_seconds: float) -> None:
    """Readers and a writer at the same time. SQLite does not wait by itself when two switch at once."""
    deadline = time.monotonic() + busy_seconds
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        while True:
            try:
                if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    cursor.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > deadline:
                    raise
                time.sleep(_WAL_PAUSE)
            else:
                return
    finally:
        connection.close()


def _revision(connection: Connection, place: str) -> str | None:
    """The revision of the tables; empty for one before the first, None when there are none."""
    if not inspect(connection).has_table(versions.name):
        return None
    found = connection.execute(select(versions.c.version_num)).scalars().all()
    if len(found) > 1 or any(revision not in REVISIONS for revision in found):
        raise StateConflictError(
            f"{place} was written by a newer Genba: its tables are at {', '.join(found)}, this one knows {HEAD}",
            unchanged="nothing was changed.",
            hint="pip install --upgrade genba",
        )
    return found[0] if found else ""


def _make_tables(connection: Connection, place: str) -> None:
    if inspect(connection).has_table(tasks.name):
        raise StateConflictError(
            f"{place} has a table {tasks.name} that is not Genba's",
            unchanged="nothing was changed.",
            hint="name another file or another database for the blackboard",
        )
    metadata.create_all(connection)
    connection.execute(versions.insert().values(version_num=HEAD))


def _migrate(connection: Connection) -> None:
    from alembic.command import upgrade  # noqa: PLC0415  (slow to import, and needed once in a version's life)
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", "genba.blackboard:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    upgrade(config, "head")
