"""What the blackboard tells of the field: of every issue, or of all but those that rest.

Law: one look is read in one transaction, with so many statements whatever the number of issues. An issue rests where
its task ended, and its row is unchanged since a pass found that nothing is left to do.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from genba.blackboard.database.sanitize import as_json, now
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import APPROVED, STATUS_CHANGED
from genba.domain.decoding import reader
from genba.domain.facilitation import IssueAssessment
from genba.domain.tasks.task import Phase, TaskStatus
from genba.domain.tracker.remote import TrackedIssue, TrackedPullRequest

_OVERLAP = 200
"""Lines of history that are read again: on PostgreSQL one with a lower id may be seen later."""
_GOING = "('backlog', 'open', 'in_progress', 'review', 'blocked')"
_LISTED = "(SELECT value FROM json_each(:{name}))"
_LISTED_POSTGRES = "(SELECT CAST(n.value AS {kind}) FROM json_array_elements_text(CAST(:{name} AS json)) AS n(value))"


def _listing(sql: str, name: str, kind: str = "bigint") -> Statement:
    """SQL in which {only} is a list that is given."""
    postgres = _LISTED_POSTGRES.format(name=name, kind=kind)
    return Statement(sql.replace("{only}", _LISTED.format(name=name)), sql.replace("{only}", postgres))


def _both(sql: str, column: str) -> tuple[Statement, Statement]:
    """The same for all tasks of the project, and for those that are listed."""
    whole = Statement(sql.replace("{which}", "t.project_id = :project"))
    return whole, _listing(sql.replace("{which}", f"t.project_id = :project AND {column} IN {{only}}"), "tasks")


_TASK = """
SELECT id, number, title, description, status, priority, labels, parent_task_id, assignee, requires_review,
  blocker_kind, blocker_reason, tracker, created_at, updated_at, reviewer_type,
  type, phases, due
FROM tasks WHERE in_plan = :no AND review_of IS NULL"""
_OURS = f"{_TASK} AND project_id = :project"
_TASKS = Statement(f"{_OURS} ORDER BY number")
_MOVING = _listing(
    f"{_OURS} AND status IN {_GOING} UNION ALL {_OURS} AND status NOT IN {_GOING} AND number IN {{only}}", "numbers"
)
_BY_ROW = _listing(f"{_OURS} AND id IN {{only}}", "tasks")
_PARTS_OF = _listing(f"{_OURS} AND parent_task_id IN {{only}}", "tasks")
_MARK = Statement("""
SELECT count(*), coalesce(sum(id), 0), coalesce(sum(version), 0), coalesce(max(updated_at), '') FROM tasks
WHERE project_id = :project AND status IN ('done', 'cancelled') AND in_plan = :no AND review_of IS NULL
""")
_OF_ENDED = f"""
FROM tasks t LEFT JOIN field_issues f ON f.project_id = t.project_id AND f.number = t.number
WHERE t.project_id = :project AND t.status NOT IN {_GOING} AND t.in_plan = :no AND t.review_of IS NULL
"""
_ENDED = Statement(
    """
SELECT json_group_array(t.number) FILTER (WHERE f.stamp = t.updated_at),
  json_group_array(t.number) FILTER (WHERE f.stamp IS NULL OR f.stamp <> t.updated_at)
"""
    + _OF_ENDED,
    """
SELECT CAST(json_agg(t.number) FILTER (WHERE f.stamp = t.updated_at) AS text),
  CAST(json_agg(t.number) FILTER (WHERE f.stamp IS NULL OR f.stamp <> t.updated_at) AS text)
"""
    + _OF_ENDED,
)
_HELD = _listing(
    """
SELECT number FROM tasks WHERE project_id = :project
  AND id IN (SELECT task_id FROM sessions WHERE status <> 'ended' OR branch IN {only})
""",
    "branches",
    "text",
)
_TOUCHED = _listing("SELECT number FROM tasks WHERE project_id = :project AND id IN {only}", "tasks")
_BRANCHES = Statement("""
SELECT DISTINCT s.branch FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE t.project_id = :project AND s.status <> 'waiting' AND s.branch <> ''
""")
_DEPENDENCIES = _both(
    """
SELECT d.task_id, d.depends_on_id FROM task_dependencies d JOIN tasks t ON t.id = d.task_id
WHERE {which} ORDER BY d.depends_on_id
""",
    "d.task_id",
)
_SESSIONS = _both(
    """
SELECT s.task_id, s.run, a.name, s.status, s.waits_for, s.outcome, s.reason, s.branch, s.verified, s.started_at,
  s.heartbeat_at, s.executor, s.host, s.purpose,
  EXISTS (SELECT 1 FROM agent_connections c WHERE c.project_id = t.project_id AND c.run = s.run AND c.status = 'active'
    AND c.lease_until > :now)
FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN agents a ON a.id = s.agent_id
WHERE {which} AND t.in_plan = :no AND t.review_of IS NULL ORDER BY s.id
""",
    "s.task_id",
)
_VERDICTS = _both(
    """
SELECT v.task_id, v."commit", v.status, v.reason FROM verifications v
WHERE v.id IN (SELECT max(w.id) FROM verifications w JOIN tasks t ON t.id = w.task_id
  WHERE {which} GROUP BY w.task_id)
""",
    "w.task_id",
)
_APPROVALS = Statement("""
SELECT e.task_id, e.kind, e.data FROM events e JOIN tasks t ON t.id = e.task_id
WHERE t.project_id = :project AND t.status = 'review' AND t.requires_review = :yes
  AND e.kind IN ('approved', 'status_changed') ORDER BY e.id
""")
_REOPENED = _both(
    """
SELECT t.id, max(e.created_at) FROM events e JOIN tasks t ON t.id = e.task_id
WHERE {which} AND e.kind = 'status_changed'
  AND (e.data LIKE '%"from":"done"%' OR e.data LIKE '%"from":"cancelled"%') GROUP BY t.id
""",
    "e.task_id",
)
_HAPPENED = Statement("""
SELECT task_id, max(created_at), max(id) FROM events
WHERE project_id = :project AND id > :after AND task_id IS NOT NULL AND actor_name <> 'facilitator' GROUP BY task_id
""")
_FLAGS = Statement("SELECT paused, stopping FROM projects WHERE id = :project")
_QUESTIONS = Statement("""
SELECT task_id, question, kind FROM escalations WHERE project_id = :project AND status = 'open' ORDER BY id
""")
_ISSUES = Statement("""
SELECT number, task_id, in_field, data FROM tracked_issues WHERE project_id = :project AND gone = :no ORDER BY number
""")
_REQUESTS = Statement("SELECT task_id, data FROM pull_requests WHERE project_id = :project ORDER BY number")
_ELSEWHERE = Statement("""
SELECT 1 WHERE EXISTS (SELECT 1 FROM tracked_issues WHERE project_id = :project)
  OR EXISTS (SELECT 1 FROM pull_requests WHERE project_id = :project)
""")
_ENDS = Statement("""
SELECT a.name, coalesce(sum(CASE WHEN s.outcome = 'completed' THEN 1 ELSE 0 END), 0), count(*)
FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN agents a ON a.id = s.agent_id
WHERE t.project_id = :project AND s.status = 'ended' GROUP BY a.name
""")
_POSITIONS = Statement("SELECT name, value FROM field_positions WHERE project_id = :project")
_STATE = Statement("SELECT value, updated_at FROM tracker_state WHERE project_id = :project AND name = :name")
_KEPT_ROW = """
SELECT number, last_at, assessment, posted, posted_state, stamp FROM field_issues WHERE project_id = :project"""
_KEPT = Statement(_KEPT_ROW)
_KEPT_OF = _listing(f"{_KEPT_ROW} AND number IN {{only}}", "numbers")

_data = reader(dict[str, Any])
_issue = reader(TrackedIssue)
_request = reader(TrackedPullRequest)
_assessment = reader(IssueAssessment)
_labels = reader(tuple[str, ...])
_phases = reader(tuple[Phase, ...])
_numbers = reader(list[int])
ENDED = "ended"
"""The name under which it is kept which tasks that ended rest."""


class TaskSeen(msgspec.Struct, kw_only=True):
    """A task, as far as the facilitator looks at it."""

    id: int
    number: int
    title: str
    body: str
    status: str
    priority: str
    labels: tuple[str, ...]
    parent: int | None
    assignee: str
    requires_review: bool
    reviewer_type: str
    blocker_kind: str
    blocker_reason: str
    tracker: str
    created_at: str
    updated_at: str
    type: str = "task"
    due: str = ""
    phases: tuple[Phase, ...] = ()
    """The phases that are complete, oldest first."""


class SessionSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A session, with what shows whether its agent runs."""

    run: str
    agent: str
    status: str
    waits_for: str
    outcome: str
    reason: str
    branch: str
    verified: str
    started_at: str
    heartbeat_at: str
    executor: str
    host: str
    purpose: str
    connected: bool
    """An external agent is connected to it and renewed its lease lately."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an issue from the last look."""

    last_at: str
    written: str
    posted: str
    posted_state: str
    stamp: str = ""

    @property
    def assessment(self) -> IssueAssessment | None:
        """What another version of Genba wrote in words of its own counts as not judged yet."""
        try:
            return _assessment.decode(self.written) if self.written != "{}" else None
        except msgspec.ValidationError:
            return None


class BoardRecords(msgspec.Struct, kw_only=True):
    """All that the blackboard tells, seen at one moment. Tasks are named by their rows, issues by their numbers."""

    tasks: dict[int, TaskSeen]
    dependencies: dict[int, list[int]]
    sessions: dict[int, list[SessionSeen]]
    verdicts: dict[int, tuple[str, str, str]]
    approved: dict[int, str]
    reopened: dict[int, str]
    happened: dict[int, str]
    newest_event: int
    questions: dict[int, tuple[str, str]]
    issues: dict[int, tuple[int | None, bool, TrackedIssue]]
    requests: list[tuple[int | None, TrackedPullRequest]]
    ends: dict[str, tuple[int, int]]
    kept: dict[int, Kept]
    positions: dict[str, str]
    tracker_read_at: str
    resting: frozenset[int] = frozenset()
    """Issues that rest, and were left out unless another one has to do with them."""
    ended: "Ended"
    paused: bool = False
    """Whether the project is paused."""
    stopping: bool = False
    """Whether the project is stopping."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that ended, by their numbers: those that rest, and the others."""

    mark: str = ""
    """What changes with every one of them. While it is the same, the same ones rest."""
    resting: list[int] = []
    moving: list[int] = []


class _Seen(msgspec.Struct, frozen=True):
    """Which tasks are looked at: all of them where none are listed."""

    tasks: dict[int, TaskSeen]
    ended: Ended
    listed: str | None = None
    resting: frozenset[int] = frozenset()

    def all(self, tx: Transaction, both: tuple[Statement, Statement], **values: Any) -> list[tuple[Any, ...]]:
        if self.listed is None:
            return tx.all(both[0], project=tx.project, **values)
        return tx.all(both[1], project=tx.project, tasks=self.listed, **values)


_known_ended = reader(Ended)


def read_positions(tx: Transaction) -> dict[str, str]:
    return dict(tx.all(_POSITIONS, project=tx.project))


def read_branches(tx: Transaction) -> frozenset[str]:
    """The branches that sessions work on or have worked on."""
    return frozenset(row[0] for row in tx.all(_BRANCHES, project=tx.project))


def read_records(tx: Transaction, named: Iterable[int] | None, branches: Iterable[str] = ()) -> BoardRecords:
    """Everything; or, with some issues that are named, these and all that do not rest.

    With `branches`, what has a session on one of them is looked at as well. What a tracker elsewhere tells is read
    whole.
    """
    positions = read_positions(tx)
    after = int(positions.get("event") or 0)
    happened = tx.all(_HAPPENED, project=tx.project, after=max(0, after - _OVERLAP))
    if named is None or tx.one(_ELSEWHERE, project=tx.project) is not None:
        seen = _whole(tx)
        kept = tx.all(_KEPT, project=tx.project)
    else:
        touched = tx.all(_TOUCHED, project=tx.project, tasks=as_json([task for task, _, _ in happened]))
        held = tx.all(_HELD, project=tx.project, branches=as_json(sorted(branches)))
        ended = _ended(tx, positions.get(ENDED, ""))
        seen = _moving(tx, ended, {*named, *(row[0] for row in touched), *(row[0] for row in held)})
        numbers = as_json([task.number for task in seen.tasks.values()])
        kept = tx.all(_KEPT_OF, project=tx.project, numbers=numbers)
    flags = tx.one(_FLAGS, project=tx.project) or (False, False)
    read_at = tx.one(_STATE, project=tx.project, name="since")
    verdicts = seen.all(tx, _VERDICTS)
    return BoardRecords(
        tasks=seen.tasks,
        resting=seen.resting,
        ended=seen.ended,
        paused=bool(flags[0]),
        stopping=bool(flags[1]),
        dependencies=_grouped(seen.all(tx, _DEPENDENCIES)),
        sessions=_sessions(seen.all(tx, _SESSIONS, no=False, now=now())),
        verdicts={task: (commit, status, reason or "") for task, commit, status, reason in verdicts},
        approved=_approved(tx),
        reopened=dict(seen.all(tx, _REOPENED)),
        happened={task: at for task, at, _ in happened},
        newest_event=max((newest for _, _, newest in happened), default=after),
        questions={task: (asked, kind) for task, asked, kind in tx.all(_QUESTIONS, project=tx.project)},
        issues={
            number: (task, bool(in_field), _issue.decode(data))
            for number, task, in_field, data in tx.all(_ISSUES, project=tx.project, no=False)
            if data != "{}"
        },
        requests=[(task, _request.decode(data)) for task, data in tx.all(_REQUESTS, project=tx.project)],
        ends={name: (int(good), int(all_) - int(good)) for name, good, all_ in tx.all(_ENDS, project=tx.project)},
        kept={row[0]: _kept(row) for row in kept},
        positions=positions,
        tracker_read_at=str(read_at[1]) if read_at else "",
    )


def _whole(tx: Transaction) -> _Seen:
    tasks = {row[0]: _task(row) for row in tx.all(_TASKS, project=tx.project, no=False)}
    ended = [task.number for task in tasks.values() if TaskStatus(task.status).ended]
    return _Seen(tasks, Ended(mark=_mark(tx), moving=ended))


def _mark(tx: Transaction) -> str:
    return " ".join(str(each) for each in tx.one(_MARK, project=tx.project, no=False) or ())


def _ended(tx: Transaction, known: str) -> Ended:
    """As it was found last, where no task that ended is another one since."""
    mark = _mark(tx)
    before = _known_ended.decode(known) if known else Ended()
    if before.mark == mark:
        return before
    row = tx.one(_ENDED, project=tx.project, no=False) or (None, None)
    rest, moved = (_numbers.decode(each or "[]") for each in row)
    return Ended(mark=mark, resting=rest, moving=moved)


def _moving(tx: Transaction, ended: Ended, named: set[int]) -> _Seen:
    """The tasks that do not rest, those that are named, and whatever of the others they have to do with."""
    asked = as_json(sorted({*ended.moving, *named}))
    tasks = {row[0]: _task(row) for row in tx.all(_MOVING, project=tx.project, no=False, numbers=asked)}
    listed = as_json(list(tasks))
    beside = {row[0]: _task(row) for row in tx.all(_PARTS_OF, project=tx.project, no=False, tasks=listed)}
    wanted = {other for _, other in tx.all(_DEPENDENCIES[1], project=tx.project, tasks=listed)}
    wanted |= {task.parent for task in tasks.values() if task.parent is not None}
    wanted -= {*tasks, *beside}
    if wanted:
        others = tx.all(_BY_ROW, project=tx.project, no=False, tasks=as_json(sorted(wanted)))
        beside.update({row[0]: _task(row) for row in others})
    beside.update(tasks)
    in_order = sorted(beside.values(), key=lambda task: task.number)
    resting = frozenset(ended.resting) - {task.number for task in tasks.values()}
    return _Seen({task.id: task for task in in_order}, ended, listed, resting)


def read_kept(tx: Transaction, numbers: Iterable[int]) -> dict[int, Kept]:
    asked = as_json(sorted(numbers))
    return {row[0]: _kept(row) for row in tx.all(_KEPT_OF, project=tx.project, numbers=asked)}


def _kept(row: tuple[Any, ...]) -> Kept:
    _, last_at, assessment, posted, posted_state, stamp = row
    return Kept(last_at=last_at, written=assessment, posted=posted, posted_state=posted_state, stamp=stamp)


def _task(row: tuple[Any, ...]) -> TaskSeen:
    """The task of a row of `_TASK`."""
    # fmt: off
    (
        id_, number, title, body, status, priority, labels, parent, assignee, requires_review, blocker_kind,
        blocker_reason, tracker, created_at, updated_at, reviewer_type, type_, phases, due,
    ) = row
    # fmt: on
    return TaskSeen(
        id=id_,
        number=number,
        title=title,
        body=body,
        status=status,
        priority=priority,
        labels=() if labels == "[]" else _labels.decode(labels),
        parent=parent,
        assignee=assignee,
        requires_review=bool(requires_review),
        reviewer_type=reviewer_type,
        blocker_kind=blocker_kind or "",
        blocker_reason=blocker_reason,
        tracker=tracker,
        created_at=created_at,
        updated_at=updated_at,
        type=type_,
        due=due,
        phases=() if phases == "[]" else _phases.decode(phases),
    )


def _sessions(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[SessionSeen]]:
    found: dict[int, list[SessionSeen]] = {}
    # fmt: off
    for (
        task, run, agent, status, waits_for, outcome, reason, branch, verified, started_at, heartbeat_at, executor,
        host, purpose, connected,
    ) in rows:
        # fmt: on
        found.setdefault(task, []).append(
            SessionSeen(
                run=run,
                agent=agent,
                status=status,
                waits_for=waits_for,
                outcome=outcome or "",
                reason=reason,
                branch=branch,
                verified=verified,
                started_at=started_at,
                heartbeat_at=heartbeat_at,
                executor=executor,
                host=host,
                purpose=purpose,
                connected=bool(connected),
            )
        )
    return found


def _approved(tx: Transaction) -> dict[int, str]:
    """By task: the commit that was approved last; a request for changes withdraws it."""
    found: dict[int, str] = {}
    for task, kind, raw in tx.all(_APPROVALS, project=tx.project, yes=True):
        data = _data.decode(raw)
        if kind == APPROVED:
            found[task] = str(data.get("commit", ""))
        elif kind == STATUS_CHANGED and data.get("from") == TaskStatus.REVIEW:
            found[task] = ""
    return found


def _grouped(pairs: Iterable[tuple[Any, ...]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one, other in pairs:
        found.setdefault(one, []).append(other)
    return found
