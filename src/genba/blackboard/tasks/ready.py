"""What can be started now: open, every dependency done, every part ended; by priority, then by age.

The scheduler reads this often, and most tasks are unchanged. So tasks that were read before are cached
until their version or the time of their last change differs.
"""

import msgspec

from genba.blackboard.database.sanitize import most
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.task_rows import numbers_of, select_tasks, task_of
from genba.domain.tasks.task import Task, TaskStatus

_CONDITION = """
WHERE t.project_id = :project AND t.status = 'open' AND NOT t.in_plan
  AND NOT EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks o ON o.id = d.depends_on_id
    WHERE d.task_id = t.id AND o.status <> 'done')
  AND NOT EXISTS (SELECT 1 FROM tasks c WHERE c.parent_task_id = t.id AND c.review_of IS NULL AND NOT c.in_plan
    AND c.status NOT IN ('done', 'cancelled'))
ORDER BY t.priority_rank, t.id LIMIT :limit
"""
_STAMPS = """
SELECT t.id, t.version, t.updated_at, (SELECT $numbers FROM tasks c WHERE c.parent_task_id = t.id) FROM tasks t
"""

READY = select_tasks(_CONDITION)
"""Every ready task, whole."""
_STAMPED = Statement(
    _STAMPS.replace("$numbers", "group_concat(c.number)") + _CONDITION,
    _STAMPS.replace("$numbers", "string_agg(CAST(c.number AS text), ',')") + _CONDITION,
)
_ONE = select_tasks("WHERE t.project_id = :project AND t.id = :id")

_FEW = 64
"""So many tasks are read one by one, and so short a list is read as a whole, rather than compared."""


class ReadyTasks:
    """The ready tasks of one project, as they are now."""

    def __init__(self) -> None:
        self._known: dict[int, Task] = {}

    def read(self, tx: Transaction, limit: int | None) -> list[Task]:
        if not self._known or (limit is not None and limit <= _FEW):
            return self._read_whole(tx, limit)
        stamps = tx.all(_STAMPED, project=tx.project, limit=most(limit))
        known = self._known
        found = [self._current(known.get(stamp[0]), stamp) for stamp in stamps]
        stale = [place for place, task in enumerate(found) if task is None]
        if len(stale) > _FEW:
            return self._read_whole(tx, limit)
        for place in stale:
            row = tx.one(_ONE, project=tx.project, id=stamps[place][0])
            found[place] = task_of(row) if row else None
        tasks = [task for task in found if task is not None and task.status is TaskStatus.OPEN]
        if stale or len(known) > 2 * len(tasks):
            self._known = {task.id: task for task in tasks}
        return tasks

    def _read_whole(self, tx: Transaction, limit: int | None) -> list[Task]:
        tasks = [task_of(row) for row in tx.all(READY, project=tx.project, limit=most(limit))]
        if limit is None or limit > _FEW:
            self._known = {task.id: task for task in tasks}
        return tasks

    @staticmethod
    def _current(task: Task | None, stamp: Row) -> Task | None:
        """A task that is kept, if it is still as it was. A new part of it changes its children, not its version."""
        if task is None or task.version != stamp[1] or task.updated_at != stamp[2]:
            return None
        if stamp[3] is None and not task.children:
            return task
        children = numbers_of(stamp[3]) if stamp[3] is not None else ()
        return task if children == task.children else msgspec.structs.replace(task, children=children)
