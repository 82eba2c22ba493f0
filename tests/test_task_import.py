"""`genba task import`: tasks that were kept by another tool."""

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from genba.definitions.task_import.agentmine import read_agentmine
from genba.domain.errors import GenbaError
from tests.project import Project

_SCHEMA = """
CREATE TABLE projects (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE tasks (
  id INTEGER PRIMARY KEY AUTOINCREMENT, project_id INTEGER, parent_id INTEGER, title TEXT NOT NULL, description TEXT,
  status TEXT NOT NULL DEFAULT 'open', priority TEXT NOT NULL DEFAULT 'medium', type TEXT NOT NULL DEFAULT 'task',
  assignee_type TEXT, assignee_name TEXT, labels TEXT DEFAULT '[]', complexity INTEGER, created_at INTEGER
);
CREATE TABLE task_dependencies (id INTEGER PRIMARY KEY, task_id INTEGER NOT NULL, depends_on_task_id INTEGER NOT NULL);
CREATE TABLE task_goals (
  id INTEGER PRIMARY KEY, task_id INTEGER, level TEXT NOT NULL, type TEXT NOT NULL, condition TEXT,
  required INTEGER DEFAULT 1, source TEXT NOT NULL
);
CREATE TABLE sessions (id INTEGER PRIMARY KEY, task_id INTEGER, agent_name TEXT, branch_name TEXT);
CREATE TABLE settings (id INTEGER PRIMARY KEY, key TEXT, value TEXT);
"""
_TASKS: list[dict[str, Any]] = [
    {"id": 1, "title": "Shop", "type": "feature", "description": "Sell tea."},
    {"id": 2, "parent_id": 1, "title": "Menu", "priority": "high", "labels": '["tea", "menu"]'},
    {"id": 3, "parent_id": 1, "title": "Till", "assignee_type": "human", "assignee_name": "aya"},
    {"id": 4, "title": "Sign", "status": "done"},
    {"id": 5, "title": "Door", "status": "in_progress", "assignee_type": "ai", "assignee_name": "coder"},
    {"id": 6, "title": "Roof", "status": "blocked", "type": "bug"},
    {"id": 7, "title": "Flag", "status": "cancelled"},
    {"id": 8, "title": "Odd", "type": "epic", "status": "paused", "priority": "soon"},
]


def _agentmine(path: Path, tasks: list[dict[str, Any]] | None = None, journal: str = "delete") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"PRAGMA journal_mode = {journal}")
        made.executescript(_SCHEMA)
        for task in tasks if tasks is not None else _TASKS:
            row = {"created_at": 1_700_000_000 + task["id"], **task}
            made.execute(f"INSERT INTO tasks ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
        made.executemany(
            "INSERT INTO task_dependencies (task_id, depends_on_task_id) VALUES (?, ?)",
            [(3, 2), (5, 4), (8, 5), (5, 8), (2, 99)],
        )
        made.executemany(
            "INSERT INTO task_goals (task_id, level, type, condition, source) VALUES (?, ?, ?, ?, 'human_defined')",
            [
                (2, "acceptance_criteria", "file_exists", json.dumps({"path": "menu.md"})),
                (2, "acceptance_criteria", "custom_script", json.dumps({"script": "test -s menu.md"})),
                (2, "dod", "lint_passes", json.dumps({"command": "make lint"})),
                (3, "acceptance_criteria", "files_changed", json.dumps({"wrong": "till/**"})),
            ],
        )
        made.execute("INSERT INTO sessions (task_id, agent_name, branch_name) VALUES (5, 'coder', 'task-5-s1')")
        made.execute("INSERT INTO settings (key, value) VALUES ('dod', '[]')")
        made.commit()
    return path


def _imported(project: Project, *words: str) -> dict[str, dict[str, Any]]:
    done = project.genba("task", "import", *words, "--json", check=0).json
    return {each["source_id"]: {**each, **each["task"]} for each in done["tasks"]}


def _attention(row: dict[str, Any]) -> set[str]:
    return {note["key"] for note in row["notes"] if note["needs_attention"]}


def test_tasks_of_agentmine_keep_what_they_say(project: Project, tmp_path: Path) -> None:
    tasks = _imported(project, str(_agentmine(tmp_path / ".agentmine/data.db")))

    assert [(each["title"], each["status"]) for each in tasks.values()] == [
        ("Shop", "open"), ("Menu", "open"), ("Till", "backlog"), ("Sign", "cancelled"), ("Door", "open"),
        ("Roof", "blocked"), ("Flag", "cancelled"), ("Odd", "backlog"),
    ]  # fmt: skip
    menu, till, odd = tasks["2"], tasks["3"], tasks["8"]
    assert (menu["parent"], till["parent"]) == (tasks["1"]["number"], tasks["1"]["number"])
    assert (menu["labels"], menu["priority"], tasks["1"]["body"]) == (["tea", "menu"], "high", "Sell tea.")
    assert [goal["type"] for goal in menu["goals"]] == ["file_exists", "custom_script"]
    assert till["dependencies"] == [menu["number"]]
    assert till["assignee"] == "@aya"
    assert tasks["5"]["dependencies"] == [odd["number"]]  # and not the task that was done there
    assert odd["dependencies"] == []  # it would close a circle
    assert (odd["type"], odd["priority"]) == ("task", "medium")
    assert _attention(menu) == {"depends_on"}
    assert _attention(till) == {"goals"}
    assert _attention(odd) == {"type", "priority", "status", "depends_on"}
    assert _attention(tasks["5"]) == {"status", "assignee"}
    assert "task-5-s1" in json.dumps(tasks["5"]["notes"])
    assert tasks["6"]["blocker"]["reason"] == "it was blocked in agentmine"


def test_a_branch_of_the_task_itself_is_named(project: Project, tmp_path: Path) -> None:
    """Some versions keep the branch with the task, and no sessions."""
    tasks = [{"id": 1, "title": "Door", "status": "in_progress", "branch_name": "task-1"},
             {"id": 2, "title": "Roof", "status": "done", "branch_name": "task-2"}]  # fmt: skip
    database = _agentmine(tmp_path / "data.db", [])
    with closing(sqlite3.connect(database)) as made:
        made.executescript("DROP TABLE sessions; ALTER TABLE tasks ADD COLUMN branch_name TEXT;")
        for task in tasks:
            made.execute(f"INSERT INTO tasks ({', '.join(task)}) VALUES (?, ?, ?, ?)", [*task.values()])
        made.commit()
    report = project.genba("task", "import", str(database), check=0).out
    assert "its last branch was task-1" in report
    assert "its last branch was task-2" not in report


@pytest.mark.parametrize("name", ["bob", "@bob", "@@bob"])
def test_a_person_keeps_the_task_and_is_shown_as_one(project: Project, tmp_path: Path, name: str) -> None:
    tasks = [{"id": 1, "title": "Till", "assignee_type": "human", "assignee_name": name},
             {"id": 2, "title": "Menu", "assignee_type": "human"}]  # fmt: skip
    tasks_here = _imported(project, str(_agentmine(tmp_path / "data.db", tasks)))
    assert tasks_here["1"]["assignee"] == "@bob"
    assert "assignee" in _attention(tasks_here["2"])
    number = str(tasks_here["1"]["number"])
    for words in (("list",), ("show", number)):
        shown = project.genba("task", *words, check=0).out
        assert "@bob" in shown
        assert "@@" not in shown


def test_what_was_done_elsewhere_is_not_done_here(project: Project, tmp_path: Path) -> None:
    number = _imported(project, str(_agentmine(tmp_path / "data.db")))["4"]["number"]

    shown = project.genba("task", "show", str(number), check=0).out
    assert "cancelled" in shown
    assert "done in agentmine; Genba has not verified it" in shown
    assert "imported from agentmine:4" in shown
    project.genba("task", "reopen", str(number), check=0)


def test_an_imported_task_is_worked_on_and_merged(project: Project, tmp_path: Path) -> None:
    task = {"id": 1, "title": "Work", "description": "Write work.txt"}
    database = _agentmine(tmp_path / "data.db", [task])
    with closing(sqlite3.connect(database)) as made:
        made.execute("DELETE FROM task_dependencies")
        made.execute("DELETE FROM task_goals")
        made.execute("""INSERT INTO task_goals (task_id, level, type, condition, source)
            VALUES (1, 'acceptance_criteria', 'file_exists', '{"path": "work.txt"}', 'ai_inferred')""")
        made.commit()
    project.agent()
    number = _imported(project, str(database))["1"]["number"]

    assert project.run("worker", "--issue", str(number))["outcome"] == "completed"
    assert project.genba("task", "show", str(number), "--json").json["task"]["status"] == "done"
    assert project.read("work.txt") == "work\n"


def test_importing_twice_creates_nothing_twice(project: Project, tmp_path: Path) -> None:
    database = _agentmine(tmp_path / "data.db")
    first = _imported(project, str(database))
    with closing(sqlite3.connect(database)) as made:
        made.execute("INSERT INTO tasks (id, parent_id, title, created_at) VALUES (9, 1, 'Chairs', 1700000009)")
        made.execute("INSERT INTO task_dependencies (task_id, depends_on_task_id) VALUES (9, 2)")
        made.commit()
    database = database.rename(tmp_path / "moved.db")

    second = _imported(project, str(database))

    assert {key: each["outcome"] for key, each in second.items()} == {**dict.fromkeys(first, "skipped"), "9": "created"}
    assert {key: each["number"] for key, each in second.items() if key in first} == {
        key: each["number"] for key, each in first.items()
    }
    assert (second["9"]["parent"], second["9"]["dependencies"]) == (first["1"]["number"], [first["2"]["number"]])
    assert len(project.genba("task", "list", "--all", "--json").json) == 9


def test_a_dry_run_creates_nothing_and_shows_the_same(project: Project, tmp_path: Path) -> None:
    database = _agentmine(tmp_path / "data.db")
    shown = project.genba("task", "import", str(database), "--dry-run", check=0)
    assert "would be created" in shown.out
    assert "runs a program" in shown.out
    assert "custom_script: test -s menu.md" in shown.out
    assert "settings" in shown.out
    assert project.genba("task", "list", "--all", "--json").json == []

    project.genba("task", "add", "Mine", check=0)
    planned = _imported(project, str(database), "--dry-run")
    assert len(project.genba("task", "list", "--all", "--json").json) == 1
    created = _imported(project, str(database))
    assert {key: (each["number"], each["status"]) for key, each in created.items()} == {
        key: (each["number"], each["status"]) for key, each in planned.items()
    }


def test_the_source_is_only_read(project: Project, tmp_path: Path) -> None:
    database = _agentmine(tmp_path / "source/data.db", journal="wal")
    with closing(sqlite3.connect(database)) as other:  # keeps its write-ahead log open
        other.execute("INSERT INTO tasks (id, title) VALUES (20, 'In the log')")
        other.commit()
        before = {path: path.read_bytes() for path in database.parent.iterdir()}
        assert len(before) == 3
        tasks = _imported(project, str(database.parent))
        assert {path: path.read_bytes() for path in database.parent.iterdir()} == before
    assert tasks["20"]["title"] == "In the log"


def test_a_database_that_is_being_written_is_an_error(project: Project, tmp_path: Path) -> None:
    database = _agentmine(tmp_path / "data.db")
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = project.genba("task", "import", str(database), check=5)
    assert "is being written" in done.err
    assert project.genba("task", "list", "--all", "--json").json == []


def _torn(path: Path) -> None:
    whole = _agentmine(path).read_bytes()
    path.write_bytes(whole[:5000] + b"\xff" * 9000 + whole[14000:])


def _other_schema(path: Path) -> None:
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE todos (id INTEGER, what TEXT)")
        made.commit()


def _virtual(path: Path) -> None:
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE VIRTUAL TABLE tasks USING fts5(id, title)")
        made.commit()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_bytes(b"not a database" * 100), "is not an SQLite database"),
        (lambda path: path.write_bytes(b""), "is not an SQLite database"),
        (_torn, "cannot be read"),
        (_other_schema, "has no tasks of agentmine's; its tables: todos"),
        (_virtual, "has no tasks of agentmine's"),
    ],
)
def test_what_is_no_database_of_agentmine_is_refused(
    project: Project, tmp_path: Path, spoil: Any, message: str
) -> None:
    spoil(tmp_path / "data.db")
    done = project.genba("task", "import", str(tmp_path / "data.db"), "--from", "agentmine", check=3)
    assert message in done.err
    assert project.genba("task", "list", "--all", "--json").json == []


def test_a_damaged_database_is_read_or_refused(tmp_path: Path) -> None:
    whole = _agentmine(tmp_path / "data.db").read_bytes()
    chance = random.Random(5)
    refused = 0
    for _ in range(300):
        spoiled = bytearray(whole)
        for _ in range(8):
            spoiled[chance.randrange(len(whole))] = chance.randrange(256)
        (tmp_path / "data.db").write_bytes(spoiled)
        try:
            read_agentmine(tmp_path / "data.db")
        except GenbaError:
            refused += 1
    assert 0 < refused < 300


def test_a_blackboard_is_no_source(project: Project) -> None:
    project.genba("task", "add", "Mine", check=0)
    database = next(path for path in project.root.rglob("*.db") if "genba" in path.name)
    done = project.genba("task", "import", str(database), check=3)
    assert "is a blackboard of Genba's" in done.err


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


_FILES = {
    "menu.md": "---\ntitle: Write the menu\nlabels: tea, menu\npriority: urgent\ntype: docs\nid: M-1\n"
    "created: 2026-01-31\nacceptance_criteria:\n  - file_exists: menu.md\n  - 'tests_pass: make test'\n"
    "  - Everybody likes it\n---\n\nAll teas.\n",
    "later/till.md": "---\nstatus: todo\ndepends_on: [M-1, ../sign.md]\nparent: shop\nassignee: '@aya'\n"
    "mood: good\n---\n# Repair the till\n\nIt is broken.\n",
    "shop.md": "---\ntitle: Shop\n---\n",
    "sign.md": "---\ntitle: Sign\nstatus: done\n---\n",
    "README.md": "# About these tasks\n",
    ".hidden/x.md": "---\ntitle: Hidden\n---\n",
}


def test_markdown_files_become_tasks(project: Project, tmp_path: Path) -> None:
    tasks = _imported(project, str(_write(tmp_path / "tasks", _FILES)))

    assert set(tasks) == {"M-1", "later/till.md", "shop.md", "sign.md"}
    menu, till = tasks["M-1"], tasks["later/till.md"]
    assert (menu["title"], menu["labels"], menu["priority"], menu["type"]) == (
        "Write the menu", ["tea", "menu"], "critical", "docs",
    )  # fmt: skip
    assert [goal["type"] for goal in menu["goals"]] == ["file_exists", "tests_pass"]
    assert menu["body"] == "All teas.\n\n## Acceptance criteria\n\n- Everybody likes it\n"
    assert (till["title"], till["parent"], till["dependencies"]) == (
        "Repair the till", tasks["shop.md"]["number"], [menu["number"]],
    )  # fmt: skip
    assert (till["assignee"], till["status"], tasks["sign.md"]["status"]) == ("@aya", "open", "cancelled")
    assert (_attention(menu), _attention(till)) == ({"goals"}, {"mood"})


def test_a_file_in_the_repository_is_known_by_its_path(project: Project) -> None:
    _write(project.root / "docs/tasks", _FILES)
    _imported(project, "docs/tasks")
    assert {each["outcome"] for each in _imported(project, "docs").values()} == {"skipped"}
    assert {each["outcome"] for each in _imported(project, "docs/tasks/shop.md").values()} == {"skipped"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.md": "---\ntitle: [\n---\n"}, "a.md: line 3: not YAML"),
        ({"a.md": "---\n- one\n---\n"}, "its front matter is not a list of keys and values"),
        ({"a.md": "---\nid: 1\n---\n", "b.md": "---\nid: 1\n---\n"}, "a.md has the same id"),
        ({"a.md": f"---\ntitle: {'x' * 20_000}\n---\n"}, "its front matter is larger than"),
        ({"a.md": f"---\ntitle: {'[' * 3000}\n---\n"}, "a.md"),
        ({"a.md": "---\na: &a [x, x]\nb: &b [*a, *a]\nc: !!python/name:os.system x\n---\n"}, "not YAML"),
        ({"a.md": "x" * 2_000_000}, "larger than"),
    ],
)
def test_a_broken_file_keeps_all_of_them_out(
    project: Project, tmp_path: Path, files: dict[str, str], message: str
) -> None:
    folder = _write(tmp_path / "tasks", {"good.md": "---\ntitle: Good\n---\n", **files})
    done = project.genba("task", "import", str(folder), check=3)
    assert message in done.err
    assert project.genba("task", "list", "--all", "--json").json == []


def test_a_link_out_of_the_folder_is_refused(project: Project, tmp_path: Path) -> None:
    folder = _write(tmp_path / "tasks", {"a.md": "---\ntitle: A\n---\n"})
    (tmp_path / "secret.md").write_text("---\ntitle: secret\n---\n")
    (folder / "b.md").symlink_to(tmp_path / "secret.md")
    done = project.genba("task", "import", str(folder), check=3)
    assert "is a link out of the folder" in done.err


def test_a_folder_without_tasks_and_another_kind_of_file_are_refused(project: Project, tmp_path: Path) -> None:
    project.genba("task", "import", str(tmp_path), check=4)
    project.genba("task", "import", str(tmp_path), "--from", "agentmine", check=4)
    (tmp_path / "tasks.csv").write_text("a,b")
    assert "--from" in project.genba("task", "import", str(tmp_path / "tasks.csv"), check=2).err


def test_an_agent_imports_nothing(project: Project, tmp_path: Path) -> None:
    folder = _write(tmp_path / "tasks", _FILES)
    project.genba("task", "import", str(folder), check=5, GENBA_RUN="r1", GENBA_AGENT="worker")


_SETTINGS = """
project: {name: shop}
database: {url: "file:.agentmine/data.db"}
git: {baseBranch: main, branchPrefix: task-}
execution: {parallel: {enabled: true, maxWorkers: 4}}
sessionLog: {retention: {days: 30}}
dod:
  - type: custom_script
    script: test -s tea
"""


def test_a_project_of_agentmine_is_taken_over_with_its_settings(project: Project) -> None:
    project.write(".agentmine/config.yaml", _SETTINGS)
    project.commit("Settings of agentmine")
    database = _agentmine(project.root / ".agentmine/data.db")
    before = database.read_bytes()
    number = _imported(project, ".")["2"]["number"]

    explained = project.genba("verify", str(number), "--explain", "--json", check=0).out
    assert "test -s tea" in explained
    assert "test -s menu.md" in explained
    assert database.read_bytes() == before
    assert sorted(path.name for path in database.parent.iterdir()) == ["config.yaml", "data.db"]
    doctor = project.genba("doctor").out
    assert "no effect: database, git, execution, sessionLog" in doctor


def test_settings_of_genba_name_no_section_of_agentmine(project: Project) -> None:
    project.write(".genba/config.yaml", _SETTINGS)
    assert "git: unknown key" in project.genba("task", "add", "x", check=3).err
