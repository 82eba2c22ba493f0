"""Messages between agents: a message goes to a task, and the agent of that task reads it.

`pending` → `read`: it was delivered, by `get_my_task`, `get_messages` or a prompt. → `resolved`: the reader wrote back
to the task that it came from, or the task that it was sent to has ended.

Law: `get_messages` gives a session each message once. A session that begins is given everything that is not resolved.
Handovers are shown in another place: they are delivered together with the first messages.
"""

from typing import NamedTuple

from genba.blackboard.database.sanitize import bounded, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.history import MESSAGED, NewEvent, tell
from genba.blackboard.tasks.task_rows import hold, id_of
from genba.blackboard.tasks.task_tree import Relative, descendants, line_of
from genba.blackboard.tasks.transition_rules import refused
from genba.blackboard.workflow.agent_connections import known
from genba.domain.errors import NotFoundError
from genba.domain.tasks.task import Actor, ActorKind
from genba.domain.text_limits import LONGEST
from genba.domain.workflow.actions import (
    AgentConnection,
    BroadcastScope,
    ErrorCode,
    Hierarchy,
    Message,
    MessageType,
    WorkflowError,
)

_LONGEST = 3 * LONGEST
_MOST_UNREAD = 200
"""The most unread messages of a task."""

_SESSION = Statement("SELECT id FROM sessions WHERE run = :run AND task_id = :task")
_OF_RUN = Statement("""
SELECT s.id, s.task_id, s.inbox, t.number FROM sessions s JOIN tasks t ON t.id = s.task_id WHERE s.run = :run
""")
_AT_WORK = Statement("""
SELECT id FROM sessions WHERE task_id = :task AND status <> 'ended' AND purpose IN ('work', 'integrate', 'manage')
ORDER BY id DESC LIMIT 1
""")
_COLUMNS = """
SELECT m.id, coalesce(a.name, ''), m.type, m.content, f.number, m.created_at, m.status
FROM messages m LEFT JOIN sessions s ON s.id = m.from_session_id LEFT JOIN agents a ON a.id = s.agent_id
  LEFT JOIN tasks f ON f.id = s.task_id
WHERE m.task_id = :task AND m.type IN ('instruction', 'broadcast')
"""
_OPEN = Statement(_COLUMNS + "AND m.status <> 'resolved' AND m.id > :after ORDER BY m.id")
_SAME = Statement(
    _COLUMNS
    + """AND m.status = 'pending' AND m.from_session_id = :sender AND m.type = :type AND m.content = :content
ORDER BY m.id
"""
)
COUNT = Statement("""
SELECT count(*) FROM messages m
WHERE m.task_id = :task AND m.type IN ('instruction', 'broadcast') AND m.status = 'pending'
""")
"""How many messages of a task are unread."""
_INSERT = Statement("""
INSERT INTO messages (project_id, task_id, from_session_id, to_session_id, type, content, created_at)
VALUES (:project, :task, :sender, :to, :type, :content, :at)
""")
_READ = Statement("""
UPDATE messages SET status = 'read', to_session_id = coalesce(to_session_id, :session)
WHERE task_id = :task AND status = 'pending' AND (id <= :last OR type = 'handover')
""")
_FETCHED = Statement("UPDATE sessions SET inbox = :last WHERE id = :session AND inbox < :last")
_RESOLVE_ANSWERED = Statement("""
UPDATE messages SET status = 'resolved' WHERE task_id = :task AND status = 'read'
  AND from_session_id IN (SELECT id FROM sessions WHERE task_id = :sender)
""")
_IN_HANDS = Statement("""
SELECT t.id, t.number, coalesce(a.name, t.assignee),
  (SELECT count(*) FROM agents g WHERE g.project_id = :project AND g.name = coalesce(a.name, t.assignee)
    AND g.passkey_hash IS NOT NULL AND (s.id IS NULL OR s.external))
FROM tasks t LEFT JOIN sessions s ON s.task_id = t.id AND s.status <> 'ended'
    AND s.purpose IN ('work', 'integrate', 'manage')
  LEFT JOIN agents a ON a.id = s.agent_id
WHERE t.project_id = :project AND t.status NOT IN ('done', 'cancelled') AND t.review_of IS NULL AND NOT t.in_plan
  AND (s.id IS NOT NULL OR t.assignee_id IS NOT NULL)
ORDER BY CASE WHEN s.id IS NULL THEN 1 ELSE 0 END, t.number
""")
"""Tasks that an agent works on, or that are kept for one; those that are worked on come first."""


class _NewMessage(NamedTuple):
    """What is written, and by whom."""

    content: str
    type: MessageType
    sender: int | None
    """The session that writes."""
    origin: int | None
    """The number of its task."""
    actor: Actor
    run: str


def send_message(tx: Transaction, connection_id: str, to: int, content: str) -> Message:
    """Send a message to the agents of a task. A repeated unread message is stored once."""
    storable(content, "the message", empty=False)
    connection, sender = _sender(tx, connection_id)
    own = id_of(tx, connection.task or 0)
    task = hold(tx, to).task
    if task.status.ended:
        raise refused(to, f"it is {task.status}: no agent would read it")
    tx.do(_RESOLVE_ANSWERED, task=own, sender=task.id)
    return _write(tx, line_of(tx, to)[0], _new_message(connection, sender, MessageType.INSTRUCTION, content))


def note(tx: Transaction, to: int, run: str, content: str, actor: Actor) -> None:
    """The manager's instruction to the agent that it assigns a task to."""
    storable(content, "the note", empty=False)
    hold(tx, to)
    row = tx.one(_OF_RUN, run=seen(run))
    sender, origin = (int(row[0]), int(row[3])) if row else (None, None)
    letter = _NewMessage(content, MessageType.INSTRUCTION, sender, origin, actor, seen(run))
    _write(tx, line_of(tx, to)[0], letter)


def broadcast(tx: Transaction, connection_id: str, content: str, scope: BroadcastScope) -> tuple[int, ...]:
    """Tell everybody something, each once: the numbers of the tasks whose agents get it.

    One copy for each session at work, and for each task that is kept for an agent that has not begun. An agent that
    connected by itself works on one task after the other, and gets one copy in all.
    """
    storable(content, "the message", empty=False)
    connection, sender = _sender(tx, connection_id)
    found = _recipients(tx, connection, scope)
    for number in found:
        hold(tx, number)
    for number in found:
        _write(tx, line_of(tx, number)[0], _new_message(connection, sender, MessageType.BROADCAST, content))
    return tuple(sorted(found))


def messages(tx: Transaction, connection_id: str, mark_read: bool) -> tuple[Message, ...]:
    """The messages that the session of a connection has not fetched, oldest first."""
    there = known(tx, connection_id)
    if there is None or there.connection.task is None:
        return ()
    if mark_read:
        hold(tx, there.connection.task)
    row = tx.one(_OF_RUN, run=seen(there.connection.run))
    if row is None:
        return ()
    session, task, inbox, _ = row
    found = tx.all(_OPEN, task=task, after=inbox)
    if mark_read and found:
        tx.do(_READ, task=task, session=session, last=found[-1][0])
        tx.do(_FETCHED, session=session, last=found[-1][0])
    return tuple(message_of(row) for row in found)


def open_messages(tx: Transaction, run: str) -> tuple[Message, ...]:
    """The unresolved messages to the task of a session, oldest first."""
    row = tx.one(_OF_RUN, run=seen(run))
    return tuple(message_of(each) for each in tx.all(_OPEN, task=row[1], after=0)) if row else ()


def deliver(tx: Transaction, run: str, last: int) -> None:
    """Everything up to this message has reached the session of a run, and the handovers of its task with it."""
    row = tx.one(_OF_RUN, run=seen(run))
    if row is not None:
        tx.do(_READ, task=row[1], session=row[0], last=last)


def message_of(row: Row) -> Message:
    return Message(id=row[0], sender=row[1], type=row[2], content=row[3], task=row[4], created_at=row[5], status=row[6])


def _write(tx: Transaction, task: Relative, letter: _NewMessage) -> Message:
    """Write it down; the same twice, while it is unread, is there once."""
    kept, sender, type_ = bounded(letter.content, _LONGEST), letter.sender, str(letter.type)
    same = {"task": task.id, "sender": sender, "type": type_, "content": kept}
    there = tx.one(_SAME, **same)
    if there is not None:
        return message_of(there)
    unread = tx.one(COUNT, task=task.id)
    if unread is not None and unread[0] >= _MOST_UNREAD:
        raise WorkflowError(
            ErrorCode.LIMIT,
            f"task #{task.number} has {unread[0]} messages that no agent has read",
            hint="wait until an agent has read them",
        )
    at, live = now(), tx.one(_AT_WORK, task=task.id)
    tx.do(_INSERT, project=tx.project, to=int(live[0]) if live else None, at=at, **same)
    data = {"from": letter.origin, "type": type_}
    tell(tx, letter.actor, at, [NewEvent(task=task.id, version=task.version, kind=MESSAGED, data=data)], letter.run)
    result = tx.one(_SAME, **same)
    return message_of(result or (0, letter.actor.name, type_, kept, letter.origin, at, "pending"))


def _new_message(connection: AgentConnection, sender: int, type_: MessageType, content: str) -> _NewMessage:
    kind = ActorKind.MANAGER if connection.hierarchy is Hierarchy.MANAGER else ActorKind.WORKER
    return _NewMessage(content, type_, sender, connection.task, Actor(kind, connection.agent), connection.run)


def _recipients(tx: Transaction, connection: AgentConnection, scope: BroadcastScope) -> list[int]:
    """The numbers of the tasks, in the order in which they are locked."""
    within = _tree(tx, connection.task or 0) if scope is BroadcastScope.TREE else None
    found: dict[int, int] = {}
    served = {connection.agent}
    for task, number, agent, outside in tx.all(_IN_HANDS, project=tx.project):
        if number == connection.task or (within is not None and number not in within) or (outside and agent in served):
            continue
        if outside:
            served.add(str(agent))
        found[int(task)] = int(number)
    return [number for _, number in sorted(found.items())]


def _tree(tx: Transaction, number: int) -> frozenset[int]:
    """The numbers of everything in the tree of a task."""
    top = line_of(tx, number)[-1]
    return frozenset((top.number, *(below.number for below in descendants(tx, top.id))))


def _sender(tx: Transaction, connection_id: str) -> tuple[AgentConnection, int]:
    there = known(tx, connection_id)
    if there is None or there.connection.task is None:
        raise NotFoundError(
            f"connection {connection_id!r} works on nothing",
            unchanged="nothing was changed.",
            hint="call get_next_action first",
        )
    row = tx.one(_SESSION, run=seen(there.connection.run), task=id_of(tx, there.connection.task))
    if row is None:
        raise NotFoundError(f"connection {connection_id!r} has no session", unchanged="nothing was changed.")
    return there.connection, int(row[0])
