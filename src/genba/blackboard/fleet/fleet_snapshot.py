"""The field: everything that the orchestrator decides on, seen at one moment.

Law: one transaction, and so many statements whatever the number of tasks. Steps of a worker's plan are not in it: they
are carried out by the agent of their parent. Most tasks are unchanged since the last read,
so those are cached until their version or the time of their last change differs.
"""

from typing import Any

import msgspec

from genba.blackboard.database.sanitize import now
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.fleet import (
    controls,
    escalations,
    executors,
    merge_entries,
    plans,
    proposals,
    session_segments,
    spending,
)
from genba.blackboard.reviews import reviews
from genba.blackboard.tasks.history import APPROVED, STATUS_CHANGED
from genba.blackboard.tasks.task_rows import GOING, numbers_of, select_tasks, task_of
from genba.domain.decoding import reader
from genba.domain.fleet.records import FleetSession, FleetSnapshot, WaitsFor
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import Priority, Task, TaskStatus

_IN_VIEW = f"""
WHERE t.id IN (
  SELECT id FROM tasks WHERE project_id = :project AND {GOING} AND NOT in_plan
  UNION SELECT d.depends_on_id FROM tasks w JOIN task_dependencies d ON d.task_id = w.id
    WHERE w.project_id = :project AND w.{GOING} AND NOT w.in_plan
  UNION SELECT c.id FROM tasks p JOIN tasks c ON c.parent_task_id = p.id
    WHERE p.project_id = :project AND p.{GOING} AND NOT c.in_plan
  UNION SELECT s.task_id FROM sessions s JOIN tasks r ON r.id = s.task_id
    WHERE s.status = 'running' AND r.project_id = :project)
ORDER BY t.number
"""  # noqa: S608  (words of this module)
_WHOLE = select_tasks(_IN_VIEW, with_steps=False)
_ONE = select_tasks("WHERE t.project_id = :project AND t.id = :id", with_steps=False)
_STAMPED = """
SELECT t.id, t.version, t.updated_at,
  (SELECT $numbers FROM tasks c WHERE c.parent_task_id = t.id AND NOT c.in_plan) FROM tasks t
"""
_STAMPS = Statement(
    _STAMPED.replace("$numbers", "group_concat(c.number)") + _IN_VIEW,
    _STAMPED.replace("$numbers", "string_agg(CAST(c.number AS text), ',')") + _IN_VIEW,
)
_APPROVALS = Statement("""
SELECT t.number, e.kind, e.data FROM events e JOIN tasks t ON t.id = e.task_id
WHERE t.project_id = :project AND t.status = 'review' AND t.requires_review = :yes
  AND e.kind IN ('approved', 'status_changed') ORDER BY e.id
""")
_UNDER_WAY_OR_NEWEST = f"""
WHERE t.project_id = :project AND s.id IN (
  SELECT id FROM sessions WHERE status = 'running'
  UNION SELECT m.id FROM tasks w JOIN sessions m ON m.task_id = w.id
    WHERE w.project_id = :project AND w.{GOING} AND (m.status = 'waiting'
      OR (m.forgiven = :no AND m.outcome <> 'completed')
      OR NOT EXISTS (SELECT 1 FROM sessions n WHERE n.task_id = m.task_id AND n.purpose = m.purpose
        AND n.attempt > m.attempt)))
ORDER BY s.id
"""  # noqa: S608  (words of this module)
_SESSIONS = Statement(session_segments.COLUMNS + _UNDER_WAY_OR_NEWEST)
_ALIKE = Statement("", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

_FEW = 64
_RANKS = {priority: rank for rank, priority in enumerate(Priority)}
_data = reader(dict[str, Any])


class SnapshotReader:
    """The field of one project, as it is now."""

    def __init__(self) -> None:
        self._known: dict[int, Task] = {}
        self._total = spending.ProjectTotal()

    def read(self, tx: Transaction) -> FleetSnapshot:
        if tx.on_postgres:
            tx.do(_ALIKE)  # every statement sees the same moment
        at = now()
        tasks = _approved(tx, self._tasks(tx))
        newest, failures = _sessions(tx)
        paused, stopping, held = controls.read(tx)
        return FleetSnapshot(
            now=at,
            tasks=tasks,
            ready=_ready(tasks),
            sessions=newest,
            failures=failures,
            entries=merge_entries.of_field(tx),
            escalations=escalations.of_field(tx),
            reviews=tuple(reviews.review_of(row) for row in tx.all(reviews.OF_FIELD, project=tx.project)),
            authors=reviews.authors_of_field(tx) if _any_in_review(tasks) else {},
            plans=plans.of_field(tx),
            **_proposed(tx, newest),
            pauses=executors.pauses(tx, at),
            executors=executors.executors(tx),
            ledger=spending.ledger(tx, at[:10], self._total),
            paused=paused,
            stopping=stopping,
            held=held,
        )

    def _tasks(self, tx: Transaction) -> dict[int, Task]:
        known = self._known
        if not known:
            return self._read_whole(tx)
        found: list[Task] = []
        stale: list[int] = []
        for stamp in tx.all(_STAMPS, project=tx.project):
            task = _current(known.get(stamp[0]), stamp)
            if task is None:
                stale.append(stamp[0])
            else:
                found.append(task)
        if len(stale) > _FEW:
            return self._read_whole(tx)
        for id_ in stale:
            row = tx.one(_ONE, project=tx.project, id=id_)
            if row is not None:
                found.append(task_of(row))
        self._known = {task.id: task for task in found}
        return {task.number: task for task in sorted(found, key=lambda task: task.number)}

    def _read_whole(self, tx: Transaction) -> dict[int, Task]:
        tasks = [task_of(row) for row in tx.all(_WHOLE, project=tx.project)]
        self._known = {task.id: task for task in tasks}
        return {task.number: task for task in tasks}


def _proposed(tx: Transaction, sessions: tuple[FleetSession, ...]) -> dict[str, Any]:
    """What is known of the pull requests that sessions wait for."""
    waiting = [session.task for session in sessions if session.waits_for is WaitsFor.PULL_REQUEST]
    return proposals.of_field(tx, waiting) if waiting else {}


def _current(task: Task | None, stamp: Row) -> Task | None:
    """A task that is kept, if it is still as it was. A new part of it changes its children, not its version."""
    if task is None or task.version != stamp[1] or task.updated_at != stamp[2]:
        return None
    if stamp[3] is None and not task.children:
        return task
    children = numbers_of(stamp[3]) if stamp[3] is not None else ()
    return task if children == task.children else msgspec.structs.replace(task, children=children)


def _approved(tx: Transaction, tasks: dict[int, Task]) -> dict[int, Task]:
    """The tasks with the commit that was approved last; sending work back clears it."""
    if not any(task.requires_review and task.status is TaskStatus.REVIEW for task in tasks.values()):
        return tasks
    approved: dict[int, str] = {}
    for number, kind, raw in tx.all(_APPROVALS, project=tx.project, yes=True):
        data = _data.decode(raw)
        if kind == APPROVED:
            approved[number] = str(data.get("commit", ""))
        elif kind == STATUS_CHANGED and data.get("from") == TaskStatus.REVIEW:
            approved[number] = ""
    values = {
        number: msgspec.structs.replace(tasks[number], approved=commit)
        for number, commit in approved.items()
        if commit and number in tasks
    }
    return tasks | values


def _any_in_review(tasks: dict[int, Task]) -> bool:
    return any(task.status is TaskStatus.REVIEW for task in tasks.values())


def _ready(tasks: dict[int, Task]) -> tuple[int, ...]:
    """What can be started: open, every dependency done, every part ended; by priority, then by age."""
    found = [
        task
        for task in tasks.values()
        if task.status is TaskStatus.OPEN
        and not task.in_plan
        and all(tasks[number].status is TaskStatus.DONE for number in task.dependencies)
        and all(tasks[number].status.ended or tasks[number].review_of is not None for number in task.children)
    ]
    return tuple(task.number for task in sorted(found, key=lambda task: (_RANKS[task.priority], task.id)))


def _sessions(tx: Transaction) -> tuple[tuple[FleetSession, ...], dict[int, tuple[FleetSession, ...]]]:
    """The newest session of each purpose of each task, and those that came to nothing."""
    newest: dict[tuple[int, str], FleetSession] = {}
    under_way: list[FleetSession] = []
    failures: dict[int, tuple[FleetSession, ...]] = {}
    for row in tx.all(_SESSIONS, project=tx.project, no=False):
        session = session_segments.session_of(row)
        key = (session.task, str(session.purpose))
        if session.status != SessionStatus.ENDED:
            under_way.append(session)
        if key not in newest or newest[key].attempt < session.attempt:
            newest[key] = session
        came_to_nothing = session.status == SessionStatus.ENDED and session.outcome not in ("", Outcome.COMPLETED)
        if came_to_nothing and not session_segments.SessionRow(*row).forgiven:
            failures[session.task] = (*failures.get(session.task, ()), session)
    shown = {session.run: session for session in (*newest.values(), *under_way)}
    return tuple(shown.values()), failures
