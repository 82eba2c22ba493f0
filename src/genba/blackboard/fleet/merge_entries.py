"""The merge queue: which branches want to land on which target, in which state.

Law: an entry is written once for each commit and round of a run, and ends once. One that was withdrawn may be queued
again; what has landed stays merged, even if it was withdrawn at that moment.
"""

from collections.abc import Iterable

from genba.blackboard.database.paging import WHOLE, Page
from genba.blackboard.database.sanitize import as_json, bounded, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.history import MERGE_QUEUED, MERGE_SETTLED, NewEvent, tell
from genba.blackboard.tasks.task_rows import hold
from genba.blackboard.tasks.transition_rules import refused
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError
from genba.domain.fleet.merge_queue import EntryEnd
from genba.domain.fleet.records import EntryStatus, MergeEntry
from genba.domain.tasks.task import Actor, ActorKind, Priority, TaskStatus
from genba.domain.text_limits import LONGEST

_LONGEST = 4 * LONGEST
_QUEUE = Actor(ActorKind.ORCHESTRATOR, "merge queue")

COLUMNS = """
SELECT e.id, t.number, e.run, e.branch, e."commit", e.target, t.title, a.name, t.priority, e.status, e.round, e.turns,
  e.landed, e.paths, e.detail, e.tried_on, e.enqueued_at, e.finished_at, t.id, t.version
FROM merge_entries e JOIN tasks t ON t.id = e.task_id LEFT JOIN sessions s ON s.run = e.run
LEFT JOIN agents a ON a.id = s.agent_id
"""
"""What `entry_of` reads."""

_ONE = Statement(COLUMNS + "WHERE e.id = :id AND e.project_id = :project")
_SAME = Statement(COLUMNS + 'WHERE e.run = :run AND e."commit" = :commit AND e.round = :round')
_PAGE = "AND e.id > :after AND (:target = '' OR e.target = :target) ORDER BY e.id LIMIT :limit"
_ALL = Statement(COLUMNS + f"WHERE e.project_id = :project {_PAGE}")
_OPEN = Statement(COLUMNS + f"WHERE e.project_id = :project AND e.status IN ('queued', 'merging', 'stuck') {_PAGE}")
_OPEN_OF_TARGET = Statement(
    COLUMNS + "WHERE e.project_id = :project AND e.target = :target AND e.status IN ('queued', 'merging', 'stuck') "
    "AND e.id > :after ORDER BY e.id LIMIT :limit"
)
"""What every turn asks: nothing that has landed is read."""
_TARGETS = """
WITH RECURSIVE targets (name) AS (
  SELECT min(target) FROM merge_entries WHERE project_id = :project
  UNION ALL SELECT (SELECT min(m.target) FROM merge_entries m WHERE m.project_id = :project AND m.target > targets.name)
    FROM targets WHERE targets.name IS NOT NULL)
"""
"""The targets, each by one step into the index: those of a long past are few, and their entries are many."""
_IN_VIEW = """
WHERE t.project_id = :project AND e.id IN (
  SELECT o.id FROM targets JOIN merge_entries o ON o.target = targets.name
    WHERE o.project_id = :project AND o.status IN ('queued', 'merging', 'stuck')
  UNION SELECT max(l.id) FROM sessions u JOIN merge_entries l ON l.run = u.run
    WHERE u.status IN ('running', 'waiting') GROUP BY l.run
  UNION SELECT l.id FROM tasks r JOIN merge_entries l ON l.task_id = r.id
    WHERE r.project_id = :project AND r.status = 'review'
      AND NOT EXISTS (SELECT 1 FROM merge_entries n WHERE n.run = l.run AND n.id > l.id))
ORDER BY e.id
"""
"""What is under way, found by what it belongs to: what landed long ago is not read."""
_OF_FIELD = Statement(_TARGETS + COLUMNS + _IN_VIEW)
_INSERT = Statement("""
INSERT INTO merge_entries (project_id, task_id, run, branch, "commit", target, round, enqueued_at)
VALUES (:project, :task, :run, :branch, :commit, :target, :round, :at)
""")
_QUEUE_AGAIN = Statement("""
UPDATE merge_entries SET status = 'queued', branch = :branch, target = :target, turns = 0, detail = '',
  finished_at = NULL, enqueued_at = :at WHERE id = :id
""")
_TAKE = Statement("""
UPDATE merge_entries SET status = 'merging', finished_at = NULL
WHERE id = :id AND project_id = :project AND status IN ('queued', 'stuck')
RETURNING id
""")
_RELEASE = Statement("""
UPDATE merge_entries SET status = 'queued' WHERE id = :id AND project_id = :project AND status = 'merging'
""")
_PASS_BY = Statement("""
UPDATE merge_entries SET turns = turns + 1
WHERE id = :id AND project_id = :project AND status IN ('queued', 'stuck', 'merging')
""")
_SETTLE = Statement("""
UPDATE merge_entries SET status = :status, landed = :landed, paths = :paths, detail = :detail,
  tried_on = CASE WHEN :tried_on = '' THEN tried_on ELSE :tried_on END, finished_at = :finished_at WHERE id = :id
""")

_texts = reader(tuple[str, ...])


def enqueue_merge(tx: Transaction, entry: MergeEntry) -> MergeEntry:
    """Put verified work into the queue. The same commit in the same round is there once."""
    for text, what in ((entry.run, "the run"), (entry.commit, "the commit"), (entry.target, "the target")):
        storable(text, what, empty=False)
    task = hold(tx, entry.task).task
    same = {"run": entry.run, "commit": entry.commit, "round": entry.round}
    there = tx.one(_SAME, **same)
    if there is not None and there[9] != EntryStatus.WITHDRAWN:
        return entry_of(there)
    if task.status is not TaskStatus.REVIEW:
        raise refused(entry.task, f"it is {task.status}, and only a task in review can land")
    at = now()
    place = {"branch": seen(entry.branch), "target": entry.target, "at": at}
    if there is not None:
        tx.do(_QUEUE_AGAIN, id=there[0], **place)
    else:
        tx.do(_INSERT, project=tx.project, task=task.id, **same, **place)
    values = {"commit": entry.commit, "target": entry.target, "round": entry.round}
    tell(tx, _QUEUE, at, [NewEvent(task=task.id, version=task.version, kind=MERGE_QUEUED, data=values)], entry.run)
    row = tx.one(_SAME, **same)
    return entry_of(row) if row else entry


def entries(tx: Transaction, target: str | None, open_only: bool, page: Page = WHOLE) -> list[MergeEntry]:
    wanted = {"target": seen(target or ""), "after": page.after, "limit": page.limit}
    statement = (_OPEN_OF_TARGET if target else _OPEN) if open_only else _ALL
    return [entry_of(row) for row in tx.all(statement, project=tx.project, **wanted)]


def of_field(tx: Transaction) -> tuple[MergeEntry, ...]:
    return tuple(entry_of(row) for row in tx.all(_OF_FIELD, project=tx.project))


def take(tx: Transaction, ids: Iterable[int]) -> list[MergeEntry]:
    """Start a queue pass with these, without those that another pass took or that were withdrawn."""
    taken = [id_ for id_ in sorted(set(ids)) if tx.one(_TAKE, id=id_, project=tx.project) is not None]
    return [_entry(tx, id_) for id_ in taken]


def release(tx: Transaction, ids: Iterable[int]) -> None:
    """Put back what a turn that died had taken."""
    for id_ in sorted(set(ids)):
        tx.do(_RELEASE, id=id_, project=tx.project)


def passed_by(tx: Transaction, ids: Iterable[int]) -> None:
    for id_ in sorted(set(ids)):
        tx.do(_PASS_BY, id=id_, project=tx.project)


def settle(
    tx: Transaction, id_: int, status: EntryStatus, *, landed: str, paths: tuple[str, ...], detail: str, over: str
) -> MergeEntry:
    """Write down what a turn found, or that it could not be tried now."""
    task = hold(tx, _entry(tx, id_).task).task
    entry = _entry(tx, id_)
    if entry.status.ended and (entry.status, status) != (EntryStatus.WITHDRAWN, EntryStatus.MERGED):
        return entry
    at = now()
    tx.do(
        _SETTLE,
        id=id_,
        status=str(status),
        landed=seen(landed),
        paths=as_json(tuple(seen(path) for path in paths)),
        detail=bounded(detail, _LONGEST),
        tried_on=seen(over),
        finished_at=at if status.ended or status is EntryStatus.STUCK else None,
    )
    if status is not entry.status or detail != entry.detail:
        values = {"status": status, "landed": seen(landed), "paths": [seen(path) for path in paths], "on": entry.target}
        line = NewEvent(task=task.id, version=task.version, kind=MERGE_SETTLED, data=values)
        tell(tx, _QUEUE, at, [line], entry.run)
    return _entry(tx, id_)


def settle_end(tx: Transaction, end: EntryEnd) -> MergeEntry:
    values = {"landed": end.landed, "detail": end.detail, "over": end.over}
    return settle(tx, end.entry.id, end.status, paths=end.paths, **values)


def withdraw(tx: Transaction, number: int, reason: str = "it was withdrawn") -> None:
    """Take what a task has in the queue out of it."""
    task = hold(tx, number).task
    for entry in entries(tx, None, open_only=True):
        if entry.task == task.number:
            settle(tx, entry.id, EntryStatus.WITHDRAWN, landed="", paths=(), detail=reason, over="")


def entry_of(row: Row) -> MergeEntry:
    return MergeEntry(
        id=row[0],
        task=row[1],
        run=row[2],
        branch=row[3],
        commit=row[4],
        target=row[5],
        title=row[6],
        agent=row[7] or "",
        priority=Priority(row[8]),
        status=EntryStatus(row[9]),
        round=row[10],
        turns=row[11],
        landed=row[12],
        paths=() if row[13] == "[]" else _texts.decode(row[13]),
        detail=row[14],
        over=row[15],
        enqueued_at=row[16],
        finished_at=row[17] or "",
    )


def _entry(tx: Transaction, id_: int) -> MergeEntry:
    row = tx.one(_ONE, id=id_, project=tx.project)
    if row is None:
        raise NotFoundError(
            f"there is no entry {id_} in the merge queue", unchanged="nothing was changed.", hint="genba queue"
        )
    return entry_of(row)
