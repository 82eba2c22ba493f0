"""Parents and children: who is above a task, who is below it.

Law: a task is younger than its parent, so locks are taken by id, parents before children.
"""

import msgspec

from genba.blackboard.database.sanitize import LARGEST
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.domain.tasks.task import TaskStatus

_LINE = """
WITH RECURSIVE line(id, parent, steps) AS (
  SELECT id, parent_task_id, 0 FROM tasks WHERE project_id = :project AND number = :number
  UNION ALL
  SELECT t.id, t.parent_task_id, line.steps + 1 FROM tasks t JOIN line ON t.id = line.parent)
"""
_BELOW = """
WITH RECURSIVE below(id) AS (
  SELECT id FROM tasks WHERE parent_task_id = :id
  UNION ALL
  SELECT t.id FROM tasks t JOIN below ON t.parent_task_id = below.id)
"""
_LOCAL_BELOW = """
WITH RECURSIVE below(id) AS (
  SELECT id FROM tasks WHERE parent_task_id = :id AND tracker = 'local'
  UNION ALL
  SELECT t.id FROM tasks t JOIN below ON t.parent_task_id = below.id WHERE t.tracker = 'local')
"""
_RELATIVE = "SELECT t.id, t.number, t.status, t.version, t.blocker_kind, t.blocker_task_id FROM tasks t "
_IDS = "SELECT t.id FROM tasks t "

_UPWARD = Statement(_LINE + _RELATIVE + "JOIN line ON t.id = line.id ORDER BY line.steps")
_DOWNWARD = Statement(_BELOW + _RELATIVE + "JOIN below ON t.id = below.id ORDER BY t.id")
_LOCAL_DOWNWARD = Statement(_LOCAL_BELOW + _RELATIVE + "JOIN below ON t.id = below.id ORDER BY t.id")
_HOLD_UPWARD = Statement(
    _LINE + _IDS + "WHERE t.id IN (SELECT id FROM line) AND t.number <> :without ORDER BY t.id FOR SHARE"  # noqa: S608
)
_HOLD_DOWNWARD = Statement(
    _BELOW + _IDS + "WHERE t.id IN (SELECT id FROM below) ORDER BY t.id FOR NO KEY UPDATE"  # noqa: S608
)
_REVIEWS = Statement(
    _RELATIVE + "WHERE t.parent_task_id = :id AND t.review_of IS NOT NULL "
    "AND t.status NOT IN ('done', 'cancelled') ORDER BY t.id"
)
_HOLD_REVIEWS = Statement(
    _IDS + "WHERE t.parent_task_id = :id AND t.review_of IS NOT NULL ORDER BY t.id FOR NO KEY UPDATE"
)
_STEPS = Statement(
    _RELATIVE + "WHERE t.parent_task_id = :id AND t.in_plan AND t.status NOT IN ('done', 'cancelled') ORDER BY t.id"
)
_HOLD_STEPS = Statement(_IDS + "WHERE t.parent_task_id = :id AND t.in_plan ORDER BY t.id FOR NO KEY UPDATE")
_IS_LED = Statement("""
SELECT count(*) FROM contexts c JOIN sessions s ON s.id = c.session_id
WHERE s.run = :run AND s.task_id = :id AND substr(c.progress, 1, 9) = 'workflow:'
""")
_ALONE = Statement("SELECT pg_advisory_xact_lock(hashtext(:project))")


class Relative(msgspec.Struct, frozen=True, array_like=True):
    id: int
    number: int
    status: TaskStatus
    version: int
    blocker_kind: str | None
    blocker_id: int | None


def line_of(tx: Transaction, number: int) -> list[Relative]:
    """The task itself, its parent, the parent's parent, and so on."""
    return [_relative(row) for row in tx.all(_UPWARD, project=tx.project, number=number)]


def descendants(tx: Transaction, task: int) -> list[Relative]:
    """Lock everything below a locked task until this transaction ends."""
    if tx.on_postgres:
        held = -1
        while (count := len(tx.all(_HOLD_DOWNWARD, id=task))) != held:
            held = count
    return [_relative(row) for row in tx.all(_DOWNWARD, id=task)]


def local_descendants(tx: Transaction, task: int) -> list[Relative]:
    """Those below a task that is held which are Genba's own; issues of a tracker, and what is below those, are not."""
    descendants(tx, task)
    return [_relative(row) for row in tx.all(_LOCAL_DOWNWARD, id=task)]


def open_reviews(tx: Transaction, task: int) -> list[Relative]:
    """The reviews of a task that is held, as far as they have not ended."""
    if tx.on_postgres:
        tx.all(_HOLD_REVIEWS, id=task)
    return [_relative(row) for row in tx.all(_REVIEWS, id=task)]


def abandoned_steps(tx: Transaction, task: int, run: str) -> list[Relative]:
    """Steps of a plan that have not ended, of a task that is held, where another run than this one goes by that plan.

    Only agents that ask for their next action follow an existing plan.
    """
    if not run:
        return []
    led = tx.one(_IS_LED, run=run, id=task)
    if led is not None and led[0]:
        return []
    if tx.on_postgres:
        tx.all(_HOLD_STEPS, id=task)
    return [_relative(row) for row in tx.all(_STEPS, id=task)]


def hold_line(tx: Transaction, number: int, with_itself: bool) -> None:
    """Lock the ancestors of a task until this transaction ends."""
    if tx.on_postgres and 0 < number <= LARGEST:
        tx.all(_HOLD_UPWARD, project=tx.project, number=number, without=0 if with_itself else number)


def hold_relations(tx: Transaction) -> None:
    """Lock the relations of this project until this transaction ends, so that no cycle can form."""
    if tx.on_postgres:
        tx.all(_ALONE, project=tx.project)


def blocked_above(line: list[Relative]) -> Relative | None:
    """The task at the root of a block that reaches what is below this line; None when nothing of it is blocked."""
    by_id = {relative.id: relative for relative in line}
    nearest = next((relative for relative in line if relative.status is TaskStatus.BLOCKED), None)
    if nearest is None or nearest.blocker_id is None:
        return nearest
    return by_id.get(nearest.blocker_id, nearest)


def _relative(row: Row) -> Relative:
    return Relative(row[0], row[1], TaskStatus(row[2]), *row[3:])
