"""Looks at tasks and what they need, for those who draw it. Each is bounded: a project may have any number of them."""

from collections.abc import Iterable

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.task_rows import select_tasks, task_of
from genba.domain.tasks.task import Task

_NEWEST = select_tasks("WHERE t.project_id = :project ORDER BY t.updated_at DESC, t.id DESC LIMIT :most")
_ONE = select_tasks("WHERE t.project_id = :project AND t.number = :number")
_NEEDED_BY = Statement("""
SELECT l.number FROM task_dependencies d JOIN tasks t ON t.id = d.depends_on_id JOIN tasks l ON l.id = d.task_id
WHERE t.project_id = :project AND t.number = :number
UNION SELECT l.number FROM tasks l JOIN tasks t ON t.id = l.blocker_task_id
WHERE t.project_id = :project AND t.number = :number AND l.status = 'blocked'
ORDER BY 1 LIMIT :most
""")
_LARGEST = 2**31


def newest(tx: Transaction, most: int) -> list[Task]:
    """Those that were changed last."""
    return [task_of(row) for row in tx.all(_NEWEST, project=tx.project, most=most)]


def around(tx: Transaction, number: int, depth: int, most: int) -> list[Task]:
    """A task, and what is tied to it over so many others; the nearest ones where it is too many."""
    found: dict[int, Task] = {}
    ring: Iterable[int] = (number,)
    for _ in range(depth + 1):
        further: dict[int, None] = {}
        for each in ring:
            if each in found or len(found) >= most or not 0 < each < _LARGEST:
                continue
            row = tx.one(_ONE, project=tx.project, number=each)
            if row is None:
                continue
            task = found[each] = task_of(row)
            above = (task.parent,) if task.parent is not None else ()
            before = (task.blocker.task,) if task.blocker is not None and task.blocker.task is not None else ()
            later = (int(found_[0]) for found_ in tx.all(_NEEDED_BY, project=tx.project, number=each, most=most))
            further.update(dict.fromkeys((*task.dependencies, *task.children, *above, *before, *later)))
        ring = further
    return list(found.values())
