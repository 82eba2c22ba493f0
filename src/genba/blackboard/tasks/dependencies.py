"""Dependencies between tasks. They never form a cycle.

A task waits for what it depends on, and cannot be done before its parts have ended: both are followed.
"""

from genba.blackboard.database.sanitize import named, now
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import DEPENDENCY_ADDED, DEPENDENCY_REMOVED, EDITED, NewEvent, tell
from genba.blackboard.tasks.task_rows import hold, id_of, task_with_rows
from genba.blackboard.tasks.task_tree import blocked_above, hold_relations, line_of
from genba.blackboard.tasks.transition_rules import refuse_step, refused
from genba.domain.errors import StateConflictError
from genba.domain.tasks.task import Actor, Task, TaskDraft, TaskStatus

_WAITS_FOR = Statement("""
SELECT o.id, o.number FROM task_dependencies d JOIN tasks o ON o.id = d.depends_on_id WHERE d.task_id = :id
UNION
SELECT id, number FROM tasks WHERE parent_task_id = :id
""")
_INSERT = Statement("INSERT INTO task_dependencies (task_id, depends_on_id) VALUES (:task, :on)")
_DELETE = Statement("DELETE FROM task_dependencies WHERE task_id = :task AND depends_on_id = :on")
_PLACE = Statement("UPDATE tasks SET parent_task_id = :parent WHERE id = :id")
_TOUCH = Statement("UPDATE tasks SET version = :version, updated_at = :at WHERE id = :id")


def depend(tx: Transaction, number: int, on: int, actor: Actor) -> Task:
    named(actor)
    hold_relations(tx)
    task = hold(tx, number).task
    if number == on:
        raise refused(number, f"it cannot depend on itself: #{number} → #{number}")
    on_id = id_of(tx, on)
    if on in task.dependencies:
        raise refused(number, f"it depends on #{on} already")
    _check_family(tx, number, on)
    way = _way(tx, (on_id, on), number)
    if way:
        raise _circle(number, (number, *way))
    tx.do(_INSERT, task=task.id, on=on_id)
    return _recorded(tx, task, DEPENDENCY_ADDED, on, actor)


def undepend(tx: Transaction, number: int, on: int, actor: Actor) -> Task:
    named(actor)
    task = hold(tx, number).task
    on_id = id_of(tx, on)
    if on not in task.dependencies:
        raise refused(number, f"it does not depend on #{on}")
    tx.do(_DELETE, task=task.id, on=on_id)
    return _recorded(tx, task, DEPENDENCY_REMOVED, on, actor)


def change_dependencies(
    tx: Transaction, number: int, add: tuple[int, ...], remove: tuple[int, ...], actor: Actor
) -> Task:
    """Take dependencies away and add others; the order allows to put one in the place of another."""
    hold_relations(tx)
    for on in dict.fromkeys(remove):
        undepend(tx, number, on, actor)
    for on in dict.fromkeys(add):
        depend(tx, number, on, actor)
    return task_with_rows(tx, number).task


def put_below(tx: Transaction, number: int, parent: int | None, actor: Actor) -> Task:
    """Make a task a part of another one, or of none. Families of which something is blocked stay as they are."""
    named(actor)
    hold_relations(tx)
    task = hold(tx, number).task
    if task.parent == parent:
        return task
    refuse_step(task, "and stays there")
    if task.blocker is not None and task.blocker.task in {above.number for above in line_of(tx, number)[1:]}:
        raise refused(number, f"it is blocked together with #{task.blocker.task}, and stays a part of #{task.parent}")
    above = None if parent is None else _new_parent(tx, task, parent)
    tx.do(_PLACE, id=task.id, parent=above)
    at, version = now(), task.version + 1
    tx.do(_TOUCH, id=task.id, version=version, at=at)
    tell(tx, actor, at, [NewEvent(task=task.id, version=version, kind=EDITED, data={"parent": parent})])
    return task_with_rows(tx, number).task


def _new_parent(tx: Transaction, task: Task, parent: int) -> int:
    """The row of a task that this one may become a part of."""
    if parent == task.number:
        raise refused(task.number, "it cannot be a part of itself")
    above = hold(tx, parent).task
    refuse_step(above, "and has no parts")
    way = _way(tx, (task.id, task.number), parent)
    if way:
        raise _circle(parent, (parent, *way))
    root = blocked_above(line_of(tx, parent))
    if root is not None and task.status in (TaskStatus.OPEN, TaskStatus.IN_PROGRESS):
        raise refused(task.number, f"it becomes a part of #{parent} once #{root.number} is not blocked any more")
    return above.id


def check_new(tx: Transaction, draft: TaskDraft, dependencies: list[int]) -> None:
    """Refuse a new task whose parent could then never be done."""
    if draft.parent is None:
        return
    above = {relative.number for relative in line_of(tx, draft.parent)} if dependencies else set()
    for number, row in zip(draft.dependencies, dependencies, strict=True):
        if number in above:
            raise StateConflictError(
                f"a part of #{number} cannot depend on #{number}: that one waits for it",
                unchanged="nothing was changed.",
                hint=f"genba task show {number}",
            )
        way = _way(tx, (row, number), draft.parent)
        if way:
            raise _circle(draft.parent, (draft.parent, *way))


def _check_family(tx: Transaction, number: int, on: int) -> None:
    if any(above.number == on for above in line_of(tx, number)):
        raise refused(number, f"it is a part of #{on} and cannot depend on it: #{number} → #{on} → #{number}")
    if any(above.number == number for above in line_of(tx, on)):
        raise refused(number, f"#{on} is a part of it: it waits for its parts anyway")


def _way(tx: Transaction, start: tuple[int, int], goal: int) -> tuple[int, ...]:
    """The numbers from a task to the one that it waits for in the end; empty when it does not."""
    came_from: dict[int, int | None] = {start[1]: None}
    waiting = [start]
    while waiting:
        row, number = waiting.pop(0)
        if number == goal:
            way: list[int] = []
            step: int | None = number
            while step is not None:
                way.append(step)
                step = came_from[step]
            return tuple(reversed(way))
        for next_row, next_number in tx.all(_WAITS_FOR, id=row):
            if next_number not in came_from:
                came_from[next_number] = number
                waiting.append((next_row, next_number))
    return ()


def _circle(number: int, way: tuple[int, ...]) -> StateConflictError:
    shown = " → ".join(f"#{link}" for link in way)
    return refused(number, f"it would wait for itself: {shown}")


def _recorded(tx: Transaction, task: Task, kind: str, on: int, actor: Actor) -> Task:
    at, version = now(), task.version + 1
    tx.do(_TOUCH, id=task.id, version=version, at=at)
    tell(tx, actor, at, [NewEvent(task=task.id, version=version, kind=kind, data={"on": on})])
    return task_with_rows(tx, task.number).task
