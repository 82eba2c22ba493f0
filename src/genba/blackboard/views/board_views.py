"""Looks at the blackboard for those who only watch: counts, and pages of tasks, cheap however many there are."""

import msgspec

from genba.blackboard.database.sanitize import storable
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.task_rows import select_tasks, task_of
from genba.domain.tasks.task import Task, TaskStatus

_COUNTS = Statement("SELECT status, count(*) FROM tasks WHERE project_id = :project GROUP BY status")
_NEEDS = Statement("SELECT count(*) FROM escalations WHERE project_id = :project AND status = 'open'")
_FITS = "(:text = '' OR lower(t.title) LIKE :text ESCAPE '!')"
_NEWEST = select_tasks(
    f"WHERE t.project_id = :project AND t.status = :status AND {_FITS} ORDER BY t.updated_at DESC, t.id DESC "
    "LIMIT :limit OFFSET :skip"
)
_URGENT = select_tasks(
    f"WHERE t.project_id = :project AND t.status = :status AND {_FITS} ORDER BY t.priority_rank, t.id "
    "LIMIT :limit OFFSET :skip"
)
_LANDED = Statement("""
SELECT t.number, m.landed FROM merge_entries m JOIN tasks t ON t.id = m.task_id
WHERE t.project_id = :project AND m.landed <> '' ORDER BY m.id DESC LIMIT :limit
""")


class ColumnQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks of one status are wanted."""

    status: TaskStatus
    text: str = ""
    limit: int = 50
    skip: int = 0


def counts(tx: Transaction) -> dict[TaskStatus, int]:
    return {TaskStatus(status): int(count) for status, count in tx.all(_COUNTS, project=tx.project)}


def needs(tx: Transaction) -> int:
    """How many things wait for a person."""
    row = tx.one(_NEEDS, project=tx.project)
    return int(row[0]) if row else 0


def tasks(tx: Transaction, wanted: ColumnQuery) -> list[Task]:
    """The ended ones newest first, the others as they would be begun."""
    statement = _NEWEST if wanted.status.ended else _URGENT
    text = storable(wanted.text, "the text").lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    rows = tx.all(
        statement,
        project=tx.project,
        status=str(wanted.status),
        text=f"%{text}%" if text else "",
        limit=wanted.limit,
        skip=wanted.skip,
    )
    return [task_of(row) for row in rows]


def landed(tx: Transaction, limit: int = 500) -> dict[int, str]:
    """By task: the commit under which its work landed last."""
    found: dict[int, str] = {}
    for number, commit in tx.all(_LANDED, project=tx.project, limit=limit):
        found.setdefault(int(number), str(commit))
    return found
