"""Agents that may come by themselves: names, passkeys, and how much everybody has to do."""

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.tasks.task import TaskDraft
from genba.domain.workflow.actions import Hierarchy, RegisteredAgent
from tests.blackboard.acting import HUMAN
from tests.blackboard.connecting import at_work, begin, external_agent


@pytest.fixture
def workflow(board: Blackboard) -> WorkflowBoard:
    return WorkflowBoard(board)


def test_an_agent_is_registered_with_everything_it_is(workflow: WorkflowBoard) -> None:
    made = workflow.register(
        "ada",
        hierarchy=Hierarchy.MANAGER,
        role="lead",
        capabilities=("python", "python", "sql"),
        system_prompt="Be kind.",
        passkey_hash="h1",
        actor=HUMAN,
    )
    assert made == RegisteredAgent(
        id=made.id,
        name="ada",
        hierarchy=Hierarchy.MANAGER,
        role="lead",
        capabilities=("python", "sql"),
        system_prompt="Be kind.",
        has_passkey=True,
        created_at=made.created_at,
    )
    assert workflow.agents() == (made,)
    assert workflow.agent("ada") == workflow.agent(made.id) == made
    assert workflow.passkey_hash(made.id) == "h1"
    assert workflow.agent("nobody") is None
    assert workflow.passkey_hash("nobody") == workflow.passkey_hash("ada") == ""


def test_a_name_with_a_passkey_is_taken_and_the_same_again_changes_nothing(workflow: WorkflowBoard) -> None:
    made = workflow.register("ada", passkey_hash="h1")
    assert workflow.register("ada", passkey_hash="h1") == made
    with pytest.raises(StateConflictError, match="with a passkey already") as caught:
        workflow.register("ada", passkey_hash="h2")
    assert "h1" not in str(caught.value)
    assert workflow.passkey_hash(made.id) == "h1"


def test_an_agent_of_the_project_may_also_come_by_itself(board: Blackboard, workflow: WorkflowBoard) -> None:
    begin(board, agent="writer")
    known = workflow.agent("writer")
    assert known is not None
    assert not known.has_passkey
    assert workflow.register("writer", passkey_hash="h1").id == known.id


@pytest.mark.parametrize("name", ["", " ", "@ada", "agt_12", "a\0b"])
def test_a_name_that_means_something_else_is_refused(workflow: WorkflowBoard, name: str) -> None:
    with pytest.raises(UsageError):
        workflow.register(name, passkey_hash="h")
    assert workflow.agents() == ()


def test_a_new_passkey_closes_the_connections_of_those_who_came_with_the_old_one(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    connection, (_, spawned) = external_agent(board, "writer"), at_work(board)
    changed = workflow.set_passkey(connection.agent_id, "h2", HUMAN)
    assert (changed.has_passkey, workflow.passkey_hash(connection.agent_id)) == (True, "h2")
    closed, other = workflow.connection(connection.id), workflow.connection(spawned.id)
    assert closed is not None
    assert other is not None
    assert (closed.connection.status, closed.connection.closed) == ("closed", "its passkey was changed")
    assert other.connection.status == "active"

    workflow.set_passkey(connection.agent_id, "")
    assert workflow.passkey_hash(connection.agent_id) == ""
    with pytest.raises(NotFoundError):
        workflow.set_passkey("agt_unknown", "h")


def test_no_event_tells_a_secret(board: Blackboard, workflow: WorkflowBoard) -> None:
    made = workflow.register("ada", passkey_hash="$argon2id$secret", system_prompt="private words")
    workflow.set_passkey(made.id, "$argon2id$other")
    at_work(board)
    result = board.store.engine.raw_connection()
    try:
        cursor = result.cursor()
        cursor.execute("SELECT data FROM events")
        every = " ".join(str(row[0]) for row in cursor.fetchall())
    finally:
        result.close()
    assert "agt" not in every
    for secret in ("argon2id", "private words", "token-hash", "cred"):
        assert secret not in every


def test_the_load_of_an_agent_is_what_it_works_on_and_what_waits_for_it(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    begin(board, agent="writer")
    board.add(TaskDraft(title="Next", assignee="writer"), HUMAN)
    board.add(TaskDraft(title="Other", assignee="painter"), HUMAN)
    workflow.register("idle", hierarchy=Hierarchy.MANAGER, capabilities=("sql",), passkey_hash="h")
    found = {worker.name: (worker.load, worker.hierarchy, worker.capabilities) for worker in workflow.workers()}
    assert found == {
        "writer": (2, Hierarchy.WORKER, ()),
        "painter": (1, Hierarchy.WORKER, ()),
        "idle": (0, Hierarchy.MANAGER, ("sql",)),
    }
