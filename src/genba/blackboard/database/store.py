"""Transactions on one database: SQLite or PostgreSQL.

Law: a piece of work runs in one transaction, whole or not at all. SQLite takes its one writer at the beginning
(`BEGIN IMMEDIATE`); on PostgreSQL the work locks the rows it decides on, and runs again when two stood in each other's
way. SQL is compiled once and handed to the driver: a status change costs few statements and no ceremony.
"""

import copy
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from genba.blackboard.database.database_errors import can_be_tried_again, translated
from genba.domain.errors import UnavailableError

T = TypeVar("T")
Row = tuple[Any, ...]

_ATTEMPTS = 8
_LINES: dict[str, threading.Lock] = {}
"""By file: the line of those in this process who want to write. SQLite itself lets them try again and again, later each
time, while the file is free."""
_PARAMETER = re.compile(r":([a-z_]\w*)")


class Statement:
    """SQL with parameters such as `:number`; where the databases differ, one text for each."""

    __slots__ = ("_postgres", "_written_for_postgres", "sqlite")

    def __init__(self, sql: str, postgres: str | None = None) -> None:
        self.sqlite = sql
        self._written_for_postgres = sql if postgres is None else postgres
        self._postgres = ""

    @property
    def postgres(self) -> str:
        if not self._postgres:
            self._postgres = _PARAMETER.sub(r"%(\1)s", self._written_for_postgres.replace("%", "%%"))
        return self._postgres


class Transaction:
    """What a piece of work may do with the database, for one project."""

    __slots__ = ("_cursor", "on_postgres", "project")

    def __init__(self, cursor: Any, project: str, on_postgres: bool) -> None:
        self._cursor = cursor
        self.project = project
        self.on_postgres = on_postgres

    def all(self, statement: Statement, **values: Any) -> list[Row]:
        self._cursor.execute(statement.postgres if self.on_postgres else statement.sqlite, values)
        found: list[Row] = self._cursor.fetchall()
        return found

    def one(self, statement: Statement, **values: Any) -> Row | None:
        self._cursor.execute(statement.postgres if self.on_postgres else statement.sqlite, values)
        # All are fetched: a cursor that was not read to its end keeps SQLite from committing.
        found: list[Row] = self._cursor.fetchall()
        return found[0] if found else None

    def do(self, statement: Statement, **values: Any) -> None:
        self._cursor.execute(statement.postgres if self.on_postgres else statement.sqlite, values)

    def do_each(self, statement: Statement, rows: Iterable[Mapping[str, Any]]) -> None:
        self._cursor.executemany(statement.postgres if self.on_postgres else statement.sqlite, list(rows))


class Store:
    """The database of a blackboard, as one project sees it. Any thread may use it."""

    def __init__(self, engine: Engine, place: str, busy_seconds: float, project: str = "") -> None:
        self.engine = engine
        self.place = place
        self.busy_seconds = busy_seconds
        self.project = project
        self.on_postgres = engine.dialect.name == "postgresql"
        self.endure: Callable[[UnavailableError], bool] | None = None
        """Waits while the database is out of reach, and says whether to ask again. Only for work that may repeat."""
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error
        self._line = None if self.on_postgres else _LINES.setdefault(place, threading.Lock())

    def read(self, work: Callable[[Transaction], T]) -> T:
        return self._tried(lambda: self._once("BEGIN", work))

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Do the work and commit it. The work may run more than once, and only the last one counts."""
        return self._tried(lambda: self._in_line(lambda: self._once("BEGIN IMMEDIATE", work)))

    def write_with(self, work: Callable[[Transaction, Connection], T]) -> T:
        """Like `write`, for work that also needs the SQLAlchemy connection."""
        return self._tried(lambda: self._in_line(lambda: self._once_with(work)))

    def _in_line(self, once: Callable[[], T]) -> T:
        """Wait for other writers of this process. After `busy_seconds` try anyway: SQLite raises the precise error."""
        ours = self._line is not None and self._line.acquire(timeout=self.busy_seconds)
        try:
            return once()
        finally:
            if ours and self._line is not None:
                self._line.release()

    def impatient(self) -> "Store":
        """The same store on the same connections, without the backoff: errors are raised at once."""
        twin = copy.copy(self)
        twin.endure = None
        return twin

    def close(self) -> None:
        self.engine.dispose()

    def _tried(self, once: Callable[[], T]) -> T:
        while True:
            try:
                return self._tried_at_once(once)
            except UnavailableError as error:
                if self.endure is None or not self.endure(error):
                    raise

    def _tried_at_once(self, once: Callable[[], T]) -> T:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return once()
            except _LostConnection as lost:
                if attempt > 1:
                    raise self._ours(lost.error) from lost.error
            except DBAPIError as error:
                inner = error.orig if isinstance(error.orig, Exception) else error
                if attempt == _ATTEMPTS or not can_be_tried_again(inner):
                    raise self._ours(inner) from error
            except self._driver_error as error:
                if attempt == _ATTEMPTS or not can_be_tried_again(error):
                    raise self._ours(error) from error
        raise AssertionError("the last attempt returns or raises")

    def _once(self, begin: str, work: Callable[[Transaction], T]) -> T:
        connection = self.engine.raw_connection()
        ending = False
        try:
            cursor = connection.cursor()
            if not self.on_postgres:
                cursor.execute(begin)
            done = work(Transaction(cursor, self.project, self.on_postgres))
            ending = True
            connection.commit()
        except BaseException as error:
            # A commit that was cut off may have happened, so only work before it is worth another attempt.
            if isinstance(error, self._driver_error) and _is_lost(connection.dbapi_connection):
                connection.invalidate()
                self.engine.dispose()  # who was cut off was not alone: the next attempt takes none of those
                if not ending:
                    raise _LostConnection(error) from error
            elif connection.dbapi_connection is not None:
                connection.rollback()
            raise
        else:
            return done
        finally:
            connection.close()

    def _once_with(self, work: Callable[[Transaction, Connection], T]) -> T:
        ending = False
        with self.engine.connect().execution_options(writes=True) as connection:
            try:
                with connection.begin():  # on SQLite this takes the one writer
                    driver: Any = connection.connection
                    done = work(Transaction(driver.cursor(), self.project, self.on_postgres), connection)
                    ending = True
            except (self._driver_error, DBAPIError) as error:
                inner = error.orig if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else error
                if (connection.invalidated or _is_lost(connection.connection.dbapi_connection)) and not ending:
                    connection.invalidate()
                    self.engine.dispose()  # who was cut off was not alone: the next attempt takes none of those
                    raise _LostConnection(inner) from error
                raise
            return done

    def _ours(self, error: Exception) -> Exception:
        return translated(error, self.place, self.busy_seconds)


def _is_lost(driver: Any) -> bool:
    """Whether a connection was cut. One that was in the middle of a pipeline does not know that it is closed."""
    in_a_pipeline = getattr(getattr(driver, "info", None), "pipeline_status", 0)
    return bool(getattr(driver, "closed", False) or in_a_pipeline)


class _LostConnection(Exception):
    """The connection was gone before anything was committed: it may have been from a server that was restarted."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
