"""A project with a long past: what ended long ago is not read again at every look."""

import itertools
from collections.abc import Callable

import pytest
from sqlalchemy import event

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.fleet.records import SegmentOrder, Spending
from genba.domain.tasks.task import Actor, ActorKind, TaskDraft

HUMAN = Actor(ActorKind.HUMAN, "tester")
_AT = "2026-01-01T00:00:00.000000Z"
_KEYS = itertools.count(10_000)
_AGENT = "INSERT INTO agents (id, project_id, name, created_at) VALUES ('agt_past', :project, 'past', :at)"
_TASK = """
INSERT INTO tasks (id, project_id, number, title, description, status, created_at, updated_at)
VALUES (:key, :project, :key, 'done long ago', '', 'done', :at, :at)
"""
_LEFT = (
    """INSERT INTO sessions (run, task_id, agent_id, attempt, status, outcome, started_at, heartbeat_at)
       VALUES (:run, :key, 'agt_past', 1, 'ended', 'completed', :at, :at)""",
    """INSERT INTO merge_entries (project_id, task_id, run, branch, "commit", target, status, enqueued_at)
       VALUES (:project, :key, :run, :run, :run, 'main', 'merged', :at)""",
    """INSERT INTO spending (project_id, task_id, run, agent, iteration, tokens, cost, day, created_at)
       VALUES (:project, :key, :run, 'past', 1, 10, 0.5, '2026-01-01', :at)""",
    """INSERT INTO escalations (project_id, task_id, kind, question, status, created_at)
       VALUES (:project, :key, 'question', 'tea?', 'answered', :at)""",
    """INSERT INTO reviews (project_id, task_id, of_task_id, "commit", reviewer_type, status, created_at)
       VALUES (:project, :key, :key, :run, 'human', 'approved', :at)""",
    """INSERT INTO plans (project_id, task_id, run, subtasks, status, created_at)
       VALUES (:project, :key, :run, '[]', 'created', :at)""",
)


def _past(tx: Transaction, count: int) -> None:
    """Tasks that are done, each with all that one can leave behind."""
    if not tx.all(Statement("SELECT 1 FROM agents WHERE id = 'agt_past'")):
        tx.do(Statement(_AGENT), project=tx.project, at=_AT)
    keys = list(itertools.islice(_KEYS, count))
    for sql in (_TASK, *_LEFT):
        rows = [{"project": tx.project, "key": key, "run": f"past-{key}", "at": _AT} for key in keys]
        statement = Statement(sql)
        wanted = {name for name in ("project", "key", "run", "at") if f":{name}" in sql}
        tx.do_each(statement, [{name: row[name] for name in wanted} for row in rows])


def _steps(board: Blackboard, look: Callable[[], object]) -> int:
    """The steps that SQLite takes for one look: no busy machine changes them."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def listen(connection: object, *_others: object) -> None:
        connection.set_progress_handler(count, 1)  # type: ignore[attr-defined]

    event.listen(board.store.engine, "checkout", listen)
    try:
        look()
    finally:
        event.remove(board.store.engine, "checkout", listen)
    return steps


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
def test_a_look_does_not_read_what_ended_long_ago(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    for number in range(1, 6):
        board.add(TaskDraft(title=f"Task {number}", number=number), HUMAN)
    looks: tuple[Callable[[], object], ...] = (fleet.field, lambda: fleet.entries("main"), fleet.escalations)
    board.store.write(lambda tx: _past(tx, 100))
    fleet.field()
    before = [_steps(board, look) for look in looks]
    board.store.write(lambda tx: _past(tx, 900))
    fleet.field()
    after = [_steps(board, look) for look in looks]

    assert [late < 1.1 * early + 5 for late, early in zip(after, before, strict=True)] == [True] * len(looks), after
    assert len(fleet.field().tasks) == 5


def test_what_is_spent_is_added_up_as_it_comes(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    board.store.write(lambda tx: _past(tx, 4))
    assert fleet.field().ledger.project.cost_usd == pytest.approx(2.0)

    board.add(TaskDraft(title="Make tea", number=1), HUMAN)
    fleet.start(SegmentOrder(run="worker-1-1", task=1, agent="worker", attempt=1), executor="here")
    for iteration in (1, 2):
        fleet.progress("worker-1-1", spending=Spending(run="worker-1-1", iteration=iteration, tokens=7, cost_usd=0.25))
        found = fleet.field().ledger
        assert found.project.cost_usd == pytest.approx(2.0 + 0.25 * iteration)
        assert found.project.tokens == 40 + 7 * iteration
        assert found.by_task[1].cost_usd == pytest.approx(0.25 * iteration)
    assert fleet.ledger().project == fleet.field().ledger.project
