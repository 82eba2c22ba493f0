"""Writing the tasks of another tool down: all of them, or none; each once, however often it is imported."""

from collections.abc import Sequence

import msgspec

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.dependencies import depend
from genba.blackboard.tasks.status_gateway import change_status
from genba.blackboard.tasks.task_records import add
from genba.blackboard.tasks.task_rows import task_with_rows
from genba.blackboard.tasks.task_tree import hold_relations
from genba.domain.errors import GenbaError, StateConflictError
from genba.domain.tasks.task import Actor, Blocker, BlockerKind, StatusChange, TaskStatus
from genba.domain.tasks.task_import import ImportableTask, ImportedTask, ImportNote, ImportOutcome

_IMPORTED = Statement("""
SELECT tracker_reference, number FROM tasks
WHERE project_id = :project AND tracker = 'local' AND tracker_reference <> ''
""")


class DryRun(GenbaError):
    """What an import would have done, which is undone."""

    def __init__(self, result: tuple[ImportedTask, ...]) -> None:
        super().__init__("nothing was imported")
        self.result = result


def import_tasks(tx: Transaction, wanted: Sequence[ImportableTask], actor: Actor) -> tuple[ImportedTask, ...]:
    """Create what is not here yet, then relate it, then end or block what had ended or was blocked in the source."""
    hold_relations(tx)
    numbers = {str(reference): int(number) for reference, number in tx.all(_IMPORTED, project=tx.project)}
    here = frozenset(numbers)
    notes = {task.reference: list(task.notes) for task in wanted}
    new = [task for task in _parents_first(wanted, notes) if task.reference not in here]
    for task in new:
        parent = _parent(tx, numbers.get(task.parent), notes[task.reference])
        draft = msgspec.structs.replace(task.draft, parent=parent, tracker_reference=task.reference)
        numbers[task.reference] = add(tx, draft, actor).number
    ended = {task.reference for task in new if task.status is TaskStatus.CANCELLED}
    for task in new:
        for on in task.dependencies:
            _depend(tx, numbers[task.reference], numbers[on], on in ended, actor, notes[task.reference])
    for task in reversed(new):  # the parts of a task before itself
        if task.reference in ended:
            change = StatusChange(to=TaskStatus.CANCELLED, actor=actor, reason=task.reason)
            change_status(tx, numbers[task.reference], change)
    for task in new:
        number = numbers[task.reference]
        if task.status is TaskStatus.BLOCKED and task_with_rows(tx, number).task.status is TaskStatus.OPEN:
            blocker = Blocker(BlockerKind.NEEDS_INPUT, task.reason)
            change_status(
                tx, number, StatusChange(to=TaskStatus.BLOCKED, actor=actor, reason=task.reason, blocker=blocker)
            )
    return tuple(
        ImportedTask(
            source_id=task.source_id,
            outcome=ImportOutcome.SKIPPED if task.reference in here else ImportOutcome.CREATED,
            task=task_with_rows(tx, numbers[task.reference]).task,
            notes=() if task.reference in here else tuple(notes[task.reference]),
        )
        for task in wanted
    )


def _parents_first(wanted: Sequence[ImportableTask], notes: dict[str, list[ImportNote]]) -> list[ImportableTask]:
    """Every task after the one that it is a part of. A parent that closes a circle is left out."""
    by_reference = {task.reference: task for task in wanted}
    placed: dict[str, ImportableTask] = {}
    for task in wanted:
        line: dict[str, ImportableTask] = {}
        above: ImportableTask | None = task
        while above is not None and above.reference not in placed:
            line[above.reference] = above
            if above.parent in line:
                notes[above.reference].append(ImportNote("parent", "it would be a part of itself: it was left out"))
                line[above.reference] = msgspec.structs.replace(above, parent="")
                break
            above = by_reference.get(above.parent)
        placed |= dict(reversed(line.items()))
    return list(placed.values())


def _parent(tx: Transaction, number: int | None, notes: list[ImportNote]) -> int | None:
    if number is not None and task_with_rows(tx, number).task.status.ended:
        notes.append(ImportNote("parent", f"#{number} has ended here: it is a part of none"))
        return None
    return number


def _depend(tx: Transaction, number: int, on: int, has_ended: bool, actor: Actor, notes: list[ImportNote]) -> None:
    """Let a task wait for another one, unless that would never be done here."""
    if has_ended or task_with_rows(tx, on).task.status is TaskStatus.CANCELLED:
        notes.append(ImportNote("depends_on", f"#{on} has ended: it does not wait for it", needs_attention=False))
        return
    try:
        depend(tx, number, on, actor)
    except StateConflictError as error:
        notes.append(ImportNote("depends_on", f"#{on} was left out: {error.message}"))
