"""`genba facilitate --events`: what happened, from all sources, in one order, with one word for each kind."""

import json
from typing import Any

from genba.domain.tasks.task import StatusChange, TaskStatus
from tests.project import TESTER, Project


def report(project: Project, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in project.genba("facilitate", "--events", *words, check=0).out.splitlines()]


def test_changes_verifications_comments_and_reverts_are_reported(project: Project) -> None:
    project.issue(1, "Add a page")
    project.issue(2, "Fix the parser")
    project.sql(
        'INSERT INTO verifications (task_id, run, "commit", tree, base, branch, status, reason, data, created_at)'
        " SELECT id, 'worker-1', 'abc1234', '', '', 'genba/1-add-a-page', 'rejected', 'goals_not_met', '{}',"
        " '2026-01-05T08:00:00.000000Z' FROM tasks WHERE number = 1"
    )
    with project.board() as board:
        board.change_status(1, StatusChange(to=TaskStatus.CANCELLED, actor=TESTER, reason="not\nnow"))
        board.comment(1, "please hurry", TESTER)
    project.write("parser.txt", "fixed\n")
    project.commit("Fix the parser\n\nIssue: 2")
    project.git("revert", "--no-edit", "HEAD")
    project.genba("facilitate", "--apply")

    found = report(project)
    assert [each["time"] for each in found] == sorted(each["time"] for each in found)
    assert len({each["key"] for each in found}) == len(found)
    by_kind = {(each["type"], each["issue"]): each for each in found}
    assert by_kind["status_changed", 1]["detail"].endswith(" → cancelled: not now")
    assert by_kind["status_changed", 1]["who"] == "tester"
    assert by_kind["commented", 1]["who"] == "tester"
    assert ("commented", 2) not in by_kind
    assert by_kind["verified", 1]["detail"] == "rejected: goals_not_met"
    assert by_kind["verified", 1]["sha"] == "abc1234"
    assert by_kind["reverted", 2]["detail"].startswith("by ")
    assert report(project) == found


def test_only_what_was_asked_for_is_reported(project: Project) -> None:
    project.issue(1, "Add a page", labels=("sprint-1",))
    project.issue(2, "Fix the parser")
    with project.board() as board:
        board.comment(2, "please hurry", TESTER)
    assert {each["issue"] for each in report(project, "--label", "sprint-1")} == {1}
