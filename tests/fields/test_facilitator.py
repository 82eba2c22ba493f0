"""facilitator of .genba/config.yaml: how the field is looked at and kept."""

import json
import time
from typing import Any

import pytest

from tests.project import Project


def report(project: Project, settings: str) -> dict[str, Any]:
    project.write(".genba/config.yaml", f"facilitator: {settings}\n")
    found: dict[str, Any] = project.genba("facilitate", "--json").json
    return found


def freshness(project: Project, settings: str) -> str:
    (only,) = report(project, settings)["assessments"]
    return str(only["freshness"])


def aged(project: Project, hours: int) -> None:
    """An issue on which nothing has happened for so long."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - hours * 3600))
    project.issue(1, "Add a page")
    project.sql(f"UPDATE tasks SET created_at = '{at}', updated_at = '{at}'; UPDATE events SET created_at = '{at}';")


def test_an_issue_is_active_for_so_many_hours(project: Project) -> None:
    aged(project, 30)
    assert freshness(project, "{}") == "recent"
    assert freshness(project, "{active_hours: 48}") == "active"


def test_an_issue_is_stale_after_so_many_days(project: Project) -> None:
    aged(project, 50)
    assert freshness(project, "{}") == "recent"
    assert freshness(project, "{stale_days: 2}") == "stale"


@pytest.mark.parametrize("state", ["incomplete", "blocked", "in_progress", "review_pending", "done", "unknown"])
def test_a_state_is_shown_by_its_label(project: Project, state: str) -> None:
    in_state(project, state)
    labelled = [
        (action["issue"], action["label"])
        for action in report(project, f"{{labels: {{{state}: 'as: {state}'}}}}")["actions"]
        if action["action"] == "label" and action.get("label", "").startswith("as")
    ]
    assert labelled == [(1, f"as: {state}")]


def in_state(project: Project, state: str) -> None:
    """An issue that is in a state by what git and the blackboard show."""
    project.issue(1, "Add a page")
    match state:
        case "blocked":
            project.issue(2, "Choose a colour")
            project.genba("task", "depend", "1", "--on", "2", check=0)
        case "in_progress":
            project.git("switch", "-q", "-c", "1-add-a-page")
            project.write("page.txt", "half a page\n")
            project.commit("Begin")
            project.git("switch", "-q", "main")
        case "review_pending":
            project.sql("UPDATE tasks SET status = 'review'")
        case "done":
            project.commit("Add a page\n\nIssue: 1")
        case "unknown":  # two at once on branches of their own
            project.sql(
                "INSERT INTO agents (id, project_id, name, created_at) SELECT 'a', id, 'worker', '' FROM projects;"
                "INSERT INTO sessions (run, task_id, agent_id, attempt, branch, host, started_at, heartbeat_at)"
                " SELECT 'run-' || n.n, t.id, 'a', n.n, 'b' || n.n, 'elsewhere', strftime('%Y-%m-%dT%H:%M:%fZ'),"
                " strftime('%Y-%m-%dT%H:%M:%fZ') FROM tasks t, (SELECT 1 AS n UNION SELECT 2) n;"
            )


def looks(project: Project, settings: str, *words: str) -> tuple[int, float]:
    """How many looks one watch takes, and how long all of it takes."""
    project.issue(1, "Add a page")
    project.write(".genba/config.yaml", f"facilitator: {settings}\n")
    began = time.monotonic()
    done = project.genba("facilitate", "--json", "--watch", *words)
    return len([json.loads(line) for line in done.out.splitlines()]), time.monotonic() - began


def test_a_watch_takes_so_many_looks(project: Project) -> None:
    assert looks(project, "{iterate_max: 2}", "0.001")[0] == 2


def test_a_watch_pauses_for_so_many_minutes(project: Project) -> None:
    count, seconds = looks(project, "{iterate_max: 2, check_interval: 0.05}")
    assert count == 2
    assert seconds >= 3
