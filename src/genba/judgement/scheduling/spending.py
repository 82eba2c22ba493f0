"""Budgets of a fleet: by task, by agent and day, by day, of the project. Checked before dispatch and during a run."""

from collections.abc import Iterator

import msgspec

from genba.definitions.project.work_sections import BudgetSettings, FleetSettings
from genba.domain.fleet.records import Cost, Escalation, EscalationKind, FleetSnapshot
from genba.domain.tasks.task import Task
from genba.domain.timestamps import next_day

TASK, AGENT, DAY, PROJECT = "task", "agent_day", "day", "project"


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """One budget, and what is spent of it."""

    scope: str
    spent: float
    limit: float
    setting: str
    """What would raise it."""
    until: str = ""
    """When it resets by itself."""

    @property
    def left(self) -> float:
        return max(0.0, self.limit - self.spent)

    @property
    def reached(self) -> bool:
        return self.spent >= self.limit

    @property
    def what(self) -> str:
        names = {TASK: "its budget", AGENT: "the agent's budget of today", DAY: "the budget of today"}
        name = names.get(self.scope, "the budget of the project")
        return f"{name} is reached: ${self.spent:.4g} of ${self.limit:.4g}"

    @property
    def text(self) -> str:
        return f"{self.what}  {self.setting}"


def budgets(field: FleetSnapshot, settings: FleetSettings, task: Task, agent: str) -> Iterator[Budget]:
    """Every budget that a session of this agent at this task draws on."""
    limits, ledger = settings.budget, field.ledger
    of_task = _of_task(field, limits, task)
    if of_task is not None:
        yield of_task
    if limits.agent_day_usd is not None:
        spent = ledger.by_agent_today.get(agent, Cost()).cost_usd
        yield Budget(
            scope=AGENT,
            spent=spent,
            limit=limits.agent_day_usd,
            setting="budget.agent_day_usd",
            until=next_day(field.now),
        )
    yield from project_budgets(field, settings)


def project_budgets(field: FleetSnapshot, settings: FleetSettings) -> Iterator[Budget]:
    """The budgets that every session draws on."""
    limits, ledger = settings.budget, field.ledger
    if limits.day_usd is not None:
        spent = ledger.today.cost_usd
        yield Budget(scope=DAY, spent=spent, limit=limits.day_usd, setting="budget.day_usd", until=next_day(field.now))
    if limits.project_usd is not None:
        yield Budget(
            scope=PROJECT, spent=ledger.project.cost_usd, limit=limits.project_usd, setting="budget.project_usd"
        )


def reached(field: FleetSnapshot, settings: FleetSettings, task: Task, agent: str) -> Budget | None:
    """The first budget that is used up; the task's own is looked at first."""
    return next((budget for budget in budgets(field, settings, task, agent) if budget.reached), None)


def task_budget_used_up(field: FleetSnapshot, settings: FleetSettings, task: Task) -> bool:
    """Whether the budget of a task is used up."""
    found = _of_task(field, settings.budget, task)
    return found is not None and found.reached


def _of_task(field: FleetSnapshot, limits: BudgetSettings, task: Task) -> Budget | None:
    limit = task.budget_usd if task.budget_usd else limits.task_usd
    if limit is None:
        return None
    spent = field.ledger.by_task.get(task.number, Cost()).cost_usd
    for escalation in field.escalations:
        limit = max(limit, _granted(escalation, task))
    hint = f"genba task edit {task.number} --budget {max(spent, limit) * 2:.4g}"
    return Budget(scope=TASK, spent=spent, limit=limit, setting=hint)


def _granted(escalation: Escalation, task: Task) -> float:
    """What a person allows who approves a budget that was reached: as much again, from where it stood."""
    if escalation.task != task.number or escalation.kind is not EscalationKind.BUDGET:
        return 0.0
    if escalation.status not in ("answered", "approved"):
        return 0.0
    spent, limit = escalation.evidence.get("spent_usd"), escalation.evidence.get("limit_usd")
    return float(spent) + float(limit) if isinstance(spent, int | float) and isinstance(limit, int | float) else 0.0
