"""Open a database and create its tables.

A fresh database gets its tables in one transaction, so that two processes that open it at once, or one that is killed,
leave it whole. A database of another version is refused and left alone: there is no release yet.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from genba.blackboard.database.database_errors import translated
from genba.blackboard.database.read_only import read_only_engines
from genba.blackboard.database.schema import HEAD, metadata, tasks, versions
from genba.blackboard.database.store import Store
from genba.domain.errors import ConfigurationError, DiskFullError, GenbaError, StateConflictError, is_disk_full
from genba.domain.problems import Problem

T = TypeVar("T")

_ADVISORY_LOCK = 0x67656E6261
"""Held on PostgreSQL while the tables are made: the letters of genba."""

_VARIABLE = "GENBA_DATABASE_URL"
_OPTIONS_OF_A_REPOSITORY = frozenset(
    {"host", "port", "sslmode", "connect_timeout", "application_name", "target_session_attrs"}
)
"""The options of libpq that open no file of the user."""
_OR_UNSET = "   or: unset PGPASSWORD"
_WHERE = "see GENBA_DATABASE_URL in the environment, and database in .genba/config.yaml"
_WAL_PAUSE = 0.01
_MAKING = threading.Lock()


def open_store(address: str, busy_seconds: float) -> Store:
    """The store at a path, or at a `sqlite://` or `postgresql://` address, with its tables as of today."""
    engine, place = _engine(address, busy_seconds)
    try:
        _guarded(engine, place, busy_seconds, lambda: _create_missing_tables(engine, place, busy_seconds))
    except StateConflictError as refused:
        return open_to_read(place, busy_seconds, refused)
    return Store(engine, place, busy_seconds)


def open_to_read(place: str, busy_seconds: float, refused: StateConflictError) -> Store:
    """A file that this user cannot write is opened read-only. Raises `refused` where that is not possible either."""
    for engine in read_only_engines(place):
        try:
            with engine.connect() as connection:
                if _revision(connection, place) == HEAD:
                    return Store(engine, place, busy_seconds)
        except (DBAPIError, sqlite3.Error):
            engine.dispose()
            continue
        engine.dispose()
    raise refused


def migrate(address: str, busy_seconds: float = 30.0) -> tuple[str, str]:
    """Create the tables where there are none. Returns the revisions before and after."""
    engine, place = _engine(address, busy_seconds)
    try:
        return _guarded(engine, place, busy_seconds, lambda: _create_missing_tables(engine, place, busy_seconds)), HEAD
    finally:
        engine.dispose()


def address_of_repository(address: str, environment: Mapping[str, str]) -> str:
    """An address that a file of the repository names. Raises where its server would get a secret of the user.

    Rule: the user's password goes only to a server that the user names in the environment.
    """
    if "://" not in address or _url(address).get_backend_name() != "postgresql":
        return address
    url = _url(address)
    if unknown := sorted(set(url.query) - _OPTIONS_OF_A_REPOSITORY):
        raise _not_from_a_repository(f"the option {unknown[0]} may not stand in a file of the repository", "")
    if environment.get("PGPASSWORD") and not url.password:
        server = url.host or url.query.get("host", "")
        raise _not_from_a_repository(f"names the database server {server}, which would get your PGPASSWORD", _OR_UNSET)
    shown = url.update_query_dict({"passfile": os.devnull}).set(drivername="postgresql")
    return shown.render_as_string(hide_password=False)


def _not_from_a_repository(message: str, more: str) -> ConfigurationError:
    problem = Problem(".genba/config.yaml", "database.url", message)
    return ConfigurationError((problem,), hint=f"name the server yourself: export {_VARIABLE}=postgresql://…{more}")


def _engine(address: str, busy_seconds: float) -> tuple[Engine, str]:
    """The database at an address, and its name without a password."""
    url = _url(address)
    if url.get_backend_name() == "postgresql":
        return _postgres(url, busy_seconds), url.set(drivername="postgresql").render_as_string(hide_password=True)
    place = str(url.database)
    _make_file(Path(place))
    return _sqlite(url, busy_seconds), place


def _guarded(engine: Engine, place: str, busy_seconds: float, work: Callable[[], T]) -> T:
    """Do the work. Raises GenbaError for a database error, and then leaves no connection open."""
    try:
        return work()
    except DBAPIError as error:
        engine.dispose()
        raise translated(error.orig if isinstance(error.orig, Exception) else error, place, busy_seconds) from error
    except (sqlite3.Error, GenbaError) as error:
        engine.dispose()
        if isinstance(error, GenbaError):
            raise
        raise translated(error, place, busy_seconds) from error


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
    if is_disk_full(error):
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


def _create_missing_tables(engine: Engine, place: str, busy_seconds: float) -> str:
    """Create the tables of a fresh database in one transaction; refuse one of another version.

    Returns the revision before: empty for a fresh database.
    """
    on_sqlite = engine.dialect.name == "sqlite"
    if on_sqlite:
        _switch_to_wal(engine, busy_seconds)
    with engine.connect() as connection:
        if _revision(connection, place) is not None:
            return HEAD
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if not on_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        revision = _revision(connection, place)  # another process may have created them since
        if revision is None:
            _make_tables(connection, place)
    return revision or ""


@contextmanager
def without_executor(place: str, reason: str) -> Iterator[None]:
    """Raise StateConflictError while an executor holds its lock on a file; none starts before this ends."""
    try:
        lock = os.open(executor_lock(place), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateConflictError(
                f"{place} {reason}",
                unchanged="nothing was changed.",
                hint="end that one first: genba stop",
            ) from None
        yield
    finally:
        os.close(lock)


def executor_lock(place: str) -> str:
    """The file that the one executor of an SQLite file holds a lock on."""
    return f"{place}.executor.lock"


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
    """HEAD, or None when there are no tables. Raises StateConflictError for the tables of another version."""
    if not inspect(connection).has_table(versions.name):
        return None
    revisions = connection.execute(select(versions.c.version_num)).scalars().all()
    if revisions == [HEAD]:
        return HEAD
    current = ", ".join(revisions) or "none"
    if max(revisions, default="") > HEAD:
        raise StateConflictError(
            f"{place} was written by a newer Genba: its tables are at revision {current}, this Genba needs {HEAD}",
            unchanged="nothing was changed.",
            hint="pip install --upgrade genba",
        )
    raise StateConflictError(
        f"{place} was written by an older Genba: its tables are at revision {current}, this Genba needs {HEAD}",
        unchanged="nothing was changed. There is no release yet, so older tables cannot be migrated.",
        hint=f"start with a new database: mv {place} {place}.old"
        if "://" not in place
        else "start with a new database: name another one in GENBA_DATABASE_URL",
    )


def _make_tables(connection: Connection, place: str) -> None:
    if inspect(connection).has_table(tasks.name):
        raise StateConflictError(
            f"{place} has a table {tasks.name} that is not Genba's",
            unchanged="nothing was changed.",
            hint="name another file or another database for the blackboard",
        )
    metadata.create_all(connection)
    connection.execute(versions.insert().values(version_num=HEAD))
