"""A report that is narrowed to a label or a board: the others are not shown, and count as what they are."""

from typing import Any

import pytest

from tests.project import Project


@pytest.fixture
def chain(project: Project) -> Project:
    """Two issues of a sprint; three others wait for one of them, the last through another one."""
    project.issue(1, "Add a page", labels=("sprint-1",))
    project.issue(2, "Add a table", labels=("sprint-1",))
    for number in (3, 4, 5):
        project.issue(number, "Write docs")
    for number, on in ((3, 2), (4, 2), (5, 4)):
        project.genba("task", "depend", str(number), "--on", str(on), check=0)
    return project


def show(project: Project, *words: str) -> dict[str, Any]:
    report: dict[str, Any] = project.genba("facilitate", "--json", *words).json
    return report


def scores(report: dict[str, Any]) -> dict[int, tuple[str, float]]:
    return {
        each["issue"]: (each["priority"], each["score"])
        for each in report["recommendation"]["suggestions"]
        if each.get("issue") is not None
    }


def test_dependents_of_an_issue_count_in_its_score_under_every_filter(chain: Project) -> None:
    whole, narrowed = show(chain), show(chain, "--label", "sprint-1")
    assert [each["issue"] for each in narrowed["assessments"]] == [1, 2]
    assert scores(narrowed) == scores(whole)
    assert scores(narrowed)[2][0] == "high"
    best = narrowed["recommendation"]["suggestions"][0]
    assert (best["issue"], narrowed["recommendation"]["targetIssues"]) == (2, [2, 1])
    assert "3 issues wait for it" in best["rationale"]


def test_what_stands_in_the_way_of_an_issue_that_is_shown_has_its_command(chain: Project) -> None:
    chain.genba("task", "edit", "5", "--label", "later", check=0)
    narrowed = show(chain, "--label", "later")
    (only,) = narrowed["assessments"]
    assert (only["issue"], only["state"], only["command"]) == (5, "blocked", "genba run iterator --issue 2")
    assert [each["command"] for each in narrowed["recommendation"]["suggestions"]] == ["genba run iterator --issue 2"]
    assert [each["name"] for each in narrowed["health"] if not each["holds"]] == ["startable"]


def test_the_short_status_counts_them_too(chain: Project) -> None:
    shown = chain.genba("status", "--label", "sprint-1", check=0).out
    assert shown.index("genba run iterator --issue 2") < shown.index("genba run iterator --issue 1")
