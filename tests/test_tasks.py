"""`genba task`: the local tracker, through the real command line."""

import json
import sqlite3
from typing import Any

import pytest

from genba.domain.tasks.task import BlockerKind, Priority, TaskDraft, TaskStatus
from tests.project import TESTER, Project


def add(project: Project, *words: str) -> dict[str, Any]:
    added: dict[str, Any] = project.genba("task", "add", *words, "--json", check=0).json
    return added


def state(project: Project) -> list[tuple[Any, ...]]:
    """Everything that a refusal must leave as it was."""
    connection = sqlite3.connect(project.root / ".genba" / "genba.db")
    try:
        tables = ("tasks", "task_dependencies", "task_goals", "comments", "events", "sessions", "verifications")
        return [row for table in tables for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")]
    finally:
        connection.close()


def refused(project: Project, *words: str, code: int) -> str:
    """A refusal: its exit code, its message and its hint, and nothing is changed."""
    before = state(project)
    done = project.genba("task", *words, check=code)
    assert state(project) == before
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert "hint: " in done.err
    return done.err


def test_a_task_is_added_with_everything_that_it_has(project: Project) -> None:
    add(project, "first")
    added = add(
        project,
        "Add login endpoint",
        "--body", "Users sign in.", "--type", "feature", "--priority", "high", "--label", "api", "--label", "auth",
        "--goal", "tests_pass:pytest -q", "--goal", "endpoint_responds:POST /api/login → 200", "--depends-on", "1",
        "--may-change", "tests/**", "--review", "--reviewer", "ai",
    )  # fmt: skip
    task = project.task(2)

    assert added["number"] == 2
    assert (task.title, task.body, task.type, task.priority) == (
        "Add login endpoint", "Users sign in.", "feature", Priority.HIGH,
    )  # fmt: skip
    assert (task.labels, task.dependencies, task.may_change) == (("api", "auth"), (1,), ("tests/**",))
    assert (task.requires_review, task.reviewer_type, task.status) == (True, "ai", TaskStatus.OPEN)
    assert [goal["type"] for goal in added["goals"]] == ["tests_pass", "endpoint_responds"]
    assert added["goals"][1] | {"url": "/api/login", "method": "POST", "status": 200} == added["goals"][1]


def test_goals_come_from_yaml_too(project: Project) -> None:
    project.write("goals.yaml", "- tests_pass: pytest -q\n- type: file_exists\n  path: docs/x.md\n  required: false\n")
    added = add(project, "x", "--goals", "goals.yaml", "--goal", '{type: custom_script, script: "make check"}')

    assert [(goal["type"], goal["required"]) for goal in added["goals"]] == [
        ("custom_script", True), ("tests_pass", True), ("file_exists", False),
    ]  # fmt: skip


def test_subtasks_know_their_parent_and_the_parent_its_parts(project: Project) -> None:
    add(project, "whole")
    add(project, "part", "--parent", "1")
    add(project, "other part", "--parent", "#1")

    assert project.task(1).children == (2, 3)
    listed = project.genba("task", "list", "--parent", "1", "--json", check=0).json
    assert [task["number"] for task in listed] == [2, 3]


def test_the_list_shows_what_is_open_and_ready_shows_what_can_start(project: Project) -> None:
    add(project, "low", "--priority", "low", "--label", "x")
    add(project, "urgent", "--priority", "critical", "--type", "bug")
    add(project, "waits", "--depends-on", "1")
    add(project, "later", "--backlog")
    project.genba("task", "cancel", "2", check=0)
    add(project, "soon", "--priority", "high")

    def listed(*words: str) -> list[int]:
        return [task["number"] for task in project.genba("task", "list", *words, "--json", check=0).json]

    assert listed() == [1, 3, 4, 5]
    assert listed("--all") == [1, 2, 3, 4, 5]
    assert listed("--ready") == [5, 1]
    assert listed("--status", "cancelled") == [2]
    assert listed("--status", "todo", "--label", "x") == [1]
    assert listed("--type", "bug", "--all") == [2]


def test_a_project_without_tasks_is_only_looked_at(project: Project) -> None:
    assert "no tasks" in project.genba("task", "list", check=0).err
    assert "this project has no tasks yet" in project.genba("task", "show", "1", check=4).err
    assert not (project.root / ".genba" / "genba.db").exists()


def test_an_edit_changes_what_it_names_and_nothing_else(project: Project) -> None:
    add(project, "old", "--label", "a", "--goal", "tests_pass:pytest", "--body", "kept")
    words = "--title new --label b --remove-label a --priority low --goal git_clean --remove-goal tests_pass"
    project.genba("task", "edit", "1", *words.split(), "--may-change", "ruff.toml", check=0)
    task = project.task(1)

    assert (task.title, task.body, task.labels, task.priority) == ("new", "kept", ("b",), Priority.LOW)
    assert [type(goal).__name__ for goal in task.goals] == ["GitClean"]
    assert task.may_change == ("ruff.toml",)
    assert task.version == 2


def test_a_task_leaves_the_backlog_by_an_edit(project: Project) -> None:
    add(project, "later", "--backlog")
    project.genba("task", "edit", "1", "--status", "open", check=0)
    assert project.task(1).status is TaskStatus.OPEN


def test_blocking_reaches_the_parts_and_so_does_unblocking(project: Project) -> None:
    add(project, "whole")
    add(project, "part", "--parent", "1")
    project.genba("task", "block", "1", "--reason", "which region?", check=0)

    assert project.task(1).blocker is not None
    assert project.task(1).blocker.kind is BlockerKind.NEEDS_INPUT  # type: ignore[union-attr]
    assert project.task(2).status is TaskStatus.BLOCKED
    assert "#1" in refused(project, "unblock", "2", code=5)
    project.genba("task", "unblock", "1", "--reason", "EU", check=0)
    assert [project.task(number).status for number in (1, 2)] == [TaskStatus.OPEN, TaskStatus.OPEN]


def test_cancelling_reaches_the_parts_and_reopening_does_not(project: Project) -> None:
    add(project, "whole")
    add(project, "part", "--parent", "1")
    project.genba("task", "cancel", "1", "--reason", "no need", check=0)
    assert project.task(2).status is TaskStatus.CANCELLED
    assert "#1" in refused(project, "reopen", "2", code=5)
    project.genba("task", "reopen", "1", check=0)
    assert (project.task(1).status, project.task(2).status) == (TaskStatus.OPEN, TaskStatus.CANCELLED)


def test_comments_are_shown_and_read_by_the_agent(project: Project) -> None:
    project.agent(
        completion={"type": "externalState"}, parameters={"issue": {"type": "number"}},
        prompts={"work.md": "{uv-issue_body}\n"},
    )  # fmt: skip
    add(project, "x", "--body", "The text.")
    project.genba("task", "comment", "1", "EU only, please", check=0)

    assert "EU only, please" in project.genba("task", "show", "1", check=0).out
    project.run("worker", "--issue", "1")
    assert "The text." in project.prompts()[0]
    assert "EU only, please" in project.prompts()[0]


def test_what_happened_to_a_task_is_its_history(project: Project) -> None:
    add(project, "x")
    project.genba("task", "cancel", "1", "--reason", "no need", check=0, USER="ann", LOGNAME="ann")
    shown = project.genba("task", "show", "1", check=0).out
    assert "open → cancelled  by ann (human): no need" in shown


@pytest.mark.parametrize(
    ("words", "code", "result"),
    [
        (("show", "9"), 4, "there is no task #9"),
        (("cancel", "9"), 4, "there is no task #9"),
        (("show", "x"), 2, "is not the number of a task"),
        (("add", " "), 2, "a task needs a title"),
        (("add", "x", "--type", "fature"), 4, 'did you mean "feature"?'),
        (("add", "x", "--parent", "9"), 4, "#9"),
        (("add", "x", "--depends-on", "9"), 4, "#9"),
        (("add", "x", "--assignee", "nobody"), 4, 'there is no agent "nobody"'),
        (("add", "x", "--goal", "tests_pas:pytest"), 3, 'did you mean "tests_pass"?'),
        (("add", "x", "--goal", "files_changed"), 3, "pattern: is required and missing"),
        (("add", "x", "--goal", "custom_script"), 3, "script: is required and missing"),
        (("add", "x", "--goal", "file_exists"), 3, "path: is required and missing"),
        (("add", "x", "--goal", "endpoint_responds"), 3, "url: is required and missing"),
        (("add", "x", "--goal", "response_contains:/x"), 3, "what should the answer contain?"),
        (("add", "x", "--goal", "git_clean:now"), 3, "unknown key"),
        (("add", "x", "--goal", "{type: [}"), 3, "not YAML"),
        (("add", "x", "--goals", "nowhere.yaml"), 3, "cannot be read"),
        (("edit", "1", "--status", "done"), 5, "does not become done by an edit"),
        (("edit", "1", "--status", "nonsense"), 2, "is not a status"),
        (("edit", "1", "--remove-goal", "tests_pass"), 4, 'has no goal "tests_pass"'),
        (("unblock", "1"), 5, "task #1 is open, not blocked"),
        (("reopen", "1"), 5, "task #1 is open, not done or cancelled"),
        (("approve", "1"), 5, "there is nothing to approve"),
        (("depend", "1", "--on", "1"), 5, "#1"),
        (("depend", "1", "--on", "2"), 5, "#1 → #2 → #1"),
        (("depend", "1"), 2, "say what the task depends on"),
        (("block", "1", "--reason", "x", "--by", "9"), 4, "#9"),
        (("comment", "1", "  "), 2, "the text is empty"),
    ],
)
def test_a_refusal_says_why_and_changes_nothing(
    project: Project, words: tuple[str, ...], code: int, result: str
) -> None:
    with project.board() as board:
        board.add(TaskDraft(title="one"), TESTER)
        board.add(TaskDraft(title="two", dependencies=(1,)), TESTER)
    assert result in refused(project, *words, code=code)


def test_an_agent_is_no_person(project: Project) -> None:
    add(project, "x", "--goal", "tests_pass:pytest")

    def by_agent(*words: str) -> str:
        before = state(project)
        done = project.genba("task", *words, check=5, GENBA_RUN="liar-1", GENBA_AGENT="liar")
        assert state(project) == before
        return done.err

    assert "an agent may not edit a task" in by_agent("edit", "1", "--remove-goal", "tests_pass")
    assert "an agent may not approve a task" in by_agent("approve", "1")
    assert "the actor worker may not move a task from open to cancelled" in by_agent("cancel", "1")
    project.genba("task", "comment", "1", "I need a key", check=0, GENBA_RUN="liar-1", GENBA_AGENT="liar")
    assert "liar" in project.genba("task", "show", "1", check=0).out


def test_a_locked_blackboard_is_reported_and_left_alone(project: Project) -> None:
    project.write(".genba/config.yaml", "database: {busy_seconds: 0.2}\n")
    add(project, "x")
    holder = sqlite3.connect(project.root / ".genba" / "genba.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        done = project.genba("task", "add", "y", check=5)
        listed = project.genba("task", "list", "--json", check=0)
    finally:
        holder.execute("ROLLBACK")
        holder.close()

    assert "is locked" in done.err or "busy" in done.err
    assert "hint: " in done.err
    assert len(listed.json) == 1


def test_the_name_of_a_project_may_change_and_its_tasks_stay(project: Project) -> None:
    add(project, "x")
    project.write(".genba/config.yaml", "project: {name: clockworks}\n")
    assert [task["number"] for task in project.genba("task", "list", "--json", check=0).json] == [1]


def test_from_a_working_tree_the_same_blackboard_is_seen(project: Project) -> None:
    add(project, "x")
    project.git("worktree", "add", "-q", "../tree", "-b", "side")
    listed = project.genba("task", "list", "--json", check=0, cwd=project.root.parent / "tree").json
    assert [task["number"] for task in listed] == [1]


def test_what_another_version_wrote_is_reported_and_never_guessed(project: Project) -> None:
    add(project, "x", "--goal", "tests_pass:pytest")
    project.sql('UPDATE task_goals SET condition = \'{"type": "tests_shine"}\'')
    done = project.genba("task", "show", "1", check=5)
    assert "task #1 has a goal that this version of Genba does not know" in done.err


def test_errors_are_json_for_programs(project: Project) -> None:
    done = project.genba("task", "show", "3", "--json", check=4)
    assert json.loads(done.out)["error"]["kind"] == "not_found"


def test_the_whole_of_a_task_is_json_for_programs(project: Project) -> None:
    add(project, "x", "--goal", "tests_pass:pytest -q")
    shown = project.genba("task", "show", "1", "--json", check=0).json
    assert shown["task"]["goals"] == [
        {"type": "tests_pass", "required": True, "timeout_seconds": 900.0, "command": "pytest -q"}
    ]
    assert [event["kind"] for event in shown["events"]] == ["created"]


def test_a_list_without_matches_says_whether_there_are_other_tasks(project: Project) -> None:
    assert "no tasks\n" in project.genba("task", "list", check=0).err
    project.genba("task", "add", "Boil water", check=0)
    project.genba("task", "cancel", "1", check=0)
    shown = project.genba("task", "list", check=0).err
    assert shown == "no task fits; others exist\nhint: genba task list --all\n"
