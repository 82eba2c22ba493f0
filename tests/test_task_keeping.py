"""A run that lost its line while something was written down finds its own deed, and goes on."""

import pytest

from genba.domain.errors import StateConflictError
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import StatusChange, Task, TaskStatus
from genba.execution.delivery.task_updates import TaskContext, TaskKeeper
from genba.testing.doubles import MemoryJournal, MemoryLedger


class CutOff(MemoryLedger):
    async def move(self, number: int, change: StatusChange) -> Task:
        await super().move(number, change)
        return await super().move(number, change)


def keeper(ledger: MemoryLedger) -> TaskKeeper:
    context = TaskContext(
        ledger=ledger,
        host="here",
        is_branch_held=lambda _branch: False,
        stages={},
        knows_agent=lambda _name: True,
        reviewer="reviewer",
        review_rounds=3,
    )
    return context.keeper(MemoryJournal(), 1, "worker-1", "worker")


async def test_an_effect_without_an_answer_is_no_refusal() -> None:
    ledger = CutOff(Task(id=1, number=1, title="One", status=TaskStatus.IN_PROGRESS))

    await keeper(ledger).stop(Outcome.FAILED, "its agent died", conflict=False)

    assert ledger.tasks[1].status is TaskStatus.OPEN


async def test_what_others_did_is_one() -> None:
    class Cancelled(MemoryLedger):
        async def move(self, number: int, change: StatusChange) -> Task:
            raise StateConflictError(f"task #{number}: {change.to} is not where it may go")

    ledger = Cancelled(Task(id=1, number=1, title="One", status=TaskStatus.IN_PROGRESS))

    with pytest.raises(StateConflictError, match="not where it may go"):
        await keeper(ledger).stop(Outcome.FAILED, "its agent died", conflict=False)
