"""Which tool a path belongs to, and its tasks as this project can keep them."""

from collections.abc import Collection
from pathlib import Path

import msgspec
from msgspec.structs import replace

from genba.definitions.project.goal_sections import TaskTypeSettings
from genba.definitions.task_import import agentmine, markdown
from genba.definitions.task_import.snapshot import HEADER
from genba.domain.errors import NotFoundError, UsageError
from genba.domain.tasks.task import PERSON, TaskStatus
from genba.domain.tasks.task_import import ImportableTask, ImportNote, TaskSource
from genba.domain.text_limits import cut

_DATABASES = (".agentmine/data.db", "data.db")
KINDS = (agentmine.TOOL, "markdown")


def read_source(path: Path, kind: str, top: Path) -> TaskSource:
    """The tasks at a path. Without a kind, it is what the path holds."""
    database = next((path / name for name in _DATABASES if (path / name).is_file()), None) if path.is_dir() else path
    kind = kind or _kind(path, database)
    if kind == "markdown":
        return markdown.read_markdown(path, top)
    if database is None:
        raise NotFoundError(f"{path} has no data.db", hint="genba task import PATH/.agentmine/data.db")
    return agentmine.read_agentmine(database)


def _kind(path: Path, database: Path | None) -> str:
    if path.is_dir():
        return agentmine.TOOL if database is not None else "markdown"
    if path.suffix.lower() in markdown.ENDS:
        return "markdown"
    if not path.is_file():
        raise NotFoundError(f"there is no file {path}", hint="genba task import PATH")
    with path.open("rb") as file:
        if file.read(len(HEADER)) == HEADER:
            return agentmine.TOOL
    raise UsageError(f"{path} is neither an SQLite database nor Markdown", hint=f"--from {' or --from '.join(KINDS)}")


def fitted(source: TaskSource, types: dict[str, TaskTypeSettings], agents: Collection[str]) -> TaskSource:
    """The tasks with the types and agents that the project has."""
    tasks = _without_open_below(tuple(_fitted(task, types, agents) for task in source.tasks))
    return msgspec.structs.replace(source, tasks=tasks)


def _fitted(task: ImportableTask, types: dict[str, TaskTypeSettings], agents: Collection[str]) -> ImportableTask:
    draft, notes = task.draft, list(task.notes)
    kind, assignee = draft.type, draft.assignee
    if kind not in types:
        notes.append(ImportNote("type", f"{cut(kind, 80)!r} is no type of this project: task is used"))
        kind = "task"
    if assignee and not assignee.startswith(PERSON) and assignee not in agents:
        notes.append(ImportNote("assignee", f"there is no agent {cut(assignee, 80)!r}: any agent may take it"))
        assignee = ""
    if _leads_out(draft.scope):
        notes.append(ImportNote("scope", "has a path that is not inside the repository: it was left out"))
    rules = types[kind]
    reviewer = draft.reviewer_type if draft.requires_review else rules.reviewer_type
    draft = replace(
        draft,
        type=kind,
        assignee=assignee,
        scope=() if _leads_out(draft.scope) else draft.scope,
        requires_review=draft.requires_review or rules.requires_review,
        reviewer_type=reviewer,
        status=TaskStatus.BACKLOG if task.status is TaskStatus.BACKLOG else TaskStatus.OPEN,
    )
    return msgspec.structs.replace(task, draft=draft, notes=tuple(notes))


def _leads_out(scope: tuple[str, ...]) -> bool:
    return any(each.startswith(("/", "~", "\\")) or ".." in each.split("/") for each in scope)


def _without_open_below(tasks: tuple[ImportableTask, ...]) -> tuple[ImportableTask, ...]:
    """Keep open in the backlog what has ended in the source while a part of it had not: parts end with their whole."""
    by_reference = {task.reference: task for task in tasks}
    alive: set[str] = set()
    for task in tasks:
        above = task.parent if task.status is not TaskStatus.CANCELLED else ""
        while above and above not in alive:
            alive.add(above)
            above = by_reference[above].parent if above in by_reference else ""
    note = ImportNote("status", "it had ended, and a part of it had not: it is in the backlog")
    return tuple(
        msgspec.structs.replace(
            task,
            status=TaskStatus.BACKLOG,
            reason="",
            draft=msgspec.structs.replace(task.draft, status=TaskStatus.BACKLOG),
            notes=(*task.notes, note),
        )
        if task.status is TaskStatus.CANCELLED and task.reference in alive
        else task
        for task in tasks
    )
