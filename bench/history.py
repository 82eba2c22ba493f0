"""A field with a past: one task is really done by a fleet, and what that left in the database is there many times."""

import sqlite3
import subprocess
from pathlib import Path

from bench.fleet import working
from bench.fleet_ground import HUMAN, Ground
from bench.measuring import clean_environment
from genba.domain.sessions.sandbox import SANDBOX_VARIABLE
from genba.domain.tasks.task import TaskDraft, TaskStatus

WAITING = 10
"""Tasks that wait while all others are done."""
ITERATIONS = 10
"""A scripted agent needs one, and tells no cost. Others take some, and each is written down."""
DAILY = 100
"""Tasks that were done on one day."""
FAR = 10_000_000
"""The number from which on the waiting ones count."""
_ENGINE = ("workflow_status", "workflow_input", "workflow_output", "operation_outputs")
_TABLES = (
    "tasks", "sessions", "merge_entries", "spending", "events", "task_goals", "verifications", "artifacts",
    "goal_results", *_ENGINE,
)  # fmt: skip
_OWNERS = {"task_id": "tasks", "session_id": "sessions", "verification_id": "verifications", "goal_id": "task_goals"}
_NAMES = ("run", "branch", "workflow", "workflow_uuid", "session")


class Past:
    """The field, and how many tasks of it are done."""

    def __init__(self, folder: Path) -> None:
        self.ground = Ground(folder)
        self.done = 1
        self._first()
        with self._connection() as connection:
            self._rows = {
                table: connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in _TABLES
            }
        connection.close()
        self._waiting()

    def grow(self, size: int) -> None:
        """Up to so many tasks that are done."""
        if size > self.done:
            with self._connection() as connection:
                for table in _TABLES:
                    connection.execute(self._copies(connection, table), {"first": self.done, "last": size - 1})
                if size <= DAILY:  # all copies are alike
                    assert connection.execute("PRAGMA foreign_key_check").fetchone() is None, "a past that cannot be"
            connection.close()
            self.done = size

    def _first(self) -> None:
        self.ground.tasks(1)
        environment = {**clean_environment(), SANDBOX_VARIABLE: "worktree"}
        subprocess.run(working(1), cwd=self.ground.root, env=environment, check=True, capture_output=True)
        with self._connection() as connection:
            connection.execute("DELETE FROM events WHERE task_id IS NULL")
            connection.execute("UPDATE events SET id = (SELECT count(*) FROM events e WHERE e.id <= events.id)")
            connection.execute("DELETE FROM spending WHERE id > 1")
            columns = ", ".join(_columns(connection, "spending", without=("id", "iteration")))
            for iteration in range(2, ITERATIONS + 1):
                copied = f"SELECT {iteration}, iteration + {iteration}, {columns} FROM spending WHERE id = 1"
                connection.execute(f"INSERT INTO spending (id, iteration, {columns}) {copied}")
            connection.execute("UPDATE spending SET tokens = 12000, cost = 0.04")
        connection.close()

    def _waiting(self) -> None:
        with self.ground.board() as board:
            for number in range(WAITING):
                board.add(TaskDraft(title="Not yet", number=FAR + number, status=TaskStatus.BACKLOG), HUMAN)
        with self._connection() as connection:
            connection.execute(
                "UPDATE events SET task_id = task_id + ?, id = id + ? WHERE task_id > 1", (FAR, 100 * FAR)
            )
            connection.execute("UPDATE tasks SET id = id + ? WHERE id > 1", (FAR,))
        connection.close()

    def _copies(self, connection: sqlite3.Connection, table: str) -> str:
        """What the first task left, once for each `k`: its keys and its names are moved on, all else is the same."""
        columns = _columns(connection, table)
        message = ", ".join(f'"{name}"' for name in columns)
        made = ", ".join(self._value(table, name) for name in columns)
        first = f"id <= {self._rows[table]}" if "id" in columns else "workflow_uuid NOT LIKE '%~%'"
        return (
            "WITH RECURSIVE n(k) AS (SELECT :first UNION ALL SELECT k + 1 FROM n WHERE k < :last) "
            f'INSERT INTO "{table}" ({message}) SELECT {made} FROM "{table}" CROSS JOIN n WHERE {first}'
        )

    def _value(self, table: str, column: str) -> str:
        if column == "id":
            return f'"id" + k * {self._rows[table]}'
        if column in _OWNERS:
            return f'"{column}" + k * {self._rows[_OWNERS[column]]}'
        if column == "number":
            return '"number" + k'
        if column == "day":
            return f"date('2025-01-01', (k / {DAILY}) || ' days')"
        return f"\"{column}\" || '~' || k" if column in _NAMES else f'"{column}"'

    def _connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.ground.database, timeout=60)
        connection.execute("PRAGMA foreign_keys = OFF")
        return connection


def _columns(connection: sqlite3.Connection, table: str, without: tuple[str, ...] = ()) -> list[str]:
    """All but those that the database makes of others."""
    return [str(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")') if row[1] not in without]
