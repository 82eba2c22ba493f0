"""What was spent: by day, by agent, by task, and against the budgets."""

from enum import StrEnum

import msgspec

from genba.domain.fleet.records import Cost
from genba.domain.tasks.task import TaskStatus


class BudgetKind(StrEnum):
    DAY = "day"
    PROJECT = "project"
    AGENT_DAY = "agent_day"
    TASK = "task"


class DaySpent(msgspec.Struct, frozen=True, kw_only=True):
    day: str
    """A date in UTC. Days without any cost stand between the others."""
    spent: Cost = Cost()


class AgentSpent(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    runs: int = 0
    today: Cost = Cost()
    total: Cost = Cost()


class TaskSpent(msgspec.Struct, frozen=True, kw_only=True):
    task: int
    title: str
    status: TaskStatus
    runs: int = 0
    spent: Cost = Cost()
    limit_usd: float | None = None
    """Its budget, where it has one."""


class BudgetUse(msgspec.Struct, frozen=True, kw_only=True):
    kind: BudgetKind
    name: str = ""
    """The agent, where it is about one."""
    spent_usd: float = 0.0
    limit_usd: float = 0.0

    @property
    def part(self) -> float:
        """How much of it is used; more than 1 where it is exceeded."""
        return self.spent_usd / self.limit_usd if self.limit_usd else 0.0


class CostView(msgspec.Struct, frozen=True, kw_only=True):
    today: Cost = Cost()
    total: Cost = Cost()
    days: tuple[DaySpent, ...] = ()
    """The oldest first."""
    agents: tuple[AgentSpent, ...] = ()
    """Those that cost most first."""
    tasks: tuple[TaskSpent, ...] = ()
    """The same, and no more than fifty."""
    task_count: int = 0
    """How many tasks cost something at all."""
    budgets: tuple[BudgetUse, ...] = ()
