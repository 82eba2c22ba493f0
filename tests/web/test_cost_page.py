"""The page of the cost: what was spent, by day, by agent and by task, and against which budgets."""

from genba.domain.views.cost import BudgetKind
from tests.project import Project
from tests.web.fleet_scenes import add, begun, shown, spent
from tests.web.serving import Dashboard, dashboard


def test_what_was_spent_is_shown_by_day_by_agent_and_by_task(served: Dashboard) -> None:
    first = begun(served, add(served, "Make tea"))
    spent(served, first.run, 1, 41_000, 1.5)
    second = begun(served, add(served, "Fill the cup"), agent="other")
    spent(served, second.run, 1, 1_000, 0.25)
    served.project.sql("UPDATE spending SET day = date('now', '-2 days') WHERE agent = 'other'")

    picture = served.site.queries.cost(7)

    assert [round(each.spent.cost_usd, 2) for each in picture.days] == [0, 0, 0, 0, 0.25, 0, 1.5]
    assert (picture.today.cost_usd, picture.total.cost_usd) == (1.5, 1.75)
    assert [(each.agent, each.today.cost_usd) for each in picture.agents] == [("worker", 1.5), ("other", 0)]
    assert [each.task for each in picture.tasks] == [1, 2]
    page = shown(served, "/cost?days=7")
    assert page.count("data-day=") == 7
    assert "$1.75" in page
    assert "42.0k tokens" in page
    assert 'data-cost="0.25"' in page


def test_budgets_are_bars_and_one_that_is_used_up_says_so(project: Project) -> None:
    project.write(".genba/config.yaml", "budget: {day_usd: 1, project_usd: 10, agent_day_usd: 4, task_usd: 2}\n")
    with dashboard(project) as served:
        spent(served, begun(served, add(served, "Make tea")).run, 1, 10, 1.5)
        picture = served.site.queries.cost()
        page = shown(served, "/cost")
    assert [(each.kind, each.part) for each in picture.budgets] == [
        (BudgetKind.DAY, 1.5),
        (BudgetKind.PROJECT, 0.15),
        (BudgetKind.AGENT_DAY, 0.375),
    ]
    assert picture.tasks[0].limit_usd == 2
    assert "150 %" in page
    assert "used up" in page
    assert "$1.50 of $10.00" in page


def test_the_tasks_that_cost_most_are_shown_and_the_others_counted(served: Dashboard) -> None:
    for number in range(1, 54):
        spent(served, begun(served, add(served, f"Tea {number}")).run, 1, number, number / 100)
    picture = served.site.queries.cost()
    assert (len(picture.tasks), picture.task_count) == (50, 53)
    assert picture.tasks[0].task == 53
    assert "the 50 that cost most, of 53" in shown(served, "/cost")


def test_nothing_was_spent_yet_and_the_page_says_so(served: Dashboard) -> None:
    page = shown(served, "/cost?days=12345")
    assert "Nothing was spent yet." in page
    assert "no budget" in page
