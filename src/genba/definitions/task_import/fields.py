"""Fields of a task as other tools write them: labels, priorities, statuses, acceptance criteria."""

from collections.abc import Iterable
from typing import Any

import msgspec

from genba.definitions.project.goal_text import read_goals
from genba.domain.errors import ConfigurationError
from genba.domain.goals.goal import GOAL_TYPES, Goal
from genba.domain.tasks.task import Priority, TaskStatus
from genba.domain.tasks.task_import import ImportableTask, ImportNote
from genba.domain.text_limits import cut, one_line

LONGEST_TITLE = 500
_MOST_LABELS = 100
_STARTED = ("in_progress", "in-progress", "review", "failed", "dod_failed", "rejected")
_ENDED = ("done", "completed", "closed", "cancelled", "canceled")
_WAITING = ("backlog", "draft")
_PRIORITIES = {"urgent": "critical", "highest": "critical", "normal": "medium", "lowest": "low"}


class Criteria(msgspec.Struct, kw_only=True):
    """Acceptance criteria: those that Genba can check, and those that only people can read."""

    goals: list[Goal] = []
    prose: list[str] = []
    problems: list[str] = []


def title_of(value: Any) -> str:
    return cut(one_line(str(value)), LONGEST_TITLE) if isinstance(value, str | int | float) else ""


def words_of(value: Any) -> tuple[str, ...]:
    """A list of words, or words with commas between them."""
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    words = [one_line(str(each)) for each in listed if isinstance(each, str | int | float)]
    return tuple(dict.fromkeys(word for word in words if word))[:_MOST_LABELS]


def priority_of(value: Any, notes: list[ImportNote]) -> Priority:
    word = str(value or "medium").strip().lower()
    word = _PRIORITIES.get(word, word)
    if word in list(Priority):
        return Priority(word)
    notes.append(ImportNote("priority", f"{cut(word, 80)!r} is not known: medium is used"))
    return Priority.MEDIUM


def status_of(value: Any, tool: str, notes: list[ImportNote]) -> tuple[TaskStatus, str]:
    """The status here, and the reason for it. Nothing is done here before it was verified here."""
    word = str(value or "open").strip().lower().replace(" ", "_")
    if word in ("open", "todo"):
        return TaskStatus.OPEN, ""
    if word in _WAITING:
        return TaskStatus.BACKLOG, ""
    if word == "blocked":
        return TaskStatus.BLOCKED, f"it was blocked in {tool}"
    if word in _STARTED:
        notes.append(ImportNote("status", f"it was {word} in {tool}: it is open, and its work begins again"))
        return TaskStatus.OPEN, ""
    if word in _ENDED:
        ended = "cancelled" if word.startswith("cancel") else "done"
        what = "cancelled" if ended == "cancelled" else "done, which Genba has not verified"
        notes.append(ImportNote("status", f"it was {what}: it is cancelled here", needs_attention=False))
        return TaskStatus.CANCELLED, f"it was {ended} in {tool}; Genba has not verified it"
    notes.append(ImportNote("status", f"{cut(word, 80)!r} is not known: it is in the backlog"))
    return TaskStatus.BACKLOG, ""


def criteria_of(items: Iterable[Any]) -> Criteria:
    """Read acceptance criteria one by one, so that one that cannot be read takes no other with it."""
    found = Criteria(goals=[], prose=[], problems=[])
    for item in items:
        if isinstance(item, str) and item.partition(":")[0].strip() not in GOAL_TYPES:
            if item.strip():
                found.prose.append(one_line(item))
            continue
        try:
            found.goals += read_goals([item], "goal")
        except ConfigurationError as error:
            found.problems += [cut(str(problem), 300) for problem in error.problems]
    return found


def with_criteria(task: ImportableTask, found: Criteria) -> ImportableTask:
    """The task with its criteria. It waits in the backlog when one cannot be read: it would be held to too little."""
    notes, draft, status = list(task.notes), task.draft, task.status
    if found.prose:
        lines = "".join(f"- {line}\n" for line in found.prose)
        body = f"{draft.body.rstrip()}\n\n## Acceptance criteria\n\n{lines}".lstrip()
        draft = msgspec.structs.replace(draft, body=body)
        notes.append(ImportNote("goals", f"{len(found.prose)} in prose, now in its text: nothing checks them"))
    for problem in found.problems:
        notes.append(ImportNote("goals", f"cannot be read, so the task is in the backlog: {problem}"))
    if found.problems and status is TaskStatus.OPEN:
        status = TaskStatus.BACKLOG
    draft = msgspec.structs.replace(draft, goals=(*draft.goals, *found.goals))
    return msgspec.structs.replace(task, draft=draft, status=status, notes=tuple(notes))
