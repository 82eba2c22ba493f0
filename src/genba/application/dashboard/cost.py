"""What the page of the cost looks at: what was spent by day, by agent and by task, and against which budgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from genba.blackboard.fleet.spending import ledger
from genba.blackboard.views import fleet_views
from genba.domain.fleet.records import Cost
from genba.domain.views.cost import BudgetKind, BudgetUse, CostView, DaySpent, TaskSpent

if TYPE_CHECKING:
    from genba.application.dashboard.queries import DashboardQueries
    from genba.blackboard.database.store import Transaction
    from genba.definitions.project.work_sections import BudgetSettings
    from genba.domain.fleet.records import SpendingTotals

DAYS = (7, 30, 90)
TASKS = 50


def cost_picture(queries: DashboardQueries, days: int = 30) -> CostView:
    """What was spent; by day over the last so many days."""
    today = datetime.now(UTC).date()
    dates = tuple((today - timedelta(days=back)).isoformat() for back in range(max(1, days) - 1, -1, -1))
    budget = queries.context.project.fleet.budget

    def read(tx: Transaction) -> CostView:
        known = ledger(tx, dates[-1])
        spent = fleet_views.days(tx, dates[0])
        tasks, count = fleet_views.tasks_spent(tx, TASKS)
        return CostView(
            today=known.today,
            total=known.project,
            days=tuple(DaySpent(day=date, spent=spent.get(date, Cost())) for date in dates),
            agents=fleet_views.agents_spent(tx, dates[-1]),
            tasks=tuple(_limited(task, budget) for task in tasks),
            task_count=count,
            budgets=_budgets(known, budget),
        )

    return queries.fleet.store.read(read)


def _limited(task: TaskSpent, budget: BudgetSettings) -> TaskSpent:
    return task if task.limit_usd is not None else msgspec.structs.replace(task, limit_usd=budget.task_usd)


def _budgets(known: SpendingTotals, budget: BudgetSettings) -> tuple[BudgetUse, ...]:
    found: list[BudgetUse] = []
    if budget.day_usd is not None:
        found.append(BudgetUse(kind=BudgetKind.DAY, spent_usd=known.today.cost_usd, limit_usd=budget.day_usd))
    if budget.project_usd is not None:
        found.append(BudgetUse(kind=BudgetKind.PROJECT, spent_usd=known.project.cost_usd, limit_usd=budget.project_usd))
    if budget.agent_day_usd is not None:
        limit = budget.agent_day_usd
        found += [
            BudgetUse(kind=BudgetKind.AGENT_DAY, name=name, spent_usd=spent.cost_usd, limit_usd=limit)
            for name, spent in sorted(known.by_agent_today.items(), key=lambda each: -each[1].cost_usd)
        ]
    return tuple(found)
