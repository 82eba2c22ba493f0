"""The shortest ways to a connection: a session with a credential, taken by an instance."""

import itertools

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.domain.fleet.records import FleetSession, Purpose
from genba.domain.tasks.task import TaskDraft
from genba.domain.workflow.actions import AgentConnection, Hierarchy, Phase
from tests.blackboard.acting import HUMAN
from tests.blackboard.fleets import order

LATER, LONG_AGO = "2999-01-01T00:00:00.000000Z", "2001-01-01T00:00:00.000000Z"
_NUMBERS = itertools.count(1)


def begin(
    board: Blackboard, purpose: Purpose = Purpose.WORK, task: int | None = None, agent: str = "writer", attempt: int = 1
) -> FleetSession:
    number = task or board.add(TaskDraft(title="Work"), HUMAN).number
    result = order(number, attempt, agent, purpose)
    return FleetBoard(board).start(result, executor="here", host="h", provider="p", base_branch="main")


def connection_for(
    board: Blackboard, session: FleetSession, hierarchy: Hierarchy = Hierarchy.WORKER
) -> AgentConnection:
    """What an instance of a session asks for."""
    workflow = WorkflowBoard(board)
    agent = workflow.agent(session.agent)
    assert agent is not None
    return AgentConnection(
        id=f"connection{next(_NUMBERS)}",
        agent=agent.name,
        agent_id=agent.id,
        hierarchy=hierarchy,
        project=board.store.project,
        run=session.run,
        task=session.task,
        lease_until=LATER,
    )


def sit_down(board: Blackboard, session: FleetSession) -> AgentConnection:
    """An instance of a session has authenticated."""
    workflow, credential = WorkflowBoard(board), f"cred{next(_NUMBERS)}"
    workflow.issue(credential, session.run, "hash", LATER)
    return workflow.open_connection(connection_for(board, session), "token-hash", LATER, credential)


def at_work(
    board: Blackboard, purpose: Purpose = Purpose.WORK, task: int | None = None
) -> tuple[FleetSession, AgentConnection]:
    """A new task, its session, and an instance that has fetched it."""
    session = begin(board, purpose, task)
    connection = sit_down(board, session)
    WorkflowBoard(board).mark(session.task, session.run, session.agent, Phase.FETCHED)
    return session, connection


def external_agent(
    board: Blackboard, name: str = "external_agent", hierarchy: Hierarchy = Hierarchy.WORKER
) -> AgentConnection:
    """An agent that came by itself."""
    workflow = WorkflowBoard(board)
    agent = workflow.agent(name) or workflow.register(name, hierarchy=hierarchy, passkey_hash="p")
    connection = AgentConnection(
        id=f"connection{next(_NUMBERS)}",
        agent=name,
        agent_id=agent.id,
        hierarchy=hierarchy,
        project=board.store.project,
        spawned=False,
        lease_until=LATER,
    )
    return workflow.open_connection(connection, "token-hash", LATER)
