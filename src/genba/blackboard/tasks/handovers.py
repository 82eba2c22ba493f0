"""What one attempt leaves for the next: a note on the task, kept once for each run."""

from genba.blackboard.database.sanitize import bounded, now, seen
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import HANDED_OVER, NewEvent, tell
from genba.blackboard.tasks.task_rows import hold, id_of
from genba.domain.tasks.task import Actor, ActorKind
from genba.domain.text_limits import LONGEST

_LONGEST = 4 * LONGEST
_SESSION = Statement("SELECT id FROM sessions WHERE run = :run AND task_id = :task")
_SAME = Statement("""
SELECT id FROM messages WHERE task_id = :task AND type = 'handover' AND content = :text
  AND coalesce(from_session_id, 0) = :session
""")
_INSERT = Statement("""
INSERT INTO messages (project_id, task_id, from_session_id, type, content, created_at)
VALUES (:project, :task, :session, 'handover', :text, :at)
""")
_ALL = Statement("SELECT content FROM messages WHERE task_id = :task AND type = 'handover' ORDER BY id")


def hand_over(tx: Transaction, number: int, run: str, text: str) -> None:
    """Leave a note for the next session on the task. The same note of the same session is kept once."""
    task, kept, at = hold(tx, number).task, bounded(text, _LONGEST), now()
    row = tx.one(_SESSION, run=seen(run), task=task.id)
    session = int(row[0]) if row else None
    if tx.one(_SAME, task=task.id, text=kept, session=session or 0) is not None:
        return
    tx.do(_INSERT, project=tx.project, task=task.id, session=session, text=kept, at=at)
    line = NewEvent(task=task.id, version=task.version, kind=HANDED_OVER, data={"run": seen(run)})
    tell(tx, Actor(ActorKind.ORCHESTRATOR, seen(run).strip() or "genba"), at, [line], seen(run))


def handovers(tx: Transaction, number: int) -> list[str]:
    """The notes of a task, oldest first."""
    return [str(row[0]) for row in tx.all(_ALL, task=id_of(tx, number))]
