"""Looks at one task, and at what waits for people: each bounded, however much there is."""

import msgspec

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.fleet import escalations, merge_entries
from genba.blackboard.tasks.history import event_of
from genba.domain.decoding import reader
from genba.domain.fleet.records import Escalation, MergeEntry
from genba.domain.goals.verification import Verification
from genba.domain.tasks.task import Comment, TaskEvent, TaskStatus
from genba.domain.views.task import TaskLink, VerificationLine
from genba.domain.workflow.actions import Message

MOST_LINKS = 200
_VERDICTS = Statement("""
SELECT id, run, "commit", status, reason, created_at FROM verifications WHERE task_id = :task
ORDER BY id DESC LIMIT :limit
""")
_VERDICT = Statement("SELECT data FROM verifications WHERE task_id = :task AND id = :id")
_LINK = "SELECT t.number, t.title, t.status FROM tasks t "
_PARENT = Statement(_LINK + "JOIN tasks c ON c.parent_task_id = t.id WHERE c.id = :task")
_PARTS = Statement(_LINK + "WHERE t.parent_task_id = :task ORDER BY t.number LIMIT :limit")
_BEFORE = Statement(
    _LINK + "JOIN task_dependencies d ON d.depends_on_id = t.id WHERE d.task_id = :task ORDER BY t.number LIMIT :limit"
)
_AFTER = Statement(
    _LINK + "JOIN task_dependencies d ON d.task_id = t.id WHERE d.depends_on_id = :task ORDER BY t.number LIMIT :limit"
)
_EVENTS = Statement("""
SELECT kind, actor_kind, actor_name, created_at, version, data, session FROM events WHERE task_id = :task
ORDER BY id DESC LIMIT :limit
""")
_EVENT_COUNT = Statement("SELECT count(*) FROM events WHERE task_id = :task")
_COMMENTS = Statement("""
SELECT author, body, created_at FROM comments WHERE task_id = :task ORDER BY id DESC LIMIT :limit
""")
_MESSAGES = Statement("""
SELECT m.id, coalesce(a.name, ''), m.type, m.content, f.number, m.created_at, m.status
FROM messages m LEFT JOIN sessions s ON s.id = m.from_session_id LEFT JOIN agents a ON a.id = s.agent_id
  LEFT JOIN tasks f ON f.id = s.task_id
WHERE m.task_id = :task ORDER BY m.id DESC LIMIT :limit
""")
_ENTRIES = Statement(merge_entries.COLUMNS + "WHERE e.task_id = :task ORDER BY e.id DESC LIMIT :limit")
_DECIDED = Statement(
    escalations.COLUMNS
    + "WHERE e.project_id = :project AND e.status <> 'open' ORDER BY e.answered_at DESC, e.id DESC LIMIT :limit"
)
_TITLE = Statement("SELECT title FROM tasks WHERE project_id = :project AND number = :number")

_verification = reader(Verification)


def verdicts(tx: Transaction, task: int, limit: int = 20) -> tuple[VerificationLine, ...]:
    """The newest first."""
    return tuple(
        VerificationLine(id=id_, run=run, commit=commit, status=status, reason=reason or "", at=at)
        for id_, run, commit, status, reason, at in tx.all(_VERDICTS, task=task, limit=limit)
    )


def verdict(tx: Transaction, task: int, id_: int) -> Verification | None:
    """One verdict with its evidence; nothing where another version of Genba wrote it in words of its own."""
    row = tx.one(_VERDICT, task=task, id=id_)
    try:
        return _verification.decode(row[0]) if row else None
    except msgspec.ValidationError:
        return None


def parent(tx: Transaction, task: int) -> TaskLink | None:
    return next(iter(_links(tx, _PARENT, task=task)), None)


def parts(tx: Transaction, task: int) -> tuple[TaskLink, ...]:
    return _links(tx, _PARTS, task=task, limit=MOST_LINKS)


def waits_for(tx: Transaction, task: int) -> tuple[TaskLink, ...]:
    return _links(tx, _BEFORE, task=task, limit=MOST_LINKS)


def waited_for_by(tx: Transaction, task: int) -> tuple[TaskLink, ...]:
    return _links(tx, _AFTER, task=task, limit=MOST_LINKS)


def events(tx: Transaction, task: int, limit: int = 100) -> tuple[tuple[TaskEvent, ...], int]:
    """The newest events, newest first, and how many there are."""
    count = tx.one(_EVENT_COUNT, task=task)
    return tuple(event_of(row) for row in tx.all(_EVENTS, task=task, limit=limit)), int(count[0]) if count else 0


def comments(tx: Transaction, task: int, limit: int = 200) -> tuple[Comment, ...]:
    """The newest ones, oldest of them first."""
    rows = reversed(tx.all(_COMMENTS, task=task, limit=limit))
    return tuple(Comment(author=author, body=body, created_at=at) for author, body, at in rows)


def messages(tx: Transaction, task: int, limit: int = 100) -> tuple[Message, ...]:
    """The newest messages between agents about the task, oldest first."""
    return tuple(
        Message(id=id_, sender=sender, type=kind, content=content, task=number, created_at=at, status=status)
        for id_, sender, kind, content, number, at, status in reversed(tx.all(_MESSAGES, task=task, limit=limit))
    )


def entries(tx: Transaction, task: int, limit: int = 10) -> tuple[MergeEntry, ...]:
    return tuple(merge_entries.entry_of(row) for row in tx.all(_ENTRIES, task=task, limit=limit))


def decided(tx: Transaction, limit: int = 20) -> tuple[tuple[Escalation, ...], dict[int, str]]:
    """What was decided last, newest first, and the titles of the tasks that it was about."""
    found = tuple(escalations.escalation_of(row) for row in tx.all(_DECIDED, project=tx.project, limit=limit))
    titles = {}
    for number in {each.task for each in found}:
        row = tx.one(_TITLE, project=tx.project, number=number)
        titles[number] = str(row[0]) if row else ""
    return found, titles


def _links(tx: Transaction, statement: Statement, **values: int) -> tuple[TaskLink, ...]:
    rows = tx.all(statement, **values)
    return tuple(TaskLink(number=number, title=title, status=TaskStatus(status)) for number, title, status in rows)
