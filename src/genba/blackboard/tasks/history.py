"""What happened to a task, line by line.

Law: whatever changes a task writes its line in the same transaction and raises the task's version by one. What only
adds to a task (a comment, an approval, a verdict, a session) carries the version that it saw.
"""

from typing import Any

import msgspec

from genba.blackboard.database.paging import WHOLE, Page
from genba.blackboard.database.sanitize import as_json
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.task_rows import id_of
from genba.domain.decoding import reader
from genba.domain.tasks.task import Actor, ActorKind, TaskEvent

CREATED = "created"
EDITED = "edited"
STATUS_CHANGED = "status_changed"
DEPENDENCY_ADDED = "dependency_added"
DEPENDENCY_REMOVED = "dependency_removed"
COMMENTED = "commented"
APPROVED = "approved"
VERIFIED = "verified"
TAKEN_OVER = "taken_over"
PART_BEGAN = "part_began"
PART_ENDED = "part_ended"
MERGE_QUEUED = "merge_queued"
MERGE_SETTLED = "merge_settled"
ESCALATED = "escalated"
DECIDED = "decided"
REVIEW_ASKED = "review_asked"
REVIEWED = "reviewed"
PLANNED = "planned"
PARTS_CREATED = "parts_created"
PLAN_REJECTED = "plan_rejected"
HELD = "held"
RELEASED = "released"
HANDED_OVER = "handed_over"
PROJECT_PAUSED = "project_paused"
PROJECT_RESUMED = "project_resumed"
STOPPING = "stopping"
GOING_ON = "going_on"
PROVIDER_PAUSED = "provider_paused"
EXECUTOR_CAME = "executor_came"
EXECUTOR_LEFT = "executor_left"
AGENT_REGISTERED = "agent_registered"
PASSKEY_CHANGED = "passkey_changed"
CREDENTIAL_ISSUED = "credential_issued"
AGENT_CONNECTED = "agent_connected"
BOUND = "bound"
INSTANCE_STOPPED = "instance_stopped"
CONNECTION_CLOSED = "connection_closed"
PHASE_REACHED = "phase_reached"
NOTED = "noted"
MESSAGED = "messaged"
AGENT_COMMANDS_ENABLED = "agent_commands_enabled"
AGENT_COMMANDS_DISABLED = "agent_commands_disabled"

CHANGES = frozenset({CREATED, EDITED, STATUS_CHANGED, DEPENDENCY_ADDED, DEPENDENCY_REMOVED})
"""The kinds that change the task itself: so many of them, so high its version."""

_INSERT = Statement("""
INSERT INTO events (project_id, task_id, kind, actor_kind, actor_name, session, version, data, created_at)
VALUES (:project, :task, :kind, :actor_kind, :actor_name, :session, :version, :data, :at)
""")
_OF_TASK = Statement("""
SELECT kind, actor_kind, actor_name, created_at, version, data, session FROM events WHERE task_id = :task ORDER BY id
LIMIT :limit OFFSET :after
""")
_COUNT = Statement("SELECT count(*) FROM events WHERE task_id = :task")

_data = reader(dict[str, Any])


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event that is to be written."""

    task: int | None
    """None: it is about the whole project."""
    version: int
    kind: str
    data: dict[str, Any]


def tell(tx: Transaction, actor: Actor, at: str, lines: list[NewEvent], session: str = "") -> None:
    rows = [
        {
            "project": tx.project,
            "task": line.task,
            "kind": line.kind,
            "actor_kind": str(actor.kind),
            "actor_name": actor.name,
            "session": session,
            "version": line.version,
            "data": as_json(line.data),
            "at": at,
        }
        for line in lines
    ]
    if len(rows) == 1:
        tx.do(_INSERT, **rows[0])
    else:
        tx.do_each(_INSERT, rows)


def events(tx: Transaction, number: int, page: Page = WHOLE) -> list[TaskEvent]:
    return events_of(tx, id_of(tx, number), page)


def events_of(tx: Transaction, task: int, page: Page = WHOLE) -> list[TaskEvent]:
    return [event_of(row) for row in tx.all(_OF_TASK, task=task, after=page.after, limit=page.limit)]


def last_events(tx: Transaction, number: int, most: int) -> tuple[list[TaskEvent], int]:
    """The newest, in their order, and how many older ones there are."""
    task = id_of(tx, number)
    row = tx.one(_COUNT, task=task)
    older = max(0, int(row[0]) - most) if row else 0
    return events_of(tx, task, Page(after=older, limit=most)), older


def event_of(row: Row) -> TaskEvent:
    """An event, out of a row of these columns."""
    kind, actor_kind, actor_name, at, version, data, session = row
    known = _data.decode(data)
    return TaskEvent(
        kind=kind,
        actor=Actor(ActorKind(actor_kind), actor_name),
        at=at,
        version=version,
        data={**known, "session": session} if session else known,
    )
