"""What `genba facilitate --apply` writes on an issue: its state, what completes it, and the next command."""

import re
import shlex

import click
import pytest

from genba.entrypoints.cli.commands import cli
from tests.project import Project

SETTINGS = "dod:\n  - custom_script: grep -q tea page.py\n  - file_exists: README.md\n"
KANA = re.compile(r"[\u3040-\u30ff]")


def comments(project: Project) -> dict[int, str]:
    project.genba("facilitate", "--apply", check=0)
    with project.board() as board:
        found = {task.number: [each.body for each in board.comments(task.number)] for task in board.find()}
    assert {len(each) for each in found.values()} == {1}
    return {number: only for number, (only,) in found.items()}


def next_command(body: str) -> str:
    match = re.fullmatch(r"(?:Next|次のコマンド): `([^`]+)`", body.rpartition("\n\n")[2])
    assert match is not None, body
    return match[1]


@pytest.fixture
def field(project: Project) -> Project:
    """One issue in each state that the commands can bring about."""
    for number, title in enumerate(("Add a page", "Fix the parser", "Write docs", "Tidy up", "Ask", "Drop it"), 1):
        project.issue(number, title)
    project.genba("task", "depend", "3", "--on", "1", check=0)
    project.write("parser.txt", "fixed\n")
    project.commit("Fix the parser\n\nIssue: 2")
    project.git("switch", "-q", "-c", "4-tidy-up")
    project.write("tidy.txt", "half\n")
    project.commit("Begin to tidy up")
    project.git("switch", "-q", "main")
    project.sql("UPDATE tasks SET status = 'review', requires_review = 1 WHERE number = 5")
    project.sql("UPDATE tasks SET status = 'blocked', blocker_kind = 'failed', blocker_reason = 'x' WHERE number = 6")
    return project


def test_every_comment_names_a_command_that_exists(field: Project) -> None:
    values = {number: next_command(body) for number, body in comments(field).items()}
    assert values[1] == values[3] == "genba run iterator --issue 1"
    assert values[4] == "genba run iterator --issue 4"
    assert values[6] == "genba task unblock 6"
    for command in values.values():
        program, name, *_ = shlex.split(command)
        assert program == "genba"
        assert cli.get_command(click.Context(cli), name) is not None


def test_an_issue_that_was_closed_meanwhile_says_that_nothing_is_left(field: Project) -> None:
    comments(field)
    field.sql("UPDATE tasks SET status = 'done' WHERE number = 2")
    closed = comments(field)[2]
    assert "nothing is left to do" in closed
    assert next_command(closed) == "genba status"


def test_work_in_progress_lists_what_completes_it_and_what_of_it_holds(project: Project) -> None:
    project.write(".genba/config.yaml", SETTINGS)
    project.commit("Settings")
    project.issue(1, "Add a page", type="feature")
    project.genba("task", "edit", "1", "--goal", "file_exists:page.py", check=0)
    project.git("switch", "-q", "-c", "1-add-a-page")
    project.commit("Begin")
    project.git("switch", "-q", "main")
    before = comments(project)[1]
    conditions = [line for line in before.splitlines() if line.startswith("- [")]
    assert "Completion conditions:" in before
    assert {line[-len("(not checked)") :] for line in conditions} == {"(not checked)"}
    lines = [line.removeprefix("- [ ] ").removesuffix(" (not checked)").replace("\\", "") for line in conditions]
    assert lines[:2] == ["commit", "branch"]
    assert lines[2:] == [
        "custom_script: grep -q tea page.py",
        "file_exists: README.md",
        "files_changed: :code",
        "file_exists: page.py",
    ]

    broken = "echo coffee > page.py && git add -A && git commit -qm Page"
    project.agent(script={"turns": [{"do": [{"run": broken}], "reply": "done"}]})
    project.run("worker", "--issue", "1", check=None)
    after = [line.replace("\\", "") for line in comments(project)[1].splitlines() if line.startswith("- [")]
    assert "- [ ] custom_script: grep -q tea page.py" in after
    assert "- [x] file_exists: page.py" in after
    assert not [line for line in after if "not checked" in line]


def test_a_task_without_a_goal_learns_how_one_is_set(project: Project) -> None:
    project.issue(1, "Add a page")
    project.git("switch", "-q", "-c", "1-add-a-page")
    project.commit("Begin")
    project.git("switch", "-q", "main")
    assert "No goal checks this work. To set one: `genba task edit 1 --goal tests_pass`" in comments(project)[1]
    project.genba("task", "edit", "1", "--goal", "tests_pass", check=0)
    assert "No goal checks this work" not in comments(project)[1]


def test_the_comments_are_in_the_language_of_the_project(field: Project) -> None:
    english = comments(field)
    assert not [body for body in english.values() if KANA.search(body)]
    field.write(".genba/config.yaml", "workflow:\n  language: ja\n")
    japanese = comments(field)
    assert japanese[1].splitlines() == [
        "**状態: 未着手 (incomplete)**",
        "",
        "この Issue を妨げるものはありません。着手できます。",
        "",
        "- コミット、ブランチ、プルリクエスト、セッションはありません",
        "",
        "次のコマンド: `genba run iterator --issue 1`",
    ]
    assert "- #1 の完了待ち" in japanese[3]
    assert "完了条件:" in japanese[4]
    assert {number: next_command(body) for number, body in japanese.items()} == {
        number: next_command(body) for number, body in english.items()
    }
    english_lines = {line for body in english.values() for line in body.splitlines() if line}
    left = {line for body in japanese.values() for line in body.splitlines()} & english_lines
    assert left == {"- x"}  # the words of a person


def test_a_command_alone_changes_no_comment(project: Project) -> None:
    """Another agent that fits better is no news for the people who read the issue."""
    project.issue(1, "Add a page")
    before = comments(project)[1]
    project.agent(
        "a-better-one",
        parameters={"issue": {"type": "integer", "cli": "--issue"}},
        actions={"enabled": True, "types": ["issue-action"], "handlers": {"issue-action": "builtin:record"}},
    )
    (move,) = project.genba("facilitate", "--json").json["recommendation"]["suggestions"]
    assert move["command"] != next_command(before)
    assert comments(project)[1] == before
