"""The lock that says that an executor lives.

Law: it is held by the process itself, so that it is free when the process is dead, however it died. An SQLite file has
one lock for its executor; a PostgreSQL server has one for each executor, held by a connection of its own.
"""

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sqlalchemy import URL, Connection, NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from genba.domain.errors import StateConflictError

_PAUSE = 0.05

CONNECTING: dict[str, int] = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A lost server is noticed within some ten seconds, and not after two hours."""


class ExecutorLock(Protocol):
    """Held from the first moment of an executor to its last."""

    def take(self, patience: float) -> None:
        """Take the lock. Raises StateConflictError while another process holds it, after a short wait."""
        ...

    def held(self) -> bool: ...

    def free(self, executor: str) -> bool:
        """True when the lock of another executor is free: that one is dead."""
        ...

    def borrow(self, executor: str) -> AbstractContextManager[bool]:
        """Hold the lock of a dead executor for a moment, so that only one takes over from it."""
        ...

    def release(self) -> None: ...


class FileLock:
    """Beside an SQLite file: its holder is the only executor there, and every other one is dead."""

    def __init__(self, file: Path, executor: str) -> None:
        self._file = file
        self._path = file.with_name(file.name + ".executor.lock")
        self._executor = executor
        self._open: int | None = None

    def take(self, patience: float) -> None:
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StateConflictError(
                f"{self._path} cannot be opened: {error.strerror}",
                unchanged="nothing was started.",
                hint=f"see who may write there: ls -ld {self._path.parent} {self._path}",
            ) from error
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline and not _is_only_looked_at(handle):
                    process = os.pread(handle, 64, 0).decode("ascii", "replace").strip()
                    os.close(handle)
                    raise self._refused(process) from error
                time.sleep(_PAUSE)
            else:
                break
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        self._open = handle

    def held(self) -> bool:
        return self._open is not None

    def free(self, executor: str) -> bool:
        return self.held() and executor != self._executor

    @contextlib.contextmanager
    def borrow(self, executor: str) -> Iterator[bool]:
        yield self.free(executor)

    def holder(self) -> int | None:
        """The process that holds it, 0 for an unknown one; None when it is free. Takes no lock."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            process = os.pread(handle, 64, 0).decode("ascii", "replace").strip()
            return int(process) if process.isdigit() else 0
        finally:
            os.close(handle)
        return None

    def release(self) -> None:
        if self._open is not None:
            os.ftruncate(self._open, 0)
            os.close(self._open)
            self._open = None

    def _refused(self, process: str) -> StateConflictError:
        who = f" (process {process})" if process.isdigit() else ""
        return StateConflictError(
            f"another `genba work` already works on {self._file}{who}",
            unchanged="nothing was started.",
            hint="give that one more --workers, or end it with ctrl-c; several at once need PostgreSQL: "
            "GENBA_DATABASE_URL=postgresql://…",
        )


def _is_only_looked_at(handle: int) -> bool:
    """Whether no process holds the lock: one that looks at it shares it for a moment."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(handle, fcntl.LOCK_UN)
    return True


class ServerLock:
    """On a PostgreSQL server: an advisory lock for each executor, on a connection that is used for nothing else."""

    def __init__(self, url: URL, executor: str, prefix: str = "") -> None:
        self._url = url
        self._executor = executor
        self._prefix = prefix
        """What the names of executors of this project begin with on the server."""
        self._connection: Connection | None = None

    def take(self, patience: float) -> None:
        """Also takes it again after the connection was lost. Errors of the driver are the caller's to translate."""
        self.release()
        wanted = dict[str, str | int](CONNECTING, application_name=f"genba executor {self._executor}"[:63])
        engine = create_engine(
            self._url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=patient(self._url, wanted)
        )
        self._connection = engine.connect()
        deadline = time.monotonic() + patience
        try:
            # The server, too, must notice soon that this host is gone.
            for setting, value in (("idle", 5), ("interval", 2), ("count", 3)):
                self._connection.exec_driver_sql(f"SET tcp_keepalives_{setting} = {value}")
            while not self._try(self._executor):
                if time.monotonic() > deadline:
                    raise self._refused(self._holder())
                time.sleep(_PAUSE)
        except BaseException:
            self.release()
            raise

    def held(self) -> bool:
        if self._connection is None:
            return False
        try:
            self._ask("SELECT 1")
        except SQLAlchemyError:
            self.release()
            return False
        return True

    def free(self, executor: str) -> bool:
        with self.borrow(executor) as free:
            return free

    @contextlib.contextmanager
    def borrow(self, executor: str) -> Iterator[bool]:
        try:
            free = executor != self._executor and self._connection is not None and self._try(executor)
        except SQLAlchemyError:
            # Without a connection the state of other executors is unknown.
            free = False
        try:
            yield free
        finally:
            if free:
                with contextlib.suppress(SQLAlchemyError):
                    self._ask("SELECT pg_advisory_unlock(:key)", key=self._key(executor))

    def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                connection.close()

    def _try(self, executor: str) -> bool:
        return bool(self._ask("SELECT pg_try_advisory_lock(:key)", key=self._key(executor)))

    def _ask(self, query: str, **values: int) -> object:
        if self._connection is None:
            return None
        return self._connection.execute(text(query), values).scalar()

    def _key(self, executor: str) -> int:
        return lock_number(f"{self._prefix}{executor}")

    def _holder(self) -> str:
        """Where the holder of the lock comes from, as the server sees it."""
        key = self._key(self._executor) & 0xFFFFFFFFFFFFFFFF
        found = self._ask(
            "SELECT coalesce(host(a.client_addr), 'its own host') FROM pg_locks l"
            " JOIN pg_stat_activity a ON a.pid = l.pid AND a.datname = current_database()"
            " WHERE l.locktype = 'advisory' AND l.granted"
            " AND CAST(l.classid AS bigint) = :high AND CAST(l.objid AS bigint) = :low",
            high=key >> 32,
            low=key & 0xFFFFFFFF,
        )
        return f" (from {found})" if found else ""

    def _refused(self, where: str) -> StateConflictError:
        place = self._url.set(drivername="postgresql").render_as_string(hide_password=True)
        return StateConflictError(
            f"the executor {self._executor} already works on {place}{where}",
            unchanged="nothing was started.",
            hint="end that one with ctrl-c; or give this one another name",
        )


def lock_number(executor: str) -> int:
    """The number of an executor's lock: one of the 2⁶⁴ that a server has."""
    return int.from_bytes(hashlib.sha256(f"genba executor {executor}".encode()).digest()[:8], "big", signed=True)


def patient(url: URL, wanted: dict[str, str | int]) -> dict[str, str | int]:
    """Connection options: an unreachable server is reported within seconds."""
    return wanted if "connect_timeout" in url.query else {"connect_timeout": 5, **wanted}
