"""Read a database file that this user cannot write: a read-only disk, or another user's file."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event


def read_only_engines(place: str) -> Iterator[Engine]:
    """The ways to read it, best first; none for a file that can be written, or is no file at all.

    Beside a file in WAL mode SQLite needs two more. Where they do not exist and cannot be created, no other process
    writes either, so the file is read as it is; but not where a log beside it may hold what the file does not have yet.
    """
    path = Path(place)
    if "://" in place or not path.is_file() or _is_writable(path):
        return
    yield _engine(path, {"mode": "ro"})
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or log.stat().st_size == 0:
        yield _engine(path, {"mode": "ro", "immutable": "1"})


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _engine(path: Path, how: dict[str, str]) -> Engine:
    url = URL.create("sqlite", database=f"file:{quote(str(path))}", query={**how, "uri": "true"})
    engine = create_engine(url, paramstyle="named")

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine
