"""Budgets: reached before or during a run, they suspend the work, say which and how to raise it, and end with 6."""

import pytest

from genba.domain.fleet.records import EscalationKind, WaitsFor
from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary


def costly(yard: Yard, name: str = "worker") -> None:
    """An agent that takes two turns of a dollar each."""
    work = (
        f"echo $GENBA_ISSUE >> {yard.starts}; echo $GENBA_ISSUE >> task-$GENBA_ISSUE.txt; git add -A; git commit -qm w"
    )
    turn = {"do": [{"run": work}], "reply": "done", "usage": {"input_tokens": 10, "output_tokens": 10, "cost_usd": 1.0}}
    yard.project.agent(
        name,
        script={"turns": [turn], "repeat": True},
        parameters={"issue": {"type": "number"}},
        completion={"type": "iterationBudget", "config": {"maxIterations": 2}},
    )


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("agent_day_usd", "the agent's budget of today is reached: $2 of $1.5"),
        ("day_usd", "the budget of today is reached: $2 of $1.5"),
        ("project_usd", "the budget of the project is reached: $2 of $1.5"),
    ],
)
def test_a_budget_of_all_holds_back_the_next_task_until_it_is_raised(
    small_yard: Yard, setting: str, words: str
) -> None:
    yard = small_yard
    yard.set(work={"workers": 1}, budget={setting: 1.5})
    costly(yard)
    yard.task(1)
    yard.task(2)

    done = yard.work(check=6)

    result = summary(done)
    assert result["ended"] == "budget"
    assert words in str(result["waits"])
    assert f"budget.{setting}" in str(result["waits"])
    assert "raise budget" in done.err
    assert yard.statuses()[2] is TaskStatus.OPEN
    assert yard.started() == ["1", "1"]

    yard.set(budget={setting: 10})
    yard.work()
    assert set(yard.statuses().values()) == {TaskStatus.DONE}


def test_a_budget_that_is_reached_in_the_middle_suspend_the_session_and_it_goes_on_from_there(yard: Yard) -> None:
    yard.set(budget={"project_usd": 0.5})
    costly(yard)
    yard.task(1)

    result = summary(yard.work(check=6))

    assert result["ended"] == "budget"
    with yard.board() as board:
        (session,) = board.sessions(1)
    assert session.waits_for is WaitsFor.BUDGET
    assert yard.started() == ["1"]
    yard.set(budget={"project_usd": 10})
    yard.work()
    with yard.board() as board:
        (same,) = board.sessions(1)
        spent = board.ledger().project.cost_usd
    assert yard.look(1).status is TaskStatus.DONE
    assert same.run == session.run
    assert spent == 2.0, "each turn is counted once"
    assert yard.started() == ["1", "1"]


def test_the_budget_of_a_task_asks_a_person_who_may_allow_as_much_again(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    costly(yard)
    yard.task(1, budget_usd=0.6)

    done = yard.work(check=None)

    assert done.code == 6
    with yard.board() as board:
        (asked,) = board.escalations()
        (session,) = board.sessions(1)
    assert asked.kind is EscalationKind.BUDGET
    assert "its budget is reached: $1 of $0.6" in asked.question
    assert "genba task edit 1 --budget" in asked.question
    yard.genba("approve", "1")
    yard.work()
    with yard.board() as board:
        (same,) = board.sessions(1)
    assert yard.look(1).status is TaskStatus.DONE
    assert same.run == session.run


def test_a_task_whose_budget_is_raised_goes_on_without_being_approved(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    costly(yard)
    yard.task(1, budget_usd=0.6)
    yard.work(check=6)

    yard.genba("task", "edit", "1", "--budget", "5")
    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
