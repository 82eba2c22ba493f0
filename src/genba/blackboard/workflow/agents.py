"""Agents that may come by themselves, with a passkey, and what everybody has to do already.

A passkey is stored as a hash. To change it closes the connections that were opened with the old one.
"""

from genba.blackboard.database.sanitize import as_json, named, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.history import AGENT_REGISTERED, PASSKEY_CHANGED, NewEvent, tell
from genba.blackboard.tasks.task_records import agent_id as known_agent
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.tasks.task import PERSON, Actor
from genba.domain.workflow.actions import Hierarchy, RegisteredAgent, Worker

_COLUMNS = """
SELECT id, name, hierarchy_type, role_type, capabilities, system_prompt, status, passkey_hash, created_at FROM agents
"""
_ALL = Statement(_COLUMNS + "WHERE project_id = :project ORDER BY name")
_ONE = Statement(
    _COLUMNS
    + """
WHERE project_id = :project AND (id = :key OR name = :key) ORDER BY CASE WHEN id = :key THEN 0 ELSE 1 END LIMIT 1
"""
)
_LOCK = Statement("SELECT id FROM agents WHERE id = :id FOR NO KEY UPDATE")
_UPDATE = Statement("""
UPDATE agents SET hierarchy_type = :hierarchy, role_type = :role, capabilities = :capabilities,
  system_prompt = :system_prompt, passkey_hash = :hash, status = 'active' WHERE id = :id
""")
_PASSKEY = Statement("UPDATE agents SET passkey_hash = :hash WHERE id = :id")
_CLOSE_EXTERNAL = Statement("""
UPDATE agent_connections SET status = 'closed', closed = :why
WHERE agent_id = :agent AND NOT spawned AND status = 'active'
""")
_LOADS = Statement("""
SELECT a.name, a.hierarchy_type, a.role_type, a.capabilities,
  (SELECT count(*) FROM sessions s WHERE s.agent_id = a.id AND s.status = 'running')
  + (SELECT count(*) FROM tasks t WHERE t.project_id = :project AND t.assignee = a.name AND t.status = 'open'
    AND NOT t.in_plan)
FROM agents a WHERE a.project_id = :project AND a.status = 'active' ORDER BY a.name
""")

_texts = reader(tuple[str, ...])
_IDS = "agt_"


def register(
    tx: Transaction,
    name: str,
    *,
    hierarchy: Hierarchy,
    role: str,
    capabilities: tuple[str, ...],
    system_prompt: str,
    passkey_hash: str,
    actor: Actor,
) -> RegisteredAgent:
    """Write an agent down, or what is new of it. One that is active, and has another passkey, is refused."""
    named(actor)
    _check(name, role, capabilities, system_prompt)
    at = now()
    id_ = known_agent(tx, name, at)
    before = _held(tx, id_)
    there = str(before[7] or "")
    if there and before[6] == "active" and there != passkey_hash:
        raise StateConflictError(
            f'there is an agent "{name}" with a passkey already',
            unchanged="nothing was changed.",
            hint=f"give it another one: genba agent passkey rotate {name}",
        )
    words = as_json(tuple(dict.fromkeys(capabilities)))
    tx.do(
        _UPDATE,
        id=id_,
        hierarchy=str(hierarchy),
        role=role,
        capabilities=words,
        system_prompt=system_prompt,
        hash=passkey_hash or None,
    )
    after = _held(tx, id_)
    if after != before:
        _tell(tx, actor, at, AGENT_REGISTERED, {"agent": name, "hierarchy": str(hierarchy), "role": role})
    return agent_of(after)


def agents(tx: Transaction) -> tuple[RegisteredAgent, ...]:
    return tuple(agent_of(row) for row in tx.all(_ALL, project=tx.project))


def agent(tx: Transaction, id_or_name: str) -> RegisteredAgent | None:
    row = tx.one(_ONE, project=tx.project, key=seen(id_or_name))
    return agent_of(row) if row else None


def passkey_hash(tx: Transaction, agent_id: str) -> str:
    """The hash of the passkey of an active agent; empty when there is none."""
    row = tx.one(_ONE, project=tx.project, key=seen(agent_id))
    return str(row[7] or "") if row and row[0] == agent_id and row[6] == "active" else ""


def set_passkey(tx: Transaction, agent_id: str, hash_: str, actor: Actor) -> RegisteredAgent:
    """Give an agent a new passkey, or none. Closes the connections of the old one."""
    named(actor)
    found = agent(tx, agent_id)
    if found is None:
        raise NotFoundError(f"there is no agent {agent_id!r}", unchanged="nothing was changed.", hint="genba list")
    before = _held(tx, found.id)
    if str(before[7] or "") == hash_:
        return agent_of(before)
    at = now()
    tx.do(_PASSKEY, id=found.id, hash=hash_ or None)
    tx.do(_CLOSE_EXTERNAL, agent=found.id, why="its passkey was changed" if hash_ else "its passkey was revoked")
    _tell(tx, actor, at, PASSKEY_CHANGED, {"agent": found.name, "revoked": not hash_})
    return agent_of(_held(tx, found.id))


def workers(tx: Transaction) -> tuple[Worker, ...]:
    """Every active agent, with the tasks that it works on and those that wait for it."""
    return tuple(
        Worker(name=name, hierarchy=Hierarchy(hierarchy), role=role, capabilities=_texts.decode(words), load=load)
        for name, hierarchy, role, words, load in tx.all(_LOADS, project=tx.project)
    )


def agent_of(row: Row) -> RegisteredAgent:
    return RegisteredAgent(
        id=row[0],
        name=row[1],
        hierarchy=Hierarchy(row[2]),
        role=row[3],
        capabilities=_texts.decode(row[4]),
        system_prompt=row[5],
        status=row[6],
        has_passkey=bool(row[7]),
        created_at=row[8],
    )


def _check(name: str, role: str, capabilities: tuple[str, ...], system_prompt: str) -> None:
    storable(name, "the name of the agent", empty=False)
    if name.startswith((PERSON, _IDS)):
        raise UsageError(
            f'an agent cannot be called "{name}": so begin the names of people and the ids of agents',
            unchanged="nothing was changed.",
        )
    storable(role, "the role", empty=False)
    storable(system_prompt, "the system prompt")
    for word in capabilities:
        storable(word, "a capability", empty=False)


def _held(tx: Transaction, id_: str) -> Row:
    """Lock the row of an agent until this transaction ends."""
    if tx.on_postgres:
        tx.one(_LOCK, id=id_)
    row = tx.one(_ONE, project=tx.project, key=id_)
    if row is None:
        raise NotFoundError(f"there is no agent {id_!r}", unchanged="nothing was changed.", hint="genba list")
    return row


def _tell(tx: Transaction, actor: Actor, at: str, kind: str, data: dict[str, object]) -> None:
    tell(tx, actor, at, [NewEvent(task=None, version=0, kind=kind, data=data)])
