"""Durable runs as the engine shows them, and what they are called in a database that several projects share.

Law: whatever one project enqueues, holds or names is out of sight of every other project on the same server.
"""

from typing import Any

import msgspec
from sqlalchemy import Engine, text

MERGES = "merges"
"""The queue of the merge turns: one at a time for each partition, over all executors."""

SESSIONS = "sessions:"
_STATUSES = {
    "DELAYED": "enqueued",
    "ENQUEUED": "enqueued",
    "PENDING": "pending",
    "SUCCESS": "success",
    "ERROR": "error",
    "CANCELLED": "cancelled",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "poisoned",
}
FINISHED = ["SUCCESS", "ERROR", "CANCELLED"]


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """One durable run, as the engine keeps it."""

    id: str
    kind: str
    status: str
    """enqueued | pending | success | error | cancelled | poisoned: its process died with it again and again"""
    executor: str = ""
    queue: str = ""
    result: str = ""
    error: str = ""

    def is_carried_out_by(self, executor: str) -> bool:
        """Whether an executor has begun it, as far as the engine knows."""
        return self.status == "pending" and self.executor == executor


class WorkflowNames(msgspec.Struct, frozen=True):
    """The names of executors, queues and workflows of one project, outside of the database and inside of it."""

    project: str = ""

    def inside(self, name: str) -> str:
        return self.prefix + name

    def outside(self, name: str) -> str:
        return name.removeprefix(self.prefix)

    @property
    def prefix(self) -> str:
        return f"{self.project}/" if self.project else ""

    def seen(self, status: Any) -> Workflow:
        """A row of the engine, as its project knows it."""
        queue = self.outside(status.queue_name or "")
        waits = status.status in ("ENQUEUED", "DELAYED")
        executor = queue.removeprefix(SESSIONS) if waits and queue.startswith(SESSIONS) else ""
        return Workflow(
            id=self.outside(status.workflow_id),
            kind=status.name,
            status=_STATUSES[status.status],
            executor=executor if waits else self.outside(status.executor_id or ""),
            queue=queue,
            result=status.output if isinstance(status.output, str) else "",
            error=str(status.error) if status.error else "",
        )


def sessions_queue(executor: str) -> str:
    """The queue of the parts that stay with one executor."""
    return SESSIONS + executor


class WorkflowTable:
    """Queries that run many times a second, prepared once: DBOS itself builds every query again."""

    def __init__(self, connections: Engine) -> None:
        self._connections = connections
        table = "dbos.workflow_status" if connections.dialect.name == "postgresql" else "workflow_status"
        self._unfinished = text(
            "SELECT workflow_uuid AS workflow_id, name, status, executor_id, queue_name, NULL AS output, NULL AS error"  # noqa: S608
            f" FROM {table} WHERE status IN ('ENQUEUED', 'PENDING', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')"
            " AND substr(workflow_uuid, 1, :length) = :prefix ORDER BY created_at"
        )
        self._held = text(
            f"SELECT workflow_uuid FROM {table} WHERE status = 'PENDING' AND executor_id = :executor"  # noqa: S608
        )

    def unfinished(self, names: WorkflowNames) -> list[Workflow]:
        """What is enqueued, pending or poisoned in a project, oldest first."""
        asked = {"prefix": names.prefix, "length": len(names.prefix)}
        with self._connections.connect() as connection:
            return [names.seen(row) for row in connection.execute(self._unfinished, asked)]

    def held(self, executor: str) -> set[str]:
        """What an executor carries out, all under the names inside of the database."""
        with self._connections.connect() as connection:
            return {row[0] for row in connection.execute(self._held, {"executor": executor})}
