"""What was spent: one row for each iteration, written once, however often it is told."""

from genba.blackboard.store import Row, Statement, Transaction
from genba.blackboard.texts import now
from genba.domain.fleet import Ledger, Spending, Spent

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
_BY_TASK = Statement("""
SELECT t.number, sum(p.cost), sum(p.tokens) FROM spending p JOIN tasks t ON t.id = p.task_id
WHERE p.project_id = :project AND t.status NOT IN ('done', 'cancelled') GROUP BY t.number
""")


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
    """What a session cost beside its iterations, or in a run that told of none: it stands as iteration 0."""
    at = now()
    tx.do(_REST, project=tx.project, run=run, day=at[:10], at=at)


def ledger(tx: Transaction, day: str) -> Ledger:
    """What was spent so far; by task for those that have not ended. `day` is a date in UTC, such as 2026-03-01."""
    project = tx.one(_PROJECT, project=tx.project)
    agents = {str(row[0]): _spent(row[1:]) for row in tx.all(_TODAY, project=tx.project, day=day)}
    tasks = {int(row[0]): _spent(row[1:]) for row in tx.all(_BY_TASK, project=tx.project)}
    today = Spent(
        cost_usd=sum(spent.cost_usd for spent in agents.values()), tokens=sum(spent.tokens for spent in agents.values())
    )
    return Ledger(project=_spent(project or (0, 0)), today=today, by_agent_today=agents, by_task=tasks)


def _spent(row: Row) -> Spent:
    return Spent(cost_usd=float(row[0] or 0), tokens=int(row[1] or 0))
