"""One-time credentials of the instances that Genba starts, and the connections of all agents.

A credential works once, for one session. A session has one active connection. Only hashes are stored; no event holds
a secret. A closed connection stays closed: the agent authenticates again. Every segment closes its connections.
"""

from collections.abc import Mapping

from genba.blackboard.database.sanitize import LARGEST, bounded, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.history import (
    AGENT_CONNECTED,
    BOUND,
    CONNECTION_CLOSED,
    CREDENTIAL_ISSUED,
    INSTANCE_STOPPED,
    NewEvent,
    tell,
)
from genba.blackboard.tasks.task_rows import hold, task_with_rows
from genba.blackboard.workflow.connection_values import Credential, StoredConnection
from genba.blackboard.workflow.phases import reopen_phase
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import Purpose
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import Actor, ActorKind
from genba.domain.workflow.actions import AgentConnection, ExitReason, Hierarchy

TAKEN = "another instance works for this run"
"""Why a connection is closed whose run has a newer one."""
PART_OVER = "its part is over"
"""Why a connection is closed whose instance did not leave by itself. What became of its session says more."""

_CREDENTIAL = Statement("""
SELECT c.id, c.run, a.name, c.agent_id, t.number, c.secret_hash, c.expires_at, c.used_at, c.revoked_at
FROM credentials c JOIN agents a ON a.id = c.agent_id JOIN sessions s ON s.run = c.run JOIN tasks t ON t.id = s.task_id
WHERE c.id = :id AND c.project_id = :project
""")
_ISSUE = Statement("""
INSERT INTO credentials (id, project_id, agent_id, run, secret_hash, expires_at, created_at)
VALUES (:id, :project, :agent, :run, :hash, :expires_at, :at)
""")
_REVOKE = Statement("""
UPDATE credentials SET revoked_at = :at WHERE run = :run AND used_at IS NULL AND revoked_at IS NULL
""")
_USE = Statement("""
UPDATE credentials SET used_at = :at WHERE id = :id AND project_id = :project AND run = :run AND used_at IS NULL
  AND revoked_at IS NULL AND expires_at > :at RETURNING agent_id
""")
_SESSION = Statement("""
SELECT s.id, s.agent_id, t.number, s.status, t.id FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE s.run = :run AND t.project_id = :project
""")
_COLUMNS = """
SELECT s.id, a.name, s.agent_id, a.hierarchy_type, s.project_id, s.run, t.number, s.spawned, s.status, s.closed,
  s.lease_until, s.created_at, s.token_hash, s.expires_at, a.status, s.exit, s.message, s.calls, s.last_action,
  x.purpose, s.task_id
FROM agent_connections s JOIN agents a ON a.id = s.agent_id LEFT JOIN tasks t ON t.id = s.task_id
  LEFT JOIN sessions x ON x.run = s.run
"""
_ONE = Statement(_COLUMNS + "WHERE s.id = :id AND s.project_id = :project")
_OF_RUN = Statement(_COLUMNS + "WHERE s.run = :run AND s.project_id = :project AND s.status = 'active'")
_EXPIRED = Statement(
    _COLUMNS
    + """
WHERE s.project_id = :project AND s.status = 'active' AND (s.lease_until <= :now OR s.expires_at <= :now) ORDER BY s.id
"""
)
_LOCK = Statement("SELECT id FROM agent_connections WHERE id = :id FOR NO KEY UPDATE")
_AGENT = Statement(
    "SELECT status, passkey_hash FROM agents WHERE id = :id AND project_id = :project",
    "SELECT status, passkey_hash FROM agents WHERE id = :id AND project_id = :project FOR SHARE",
)
_INSERT = Statement("""
INSERT INTO agent_connections (id, project_id, agent_id, task_id, run, spawned, token_hash, lease_until, expires_at,
  created_at, heartbeat_at)
VALUES (:id, :project, :agent, :task, :run, :spawned, :hash, :lease, :expires_at, :at, :at)
""")
_CLOSE = Statement("UPDATE agent_connections SET status = 'closed', closed = :why WHERE id = :id AND status = 'active'")
_BIND = Statement("UPDATE agent_connections SET run = :run, task_id = :task, exit = '', message = '' WHERE id = :id")
_STOP_INSTANCE = Statement("UPDATE agent_connections SET exit = :exit, message = :message WHERE id = :id AND exit = ''")
_BEAT = Statement("""
UPDATE agent_connections SET lease_until = :lease, calls = :calls, last_action = :action, heartbeat_at = :at
WHERE id = :id AND project_id = :project AND status = 'active'
""")
_BEAT_SESSION = Statement("""
UPDATE sessions SET heartbeat_at = :at
WHERE status = 'running' AND run = (SELECT run FROM agent_connections WHERE id = :id AND run <> '' AND NOT spawned)
""")


def issue(tx: Transaction, id_: str, run: str, secret_hash: str, expires_at: str) -> None:
    """Issue a credential for the next instance of a session. Revokes older unused ones of that session."""
    storable(id_, "the id of a credential", empty=False)
    number = int(_session(tx, run)[2])
    task = hold(tx, number).task
    session = _session(tx, run)
    there = tx.one(_CREDENTIAL, id=id_, project=tx.project)
    if there is not None and there[1] == run:
        return
    at = now()
    tx.do(_REVOKE, run=run, at=at)
    values = {"id": id_, "agent": session[1], "run": run, "hash": secret_hash, "expires_at": expires_at, "at": at}
    tx.do(_ISSUE, project=tx.project, **values)
    line = NewEvent(task=task.id, version=task.version, kind=CREDENTIAL_ISSUED, data={"expires_at": expires_at})
    tell(tx, _genba(run), at, [line], run)


def credential(tx: Transaction, id_: str) -> Credential | None:
    row = tx.one(_CREDENTIAL, id=seen(id_), project=tx.project)
    if row is None:
        return None
    return Credential(
        id=row[0],
        run=row[1],
        agent=row[2],
        agent_id=row[3],
        task=row[4],
        secret_hash=row[5],
        expires_at=row[6],
        used_at=row[7] or "",
        revoked_at=row[8] or "",
    )


def open_connection(
    tx: Transaction,
    connection: AgentConnection,
    token_hash: str,
    expires_at: str,
    credential: str,
    passkey_hash: str | None = None,
) -> AgentConnection:
    """Connection an instance. Uses up its credential, and closes the other connections of its run.

    Who came with a passkey says which one: it may have been changed since it was looked at.
    """
    storable(connection.id, "the id of a connection", empty=False)
    session = _session(tx, connection.run) if connection.run else None
    if session is not None:
        hold(tx, int(session[2]))
        session = _session(tx, connection.run)
    there = known(tx, connection.id)
    if there is not None:
        return there.connection
    at = now()
    agent = tx.one(_AGENT, id=connection.agent_id, project=tx.project)
    if agent is None or agent[0] != "active":
        raise _connection_closed("its agent is not active")
    if passkey_hash is not None and agent[1] != passkey_hash:
        raise _connection_closed("its passkey is good no more")
    if connection.run and (session is None or session[3] == SessionStatus.ENDED):
        raise _connection_closed(f"run {connection.run} has ended")
    if credential or connection.spawned:
        used = tx.one(_USE, id=seen(credential), project=tx.project, run=connection.run, at=at)
        if used is None or used[0] != connection.agent_id:
            raise _connection_closed("its credential is good no more")
    if connection.run:
        _close_others(tx, connection.run, "", at)
    tx.do(
        _INSERT,
        id=connection.id,
        project=tx.project,
        agent=connection.agent_id,
        task=session[4] if session else None,
        run=connection.run,
        spawned=connection.spawned,
        hash=token_hash,
        lease=connection.lease_until or expires_at,
        expires_at=expires_at,
        at=connection.created_at or at,
    )
    taken = _sure(tx, connection.id)
    if session is not None:
        reopen_phase(tx, int(session[4]), int(session[0]), connection.agent_id, at)
    _tell(tx, taken, at, AGENT_CONNECTED, {"spawned": connection.spawned})
    return taken.connection


def known(tx: Transaction, id_: str) -> StoredConnection | None:
    row = tx.one(_ONE, id=seen(id_), project=tx.project)
    return connection_of(row) if row else None


def bind(tx: Transaction, connection_id: str, run: str, task: int) -> AgentConnection:
    """A connection works in that session now. The other connections of the session are closed."""
    session = _session(tx, run)
    if session[2] != task:
        raise StateConflictError(
            f"run {run} works on #{session[2]}, not on #{task}",
            unchanged="nothing was changed.",
            hint=f"genba task show {task}",
        )
    hold(tx, task)
    there = _held(tx, connection_id)
    if there.connection.status != "active":
        raise _connection_closed(there.connection.closed or "its connection was closed")
    if (there.connection.run, there.connection.task) == (run, task):
        return there.connection
    at = now()
    _close_others(tx, run, connection_id, at)
    tx.do(_BIND, id=connection_id, run=run, task=session[4])
    bound = _sure(tx, connection_id)
    _tell(tx, bound, at, BOUND, {})
    return bound.connection


def unbind(tx: Transaction, connection_id: str) -> AgentConnection:
    """An external agent has left its task, and keeps its connection."""
    there = _held(tx, connection_id)
    if not there.connection.run and there.connection.task is None:
        return there.connection
    _tell(tx, there, now(), BOUND, {"left": True})
    tx.do(_BIND, id=connection_id, run="", task=None)
    return _sure(tx, connection_id).connection


def stop_instance(tx: Transaction, connection_id: str, reason: ExitReason, message: str) -> None:
    """Record why an instance stops. The first reason counts."""
    there = _held(tx, connection_id)
    if there.exit:
        return
    result = bounded(message.strip())
    tx.do(_STOP_INSTANCE, id=connection_id, exit=str(reason), message=result)
    _tell(
        tx,
        there,
        now(),
        INSTANCE_STOPPED,
        {"reason": str(reason), "message": result} if result else {"reason": str(reason)},
    )


def close_connection(tx: Transaction, id_: str, why: str) -> None:
    there = _held(tx, id_)
    if there.connection.status == "active":
        _close(tx, there, why, now())


def leave(tx: Transaction, run: str, why: str) -> None:
    """Close the connections of a session and revoke its credential."""
    hold(tx, int(_session(tx, run)[2]))
    at = now()
    tx.do(_REVOKE, run=run, at=at)
    for row in tx.all(_OF_RUN, run=seen(run), project=tx.project):
        _close(tx, connection_of(row), why, at)


def part_over(tx: Transaction, run: str, at: str) -> None:
    """No instance that Genba started outlives its part, however that ended. An external agent keeps its connection.

    The process that ends an instance calls `leave`; one that died, or had a full disk, did not.
    """
    tx.do(_REVOKE, run=run, at=at)
    for row in tx.all(_OF_RUN, run=run, project=tx.project):
        there = connection_of(row)
        if there.connection.spawned:
            _close(tx, there, PART_OVER, at)


def beat(tx: Transaction, signs: Mapping[str, tuple[str, int, str]]) -> None:
    """Signs of life. They are no events: they say what is now, and the next ones replace them."""
    at = now()
    for id_, (lease, calls, action) in sorted(signs.items()):
        values = {"lease": lease, "calls": min(max(calls, 0), LARGEST), "action": bounded(action, 200)}
        tx.do(_BEAT, id=seen(id_), project=tx.project, at=at, **values)
        tx.do(_BEAT_SESSION, id=seen(id_), at=at)


def expired(tx: Transaction, at: str) -> tuple[AgentConnection, ...]:
    return tuple(connection_of(row).connection for row in tx.all(_EXPIRED, project=tx.project, now=at))


def connection_of(row: Row) -> StoredConnection:
    """The role of an instance that Genba started follows its session; an external agent keeps its own role."""
    manages = row[19] == Purpose.MANAGE if row[7] else row[3] == Hierarchy.MANAGER
    connection = AgentConnection(
        id=row[0],
        agent=row[1],
        agent_id=row[2],
        hierarchy=Hierarchy.MANAGER if manages else Hierarchy.WORKER,
        project=row[4],
        run=row[5],
        task=row[6],
        spawned=bool(row[7]),
        status=row[8],
        closed=row[9],
        lease_until=row[10],
        created_at=row[11],
    )
    return StoredConnection(
        connection=connection,
        token_hash=row[12],
        expires_at=row[13],
        agent_active=row[14] == "active",
        exit=row[15],
        message=row[16],
        calls=row[17],
        last_action=row[18],
    )


def _close_others(tx: Transaction, run: str, but: str, at: str) -> None:
    for row in tx.all(_OF_RUN, run=run, project=tx.project):
        if row[0] != but:
            _close(tx, connection_of(row), TAKEN, at)


def _close(tx: Transaction, there: StoredConnection, why: str, at: str) -> None:
    message = bounded(why.strip()) or "it was closed"
    tx.do(_CLOSE, id=there.connection.id, why=message)
    _tell(tx, there, at, CONNECTION_CLOSED, {"why": message})


def _session(tx: Transaction, run: str) -> Row:
    row = tx.one(_SESSION, run=seen(run), project=tx.project)
    if row is None:
        raise NotFoundError(
            f"there is no session of the run {run!r}", unchanged="nothing was changed.", hint="genba task list"
        )
    return row


def _held(tx: Transaction, id_: str) -> StoredConnection:
    """Lock a connection until this transaction ends. Its task is locked first."""
    there = _sure(tx, id_)
    if there.connection.task is not None:
        hold(tx, there.connection.task)
    if tx.on_postgres:
        tx.one(_LOCK, id=seen(id_))
    return _sure(tx, id_)


def _sure(tx: Transaction, id_: str) -> StoredConnection:
    there = known(tx, id_)
    if there is None:
        raise NotFoundError(
            f"there is no connection {id_!r}", unchanged="nothing was changed.", hint="authenticate again"
        )
    return there


def _connection_closed(why: str) -> StateConflictError:
    return StateConflictError(f"there is no connection for it: {why}", unchanged="nothing was changed.")


def _genba(run: str) -> Actor:
    return Actor(ActorKind.ORCHESTRATOR, seen(run).strip() or "genba")


def _tell(tx: Transaction, there: StoredConnection, at: str, kind: str, data: dict[str, object]) -> None:
    """An event of a connection. It is the task's where there is one; it adds to a task, and does not change it."""
    connection = there.connection
    kind_of = ActorKind.MANAGER if connection.hierarchy is Hierarchy.MANAGER else ActorKind.WORKER
    task = task_with_rows(tx, connection.task).task if connection.task is not None else None
    values = {"connection": connection.id, **data}
    line = NewEvent(task=task.id if task else None, version=task.version if task else 0, kind=kind, data=values)
    tell(tx, Actor(kind_of, connection.agent), at, [line], connection.run)
