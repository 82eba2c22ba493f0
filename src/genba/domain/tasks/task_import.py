"""Tasks of another tool on their way to the blackboard."""

from enum import StrEnum

import msgspec

from genba.domain.tasks.task import Task, TaskDraft, TaskStatus


class ImportNote(msgspec.Struct, frozen=True):
    """What became of one thing that the source says."""

    key: str
    detail: str
    needs_attention: bool = True


class ImportableTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a source. Others are named by their references."""

    reference: str
    """The task is known again by it: what is here already is not created a second time."""
    source_id: str
    """What the source calls it: a number or a file."""
    draft: TaskDraft
    status: TaskStatus = TaskStatus.OPEN
    """`open`, `backlog`, `blocked` or `cancelled`: nothing is done here before it was verified here."""
    reason: str = ""
    """Why it is blocked or cancelled."""
    parent: str = ""
    dependencies: tuple[str, ...] = ()
    notes: tuple[ImportNote, ...] = ()


class TaskSource(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read of a source."""

    kind: str
    tasks: tuple[ImportableTask, ...]
    notes: tuple[ImportNote, ...] = ()
    """About the source as a whole."""


class ImportOutcome(StrEnum):
    CREATED = "created"
    SKIPPED = "skipped"


class ImportedTask(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one task of a source."""

    source_id: str
    outcome: ImportOutcome
    task: Task
    notes: tuple[ImportNote, ...] = ()
