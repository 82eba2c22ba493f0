"""An issue with a deadline comes first, and the recommendation says so."""

from typing import Any

import pytest

from tests.facilitator.test_suggestions_run import suggestions, worker
from tests.project import Project


def added(project: Project, title: str, *words: str) -> None:
    project.genba("task", "add", title, *words, check=0)


def first(project: Project) -> dict[str, Any]:
    return suggestions(project)[0]


def test_a_task_with_a_due_date_is_shown_and_comes_first(project: Project) -> None:
    worker(project, "issue-action")
    added(project, "Add pages")
    added(project, "Add an index", "--due", "2999-12-01")
    assert "due 2999-12-01" in project.genba("task", "show", "2", check=0).out
    assert project.genba("task", "show", "2", "--json", check=0).json["task"]["due"] == "2999-12-01"
    best, other = suggestions(project)[:2]
    assert (best["command"], best["priority"]) == ("genba run pages --issue 2", "high")
    assert (other["issue"], other["priority"]) == (1, "medium")
    assert best["score"] > other["score"]
    assert "due 2999-12-01" in best["rationale"]
    result = project.genba("facilitate", "--json").json["recommendation"]
    assert "#2 is incomplete and due 2999-12-01" in result["reason"]
    assert "due 2999-12-01 · Add an index" in project.genba("status").out
    assert best["deadline"] == "due 2999-12-01"


def test_the_nearer_deadline_comes_first_and_one_that_is_over_before_all(project: Project) -> None:
    worker(project, "issue-action")
    added(project, "Later", "--due", "2999-12-01", "--priority", "low")
    added(project, "Too late", "--due", "2020-01-31")
    best, other = suggestions(project)[:2]
    assert (best["issue"], other["issue"]) == (2, 1)
    assert "overdue since 2020-01-31" in best["rationale"]
    assert other["priority"] == "high"


def test_a_due_date_is_changed_and_taken_away(project: Project) -> None:
    worker(project, "issue-action")
    added(project, "Add pages", "--due", "2999-12-01")
    project.genba("task", "edit", "1", "--due", "2999-12-24", check=0)
    assert "due 2999-12-24" in first(project)["rationale"]
    project.genba("task", "edit", "1", "--due", "", check=0)
    assert "due" not in project.genba("task", "show", "1", check=0).out.splitlines()[1]
    assert (first(project)["priority"], "due" in first(project)["rationale"]) == ("medium", False)


@pytest.mark.parametrize("day", ["tomorrow", "2026-13-01", "20261201", "2026-12-01T08:00:00Z"])
def test_what_is_no_date_is_refused(project: Project, day: str) -> None:
    done = project.genba("task", "add", "Add pages", "--due", day, check=2)
    assert f"a due date is YYYY-MM-DD, not '{day}'" in done.err
    assert "nothing was changed" in done.err
