"""Spending: one row for each iteration, written once."""

import time

from genba.blackboard.database.sanitize import now
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.task_rows import GOING
from genba.domain.fleet.records import Cost, Spending, SpendingTotals

_SPEND = Statement("""
INSERT INTO spending (project_id, task_id, run, agent, iteration, tokens, cost, day, created_at)
SELECT t.project_id, s.task_id, s.run, a.name, :iteration, :tokens, :cost, :day, :at
FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN agents a ON a.id = s.agent_id
WHERE s.run = :run AND t.project_id = :project
ON CONFLICT (run, iteration) DO NOTHING
""")
_REST = Statement("""
INSERT INTO spending (project_id, task_id, run, agent, iteration, tokens, cost, day, created_at)
SELECT t.project_id, s.task_id, s.run, a.name, 0, s.tokens - r.tokens, s.cost - r.cost, :day, :at
FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN agents a ON a.id = s.agent_id
JOIN (SELECT coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost), 0) AS cost FROM spending
  WHERE run = :run AND iteration > 0) r ON s.tokens > r.tokens OR s.cost > r.cost + 0.000001
WHERE s.run = :run AND t.project_id = :project
ON CONFLICT (run, iteration) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost
""")
_PROJECT = Statement("SELECT sum(cost), sum(tokens) FROM spending WHERE project_id = :project")
_TODAY = Statement("""
SELECT agent, sum(cost), sum(tokens) FROM spending WHERE project_id = :project AND day = :day GROUP BY agent
""")
_BY_TASK = Statement(f"""
SELECT t.number, sum(p.cost), sum(p.tokens) FROM tasks t JOIN spending p ON p.task_id = t.id
WHERE t.project_id = :project AND t.{GOING} GROUP BY t.id
""")  # noqa: S608  (words of this house)
_NEWEST = Statement("SELECT coalesce(max(id), 0) FROM spending")
_SINCE = "SELECT sum(cost), sum(tokens) FROM spending WHERE id > :since AND id <= :until AND $project = :project"
# The plus keeps SQLite from an index of the project, which would lead it through the whole past.
_NEW = Statement(_SINCE.replace("$project", "+project_id"), _SINCE.replace("$project", "project_id"))

_COUNTED_AGAIN_SECONDS = 60.0


class ProjectTotal:
    """What a project has spent, for who asks again and again: what is new is added to what is known.

    A row can also be corrected, and on PostgreSQL it can be seen late. So all of it is counted again now and then.
    """

    def __init__(self) -> None:
        self._known: tuple[Cost, int, float] | None = None
        """What was spent, up to which row, and when all of it was counted. Replaced whole: any thread may ask."""

    def read(self, tx: Transaction) -> Cost:
        newest = tx.one(_NEWEST)
        until, at = int(newest[0]) if newest else 0, time.monotonic()
        known = self._known
        if known is None or until < known[1] or at - known[2] > _COUNTED_AGAIN_SECONDS:
            self._known = known = (_whole(tx), until, at)
        elif until > known[1]:
            more = _spent(tx.one(_NEW, project=tx.project, since=known[1], until=until) or (0, 0))
            total = Cost(cost_usd=known[0].cost_usd + more.cost_usd, tokens=known[0].tokens + more.tokens)
            self._known = known = (total, until, known[2])
        return known[0]


def spend(tx: Transaction, spending: Spending) -> None:
    at = now()
    tx.do(
        _SPEND,
        project=tx.project,
        run=spending.run,
        iteration=spending.iteration,
        tokens=spending.tokens,
        cost=spending.cost_usd,
        day=at[:10],
        at=at,
    )


def spend_rest(tx: Transaction, run: str) -> None:
    """The cost of a session outside its iterations, stored as iteration 0."""
    at = now()
    tx.do(_REST, project=tx.project, run=run, day=at[:10], at=at)


def ledger(tx: Transaction, day: str, total: ProjectTotal | None = None) -> SpendingTotals:
    """What was spent so far; by task for those that have not ended. `day` is a date in UTC, such as 2026-03-01."""
    project = total.read(tx) if total is not None else _whole(tx)
    agents = {str(row[0]): _spent(row[1:]) for row in tx.all(_TODAY, project=tx.project, day=day)}
    tasks = {int(row[0]): _spent(row[1:]) for row in tx.all(_BY_TASK, project=tx.project)}
    today = Cost(
        cost_usd=sum(spent.cost_usd for spent in agents.values()), tokens=sum(spent.tokens for spent in agents.values())
    )
    return SpendingTotals(project=project, today=today, by_agent_today=agents, by_task=tasks)


def _whole(tx: Transaction) -> Cost:
    return _spent(tx.one(_PROJECT, project=tx.project) or (0, 0))


def _spent(row: Row) -> Cost:
    return Cost(cost_usd=float(row[0] or 0), tokens=int(row[1] or 0))
