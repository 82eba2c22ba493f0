"""What people tell a fleet: pause the project, pause a task, stop. The orchestrator draws the consequences."""

from genba.blackboard.database.sanitize import named, now
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import (
    GOING_ON,
    HELD,
    PROJECT_PAUSED,
    PROJECT_RESUMED,
    RELEASED,
    STOPPING,
    NewEvent,
    tell,
)
from genba.blackboard.tasks.task_rows import hold as hold_row
from genba.domain.tasks.task import Actor

_FLAGS = Statement("SELECT paused, stopping FROM projects WHERE id = :project")
_HELD = Statement("""
SELECT number FROM tasks WHERE project_id = :project AND held = :yes
  AND status IN ('backlog', 'open', 'in_progress', 'review', 'blocked')
""")
_PAUSE = Statement("UPDATE projects SET paused = :on WHERE id = :project AND paused <> :on RETURNING id")
_STOP = Statement("UPDATE projects SET stopping = :on WHERE id = :project AND stopping <> :on RETURNING id")
_SETTLE_STOPPED = Statement("""
UPDATE escalations SET status = 'approved', answered_by = :by, answered_at = :at
WHERE task_id = :task AND kind = 'stopped' AND status = 'open'
""")
_HOLD = Statement("UPDATE tasks SET held = :on WHERE id = :task AND held <> :on RETURNING id")


def read(tx: Transaction) -> tuple[bool, bool, frozenset[int]]:
    """Whether the project is paused, whether everybody stops, and the tasks that are held."""
    row = tx.one(_FLAGS, project=tx.project) or (False, False)
    return bool(row[0]), bool(row[1]), frozenset(found[0] for found in tx.all(_HELD, project=tx.project, yes=True))


def pause_project(tx: Transaction, on: bool, actor: Actor) -> None:
    """Start nothing new in this project, or start again."""
    named(actor)
    if tx.one(_PAUSE, project=tx.project, on=on) is not None:
        _tell(tx, actor, PROJECT_PAUSED if on else PROJECT_RESUMED)


def stop_all(tx: Transaction, on: bool, actor: Actor) -> None:
    """Tell everybody to suspend and leave, or take that back."""
    named(actor)
    if tx.one(_STOP, project=tx.project, on=on) is not None:
        _tell(tx, actor, STOPPING if on else GOING_ON)


def hold(tx: Transaction, number: int, on: bool, actor: Actor) -> None:
    """Pause one task or continue it. To continue withdraws the open question about it."""
    named(actor)
    task, at = hold_row(tx, number).task, now()
    if tx.one(_HOLD, task=task.id, on=on) is None:
        return
    if not on:
        tx.do(_SETTLE_STOPPED, task=task.id, by=actor.name, at=at)
    line = NewEvent(task=task.id, version=task.version, kind=HELD if on else RELEASED, data={})
    tell(tx, actor, at, [line])


def _tell(tx: Transaction, actor: Actor, kind: str) -> None:
    tell(tx, actor, now(), [NewEvent(task=None, version=0, kind=kind, data={})])
