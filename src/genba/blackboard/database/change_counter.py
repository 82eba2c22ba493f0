"""Whether anything was written since the last look, for next to nothing.

On SQLite a connection of its own is asked for `PRAGMA data_version`, which every commit of anybody else changes: it
reads no page. On PostgreSQL it is the sum over the newest events of the project: it grows with each of them, also when
one is committed after a younger one. A lost connection is opened again and counts as a change: the caller reads once
too often rather than once too seldom.
"""

import sqlite3
import threading
from typing import Any

from genba.blackboard.database.store import Statement, Store, Transaction

_NEWEST = Statement("""
SELECT coalesce(sum(id), 0) FROM (SELECT id FROM events WHERE project_id = :project ORDER BY id DESC LIMIT 64) newest
""")


def changes(tx: Transaction) -> int:
    """A number that every event of the project raises."""
    row = tx.one(_NEWEST, project=tx.project)
    return int(row[0]) if row else 0


class ChangeCounter:
    """Numbers that only say: it is the same as before, or it is not. Any thread may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._connection: Any = None
        self._made = 0

    def now(self) -> int:
        """The same number as long as nothing was committed by anybody."""
        if self._store.on_postgres:
            return self._store.read(changes)
        with self._lock:
            try:
                return self._version()
            except sqlite3.Error:
                self._drop()
                return self._version()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _version(self) -> int:
        if self._connection is None:
            place = self._store.place
            self._connection = sqlite3.connect(
                place, timeout=self._store.busy_seconds, isolation_level=None, check_same_thread=False
            )
            self._made += 1
        row = self._connection.execute("PRAGMA data_version").fetchone()
        # Each connection counts for itself, so a new one must not give a number that an old one gave before.
        return self._made << 40 | int(row[0])

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
