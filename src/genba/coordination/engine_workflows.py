"""Durable runs as the engine shows them, and what they are called in a database that several projects share.

Law: whatever one project enqueues, holds or names is out of sight of every other project on the same server.
"""

from typing import Any

import msgspec

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
UNFINISHED = ["ENQUEUED", "PENDING", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
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


class Names(msgspec.Struct, frozen=True):
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
