"""What agents tell each other: a message goes to a task, and is read by whoever works on it.

Law: a message is read once. Handovers are no messages: whoever begins a task gets them with it.
"""

from genba.blackboard.conditions import refused
from genba.blackboard.history import MESSAGED, Line, tell
from genba.blackboard.rows import hold, id_of
from genba.blackboard.seats import known
from genba.blackboard.store import Row, Statement, Transaction
from genba.blackboard.texts import bounded, now, seen, storable
from genba.domain.errors import NotFoundError, UsageError
from genba.domain.tasks import Actor, ActorKind
from genba.domain.texts import LONGEST
from genba.domain.workflow import ErrorCode, Hierarchy, Message, Seat, WorkflowError

TYPES = ("instruction", "broadcast")
_LONGEST = 3 * LONGEST
_MOST_UNREAD = 200
"""Unread messages of a task: whoever floods it is told so."""

_SESSION = Statement("SELECT id FROM sessions WHERE run = :run AND task_id = :task")
_COLUMNS = """
SELECT m.id, coalesce(a.name, ''), m.type, m.content, f.number, m.created_at
FROM messages m LEFT JOIN sessions s ON s.id = m.from_session_id LEFT JOIN agents a ON a.id = s.agent_id
  LEFT JOIN tasks f ON f.id = s.task_id
"""
_UNREAD = """
WHERE m.task_id = :task AND m.type IN ('instruction', 'broadcast') AND m.status = 'pending'
"""
_INBOX = Statement(_COLUMNS + _UNREAD + "ORDER BY m.id")
_SAME = Statement(
    _COLUMNS + _UNREAD + "AND m.from_session_id = :sender AND m.type = :type AND m.content = :content ORDER BY m.id"
)
COUNT = Statement("SELECT count(*) FROM messages m" + _UNREAD)  # noqa: S608  (words of this module)
"""How many messages of a task nobody has read."""
_INSERT = Statement("""
INSERT INTO messages (project_id, task_id, from_session_id, type, content, created_at)
VALUES (:project, :task, :sender, :type, :content, :at)
""")
_READ = Statement("UPDATE messages SET status = 'read' WHERE id = :id AND status = 'pending'")


def send_message(tx: Transaction, seat_id: str, to: int, content: str, type_: str) -> Message:
    """Tell those who work on a task something. The same twice, while it is unread, is told once."""
    if type_ not in TYPES:
        raise UsageError(f"a message is one of {', '.join(TYPES)}, not {type_!r}", unchanged="nothing was changed.")
    storable(content, "the message", empty=False)
    seat, sender = _sender(tx, seat_id)
    task = hold(tx, to).task
    if task.status.ended:
        raise refused(to, f"it is {task.status}: nobody would read it")
    kept = bounded(content, _LONGEST)
    there = tx.one(_SAME, task=task.id, sender=sender, type=type_, content=kept)
    if there is not None:
        return message_of(there)
    unread = tx.one(COUNT, task=task.id)
    if unread is not None and unread[0] >= _MOST_UNREAD:
        raise WorkflowError(
            ErrorCode.LIMIT,
            f"task #{to} has {unread[0]} messages that nobody has read",
            hint="wait until somebody has read them",
        )
    at = now()
    tx.do(_INSERT, project=tx.project, task=task.id, sender=sender, type=type_, content=kept, at=at)
    kind = ActorKind.MANAGER if seat.hierarchy is Hierarchy.MANAGER else ActorKind.WORKER
    line = Line(task=task.id, version=task.version, kind=MESSAGED, data={"from": seat.task, "type": type_})
    tell(tx, Actor(kind, seat.agent), at, [line], seat.run)
    told = tx.one(_SAME, task=task.id, sender=sender, type=type_, content=kept)
    return message_of(told or (0, seat.agent, type_, kept, seat.task, at))


def messages(tx: Transaction, seat_id: str, mark_read: bool) -> tuple[Message, ...]:
    """What the task of a seat was told and nobody has read, oldest first."""
    there = known(tx, seat_id)
    if there is None or there.seat.task is None:
        return ()
    task = hold(tx, there.seat.task).task if mark_read else None
    found = tx.all(_INBOX, task=task.id if task else id_of(tx, there.seat.task))
    if mark_read and found:
        tx.do_each(_READ, [{"id": row[0]} for row in found])
    return tuple(message_of(row) for row in found)


def message_of(row: Row) -> Message:
    return Message(id=row[0], sender=row[1], type=row[2], content=row[3], task=row[4], created_at=row[5])


def _sender(tx: Transaction, seat_id: str) -> tuple[Seat, int]:
    there = known(tx, seat_id)
    if there is None or there.seat.task is None:
        raise NotFoundError(
            f"seat {seat_id!r} works on nothing", unchanged="nothing was changed.", hint="call get_next_action first"
        )
    row = tx.one(_SESSION, run=seen(there.seat.run), task=id_of(tx, there.seat.task))
    if row is None:
        raise NotFoundError(f"seat {seat_id!r} has no session", unchanged="nothing was changed.")
    return there.seat, int(row[0])
