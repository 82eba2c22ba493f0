"""The tasks of agentmine's SQLite database. Versions differ in their columns: what is not there is not asked for."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from genba.definitions.task_import.fields import criteria_of, priority_of, status_of, title_of, with_criteria, words_of
from genba.definitions.task_import.snapshot import read_only
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem
from genba.domain.tasks.task import PERSON, TaskDraft, TaskStatus
from genba.domain.tasks.task_import import ImportableTask, ImportNote, TaskSource
from genba.domain.text_limits import cut

TOOL = "agentmine"
_MOST_TASKS = 10_000
_MOST_ROWS = 100_000
_COLUMNS = {
    "id", "parent_id", "title", "description", "status", "priority", "type", "labels", "assignee_type", "assignee_name",
    "assignee", "branch_name", "requires_review", "reviewer_type", "write_scope", "cancelled_at", "created_at",
}  # fmt: skip
_NO_EFFECT = {"project_id", "updated_at", "selected_session_id", "complexity", "pr_url"}
_READ = ("tasks", "task_dependencies", "task_goals")
_ELSEWHERE = {
    "agents": "write agents with: genba agent new NAME",
    "agent_profiles": "write agents with: genba agent new NAME",
    "settings": "write them to .genba/config.yaml",
    "memories": "add what agents should know to AGENTS.md",
    "project_memories": "add what agents should know to AGENTS.md",
    "project_decisions": "add what agents should know to AGENTS.md",
}
_BOOKKEEPING = ("sqlite_", "__drizzle")
Row = dict[str, Any]


def read_agentmine(path: Path) -> TaskSource:
    """Every task of a database."""
    with read_only(path) as connection:
        return _Reader(connection, path).read()


class _Reader:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path
        tables = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table' ORDER BY name")
        self.tables = [str(name) for name, page in tables if page]  # a virtual table has no page, and runs code

    def read(self) -> TaskSource:
        columns = self._columns("tasks")
        if not {"id", "title"} <= columns or "tracker_reference" in columns:
            own = "is a blackboard of Genba's" if "tracker_reference" in columns else "has no tasks of agentmine's"
            there = ", ".join(self.tables[:20]) or "none"
            raise _refused(self.path, f"{own}; its tables: {cut(there, 500)}")
        rows = {row["id"]: row for row in self._rows("tasks", columns & _COLUMNS, _MOST_TASKS)}
        references = {number: f"{TOOL}:{number}:{row.get('created_at') or ''}" for number, row in rows.items()}
        waits, goals, branches = self._waits(), self._goals(), self._branches()
        tasks = []
        for number, row in rows.items():
            task = self._task(row, references, waits.get(number, []))
            task = with_criteria(task, criteria_of(goals.get(number, [])))
            branch = branches.get(number) or title_of(row.get("branch_name") or "")
            if branch and any(note.key == "status" and note.needs_attention for note in task.notes):
                note = ImportNote("branch", f"its last branch was {branch}", needs_attention=False)
                task = msgspec.structs.replace(task, notes=(*task.notes, note))
            tasks.append(task)
        return TaskSource(kind=TOOL, tasks=tuple(tasks), notes=(*self._other_columns(columns), *self._other_tables()))

    def _columns(self, table: str) -> set[str]:
        if table not in self.tables:
            return set()
        return {str(row[1]) for row in self.connection.execute(f'PRAGMA table_info("{table}")')}

    def _rows(self, table: str, columns: set[str], most: int = _MOST_ROWS) -> list[Row]:
        names = sorted(columns)
        asked = ", ".join(f'"{name}"' for name in names)
        found = self.connection.execute(f'SELECT {asked} FROM "{table}" ORDER BY rowid LIMIT {most + 1}').fetchall()  # noqa: S608
        if len(found) > most:
            raise _refused(self.path, f"{table} has more than {most} rows")
        return [dict(zip(names, row, strict=True)) for row in found]

    def _task(self, row: Row, references: dict[Any, str], waits: list[Any]) -> ImportableTask:
        notes: list[ImportNote] = []
        if row.get("cancelled_at"):
            status, reason = TaskStatus.CANCELLED, f"it was cancelled in {TOOL}"
        elif "status" in row:
            status, reason = status_of(row["status"], TOOL, notes)
        else:
            status, reason = TaskStatus.BACKLOG, ""
            notes.append(ImportNote("status", "the database does not say what is done: it is in the backlog"))
        unknown = [number for number in waits if number not in references]
        if unknown:
            notes.append(ImportNote("depends_on", f"there is no task {unknown[0]}: it was left out"))
        parent = row.get("parent_id")
        if parent is not None and parent not in references:
            notes.append(ImportNote("parent", f"there is no task {parent}: it was left out"))
        name = title_of(row.get("assignee_name") or row.get("assignee") or "").lstrip(PERSON)
        of_person = row.get("assignee_type") == "human"
        if of_person and not name:
            notes.append(ImportNote("assignee", "it was a person's, who has no name there: any agent may take it"))
        draft = TaskDraft(
            title=title_of(row["title"]) or f"Task {row['id']} of {TOOL}",
            body=str(row.get("description") or ""),
            type=title_of(row.get("type")) or "task",
            priority=priority_of(row.get("priority"), notes),
            labels=words_of(_json(row.get("labels"))),
            assignee=f"{PERSON}{name}" if name and of_person else name,
            requires_review=bool(row.get("requires_review")),
            reviewer_type="ai" if row.get("reviewer_type") == "ai" else "human",
            scope=words_of(_json(row.get("write_scope"))),
        )
        return ImportableTask(
            reference=references[row["id"]],
            source_id=str(row["id"]),
            draft=draft,
            status=status,
            reason=reason,
            parent=references.get(parent, ""),
            dependencies=tuple(references[number] for number in waits if number in references),
            notes=tuple(notes),
        )

    def _waits(self) -> dict[Any, list[Any]]:
        columns = self._columns("task_dependencies")
        on = next((name for name in ("depends_on_task_id", "depends_on_id") if name in columns), "")
        found: dict[Any, list[Any]] = {}
        for row in self._rows("task_dependencies", {"task_id", on}) if on and "task_id" in columns else []:
            found.setdefault(row["task_id"], []).append(row[on])
        return found

    def _goals(self) -> dict[Any, list[Any]]:
        """The acceptance criteria by task. Those of other levels are in the settings of the project."""
        columns = self._columns("task_goals")
        found: dict[Any, list[Any]] = {}
        if not {"task_id", "type"} <= columns:
            return found
        for row in self._rows("task_goals", columns & {"task_id", "level", "type", "condition", "required"}):
            if row.get("level") in (None, "acceptance_criteria"):
                found.setdefault(row["task_id"], []).append(_goal(row))
        return found

    def _branches(self) -> dict[Any, str]:
        columns = self._columns("sessions")
        if not {"task_id", "branch_name"} <= columns:
            return {}
        rows = self._rows("sessions", {"task_id", "branch_name"})
        return {row["task_id"]: title_of(row["branch_name"]) for row in rows if row["branch_name"]}

    def _other_columns(self, columns: set[str]) -> list[ImportNote]:
        notes = [
            ImportNote(f"tasks.{name}", "Genba keeps its own", needs_attention=False) for name in columns & _NO_EFFECT
        ]
        notes += [
            ImportNote(f"tasks.{name}", "is not known and was left out") for name in columns - _COLUMNS - _NO_EFFECT
        ]
        if "branch_name" in columns:
            kept = "named with each task whose work begins again"
            notes.append(ImportNote("tasks.branch_name", kept, needs_attention=False))
        return sorted(notes, key=lambda note: note.key)

    def _other_tables(self) -> list[ImportNote]:
        notes = []
        for table in self.tables:
            if table in _READ or table.startswith(_BOOKKEEPING):
                continue
            (count,) = self.connection.execute(f'SELECT count(*) FROM "{_quoted(table)}"').fetchone()  # noqa: S608
            hint = _ELSEWHERE.get(table, "")
            if count:
                notes.append(ImportNote(table, f"{count} rows are not imported. {hint}".strip(), bool(hint)))
        return notes


def _goal(row: Row) -> Any:
    condition = _json(row.get("condition"))
    required = {"required": bool(row["required"])} if row.get("required") is not None else {}
    if isinstance(condition, dict):
        return {"type": row["type"], **condition, **required}
    if condition in (None, ""):
        return {"type": row["type"], **required}
    return {row["type"]: condition}


def _json(value: Any) -> Any:
    """What a column holds as JSON; a text that is none is itself."""
    if not isinstance(value, str):
        return value if value is not None else []
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _quoted(name: str) -> str:
    return name.replace('"', '""')


def _refused(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError((Problem(str(path), "", why),), hint="genba task import .agentmine/data.db")
