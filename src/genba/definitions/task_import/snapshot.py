"""A copy of an SQLite file at one moment. The original is opened for reading only, and nothing is written beside it."""

import errno
import fcntl
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from genba.domain.errors import ConfigurationError, NotFoundError, StateConflictError
from genba.domain.problems import Problem

HEADER = b"SQLite format 3\0"
_LARGEST = 512 * 1024 * 1024
_LONGEST_VALUE = 4 * 1024 * 1024
_SECONDS = 60.0
_LOCKS, _LOCKED_BYTES = 0x40000000, 512
"""Where SQLite's own locks are in a file: with a lock on these bytes no half of a transaction is read."""
_BESIDE = ("-wal", "-journal")


@contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a copy of the database. Raises for a file that is none, is broken, or is being written."""
    with tempfile.TemporaryDirectory(prefix="genba-import-") as folder:
        copy = Path(folder) / "copy.db"
        _copy(path, copy)
        try:
            with closing(sqlite3.connect(copy)) as connection:
                _bound(connection)
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a message of SQLite may quote what is no text
            raise _broken(path, f"cannot be read: {error}") from error


def _bound(connection: sqlite3.Connection) -> None:
    """An untrusted file: it runs no code, and is bounded in time and memory."""
    end = time.monotonic() + _SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, 100_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.text_factory = lambda value: value.decode("utf-8", "replace").replace("\0", "")
    connection.execute("PRAGMA trusted_schema = OFF")
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()
    if damage is None or damage[0] != "ok":
        raise sqlite3.DatabaseError(f"it is damaged: {damage[0] if damage else 'no answer'}")


def _copy(path: Path, copy: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}", hint="name the database") from error
    with open(descriptor, "rb") as file:  # noqa: PTH123  (an open descriptor)
        if not path.is_file() or file.read(len(HEADER)) != HEADER:
            raise _broken(path, "is not an SQLite database")
        if path.stat().st_size > _LARGEST:
            raise _broken(path, f"is larger than {_LARGEST // 1024**2} MiB")
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, _LOCKED_BYTES, _LOCKS)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise _being_written(path) from error
        before = _state(path)
        file.seek(0)
        with copy.open("wb") as made:  # a second descriptor of the file, once closed, would end the lock
            shutil.copyfileobj(file, made)
        for end in _BESIDE:
            source = path.with_name(path.name + end)
            if source.is_file():
                shutil.copyfile(source, copy.with_name(copy.name + end))
        if _state(path) != before:
            raise _being_written(path)


def _state(path: Path) -> list[tuple[int, int, int] | None]:
    """What changes with a write: of the file and of those that belong to it."""
    found: list[tuple[int, int, int] | None] = []
    for end in ("", *_BESIDE):
        try:
            stat = path.with_name(path.name + end).stat()
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found


def _being_written(path: Path) -> StateConflictError:
    return StateConflictError(
        f"{path} is being written",
        unchanged="nothing was imported.",
        hint="end the tool that writes it, then try again",
    )


def _broken(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError((Problem(str(path), "", why),), hint="genba task import .agentmine/data.db")
