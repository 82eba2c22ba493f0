"""What the database holds, read by plain SQL."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

Row = dict[str, Any]
_ENGINE = "workflow_status"
_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
_SERVER_TABLES = (
    "SELECT table_name AS name FROM information_schema.tables"
    " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
)
_SERVER_LEFT = """
SELECT 'connection ' || pid || ' of ' || coalesce(nullif(application_name, ''), 'somebody') AS what
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND backend_type = 'client backend'
UNION ALL
SELECT 'advisory lock ' || l.classid || '/' || l.objid || ' of process ' || l.pid FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL
SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE database = current_database()
"""
PROJECT_OF = ("tasks", "events", "merge_entries", "escalations", "executors", "agent_connections", "credentials")


class Board:
    """Every row of a project, as it stands at one moment."""

    def __init__(self, database: str, project: str) -> None:
        self.on_server = "://" in database
        self.database = database
        self.trouble: list[str] = []
        self.workflows: list[Row] = []
        self.tables = self._server() if self.on_server else self._file()
        self._keep(project)

    def _file(self) -> dict[str, list[Row]]:
        beside = Path(f"{self.database}-wal")
        how = "mode=ro" if beside.exists() and beside.stat().st_size else "immutable=1"
        connection = sqlite3.connect(f"{Path(self.database).absolute().as_uri()}?{how}", uri=True)
        connection.row_factory = sqlite3.Row
        try:
            self.trouble += [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            broken = connection.execute("PRAGMA foreign_key_check").fetchall()
            self.trouble += [f"a row of {row[0]} names one of {row[2]} that is not there" for row in broken]

            def read(statement: str) -> list[Row]:
                return [dict(row) for row in connection.execute(statement)]

            return self._all(read, _SQLITE_TABLES, _ENGINE)
        finally:
            connection.close()

    def _server(self) -> dict[str, list[Row]]:
        with psycopg.connect(self.database, row_factory=dict_row, autocommit=False) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True

            def read(statement: str) -> list[Row]:
                return connection.execute(statement.encode()).fetchall()

            return self._all(read, _SERVER_TABLES, f"dbos.{_ENGINE}")

    def _all(self, read: Callable[[str], list[Row]], listing: str, engine: str) -> dict[str, list[Row]]:
        names = [row["name"] for row in read(listing)]
        if self.on_server or _ENGINE in names:
            self.workflows = read(f"SELECT workflow_uuid, status, name, executor_id FROM {engine}")
        known = set(names) - _engine_tables()
        return {name: read(f'SELECT * FROM "{name}"') for name in sorted(known)}

    def _keep(self, project: str) -> None:
        """Only what belongs to the project of this name, where there is more than one."""
        projects = self.tables.get("projects", [])
        chosen = [row for row in projects if row["name"] == project] or projects[:1]
        self.project: Row = chosen[0] if chosen else {}
        for name in PROJECT_OF:
            rows = self.tables.get(name, [])
            self.tables[name] = [row for row in rows if row["project_id"] == self.project.get("id")]

    def left_on_server(self) -> list[str]:
        """Who is still connected, and what is still locked."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            return [str(row[0]) for row in connection.execute(_SERVER_LEFT)]

    def of(self, table: str) -> list[Row]:
        """The rows of a table, oldest first."""
        rows = self.tables.get(table, [])
        return sorted(rows, key=lambda row: row["id"]) if rows and "id" in rows[0] else rows

    @cached_property
    def numbers(self) -> dict[int, int]:
        """By id: the number of a task."""
        return {row["id"]: row["number"] for row in self.of("tasks")}

    @cached_property
    def tasks(self) -> dict[int, Row]:
        return {row["number"]: row for row in self.of("tasks")}

    @cached_property
    def events(self) -> list[Row]:
        """In the order of their numbers. Times may jump, and decide nothing."""
        return [{**row, "data": json.loads(row["data"])} for row in self.of("events")]

    @cached_property
    def events_of(self) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = defaultdict(list)
        for event in self.events:
            found[self.numbers.get(event["task_id"], 0)].append(event)
        return found

    def by_task(self, table: str) -> dict[int, list[Row]]:
        """By the number of a task: its rows."""
        found: dict[int, list[Row]] = defaultdict(list)
        for row in self.of(table):
            if row["task_id"] in self.numbers:
                found[self.numbers[row["task_id"]]].append(row)
        return found


def _engine_tables() -> set[str]:
    """In a file, the tables of the engine stand beside those of the blackboard."""
    return {
        *("dbos_migrations", "workflow_status", "notifications", "workflow_events", "streams", "queues"),
        *("workflow_events_history", "workflow_schedules", "application_versions", "workflow_input"),
        *("workflow_output", "operation_outputs"),
    }
