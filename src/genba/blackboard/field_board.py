"""What the facilitator reads of a project, and what it keeps of what it saw.

Law: one look is read in one transaction, with so many statements whatever the number of issues. Nothing here changes a
status; what is said about an issue is written down together with the deed that says it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from genba.blackboard import outbox, tasks
from genba.blackboard.board import Blackboard
from genba.blackboard.history import APPROVED, STATUS_CHANGED
from genba.blackboard.rows import look
from genba.blackboard.store import Statement, Transaction
from genba.blackboard.texts import as_json, now, seen
from genba.domain.errors import NotFoundError
from genba.domain.facilitation import FacilitateAction, IssueAssessment, SeenCommit
from genba.domain.outbox import KeepComment, Relabel
from genba.domain.tasks import Actor, ActorKind, TaskEdit, TaskStatus
from genba.domain.tracking import TrackedIssue, TrackedPullRequest

FACILITATOR = "facilitator"
"""The name under which it comments and labels."""
_ACTOR = Actor(ActorKind.ORCHESTRATOR, FACILITATOR)
_OWN_NAME = "genba:facilitator"
"""How the one comment of the facilitator on a task is known."""
_OVERLAP = 200
"""Lines of history that are read again: on PostgreSQL one with a lower id may be seen later."""

_TASKS = Statement("""
SELECT id, number, title, description, status, priority, labels, parent_task_id, assignee, requires_review,
  blocker_kind, blocker_reason, tracker, created_at, updated_at
FROM tasks WHERE project_id = :project AND in_plan = :no AND review_of IS NULL ORDER BY number
""")
_DEPENDENCIES = Statement("""
SELECT d.task_id, d.depends_on_id FROM task_dependencies d JOIN tasks t ON t.id = d.task_id
WHERE t.project_id = :project ORDER BY d.depends_on_id
""")
_SESSIONS = Statement("""
SELECT s.task_id, s.run, a.name, s.status, s.waits_for, s.outcome, s.reason, s.branch, s.verified, s.started_at,
  s.heartbeat_at, s.executor, s.host, s.purpose,
  EXISTS (SELECT 1 FROM seats c WHERE c.run = s.run AND c.status = 'active' AND c.lease_until > :now)
FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN agents a ON a.id = s.agent_id
WHERE t.project_id = :project AND t.in_plan = :no AND t.review_of IS NULL ORDER BY s.id
""")
_VERDICTS = Statement("""
SELECT v.task_id, v."commit", v.status, v.reason FROM verifications v
WHERE v.id IN (SELECT max(w.id) FROM verifications w JOIN tasks t ON t.id = w.task_id
  WHERE t.project_id = :project GROUP BY w.task_id)
""")
_APPROVALS = Statement("""
SELECT e.task_id, e.kind, e.data FROM events e JOIN tasks t ON t.id = e.task_id
WHERE t.project_id = :project AND t.status = 'review' AND t.requires_review = :yes
  AND e.kind IN ('approved', 'status_changed') ORDER BY e.id
""")
_REOPENED = Statement("""
SELECT task_id, max(created_at) FROM events WHERE project_id = :project AND kind = 'status_changed'
  AND (data LIKE '%"from":"done"%' OR data LIKE '%"from":"cancelled"%') GROUP BY task_id
""")
_HAPPENED = Statement("""
SELECT task_id, max(created_at), max(id) FROM events
WHERE project_id = :project AND id > :after AND task_id IS NOT NULL AND actor_name <> 'facilitator' GROUP BY task_id
""")
_QUESTIONS = Statement("""
SELECT task_id, question, kind FROM escalations WHERE project_id = :project AND status = 'open' ORDER BY id
""")
_ISSUES = Statement("""
SELECT number, task_id, in_field, data FROM tracked_issues WHERE project_id = :project AND gone = :no ORDER BY number
""")
_REQUESTS = Statement("SELECT task_id, data FROM pull_requests WHERE project_id = :project ORDER BY number")
_ENDS = Statement("""
SELECT a.name, coalesce(sum(CASE WHEN s.outcome = 'completed' THEN 1 ELSE 0 END), 0), count(*)
FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN agents a ON a.id = s.agent_id
WHERE t.project_id = :project AND s.status = 'ended' GROUP BY a.name
""")

_KEPT = Statement("""
SELECT number, last_at, assessment, said, said_state, stamp FROM field_issues WHERE project_id = :project
""")
_COMMITS = Statement(
    """
SELECT number, commits FROM field_commits
WHERE project_id = :project AND number IN (SELECT value FROM json_each(:numbers))
""",
    """
SELECT number, commits FROM field_commits WHERE project_id = :project
  AND number IN (SELECT CAST(n.value AS bigint) FROM json_array_elements_text(CAST(:numbers AS json)) AS n(value))
""",
)
_POSITIONS = Statement("SELECT name, value FROM field_positions WHERE project_id = :project")
_STATE = Statement("SELECT value, updated_at FROM tracker_state WHERE project_id = :project AND name = :name")

_FORGET_COMMITS = Statement("DELETE FROM field_commits WHERE project_id = :project")
_KEEP_COMMITS = Statement("""
INSERT INTO field_commits (project_id, number, commits) VALUES (:project, :number, :commits)
ON CONFLICT (project_id, number) DO UPDATE SET commits = excluded.commits
""")
_KEEP_ISSUE = Statement("""
INSERT INTO field_issues (project_id, number, state, last_at, stamp, assessment)
VALUES (:project, :number, :state, :last_at, :stamp, :assessment)
ON CONFLICT (project_id, number) DO UPDATE SET state = excluded.state, last_at = excluded.last_at,
  stamp = excluded.stamp, assessment = excluded.assessment
""")
_FORGET_ISSUE = Statement("DELETE FROM field_issues WHERE project_id = :project AND number = :number")
_SAY = Statement("""
INSERT INTO field_issues (project_id, number, said, said_state) VALUES (:project, :number, :said, :state)
ON CONFLICT (project_id, number) DO UPDATE SET said = excluded.said, said_state = excluded.said_state
""")
_KEEP_POSITION = Statement("""
INSERT INTO field_positions (project_id, name, value, updated_at) VALUES (:project, :name, :value, :at)
ON CONFLICT (project_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
""")
_OWN_COMMENT = Statement("""
INSERT INTO comments (task_id, author_kind, author, body, created_at, remote_id, updated_at, trusted)
VALUES (:task, 'orchestrator', 'facilitator', :body, :at, :remote, :at, :yes)
ON CONFLICT (task_id, remote_id) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at
""")

_data = msgspec.json.Decoder(dict[str, Any])
_issue = msgspec.json.Decoder(TrackedIssue)
_request = msgspec.json.Decoder(TrackedPullRequest)
_commits = msgspec.json.Decoder(list[SeenCommit])
_assessment = msgspec.json.Decoder(IssueAssessment)
_labels = msgspec.json.Decoder(tuple[str, ...])
_JUDGED_ELSEWHERE = ("review", "plan")
"""What is approved or rejected, and not answered."""


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
    blocker_kind: str
    blocker_reason: str
    tracker: str
    created_at: str
    updated_at: str


class SessionSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A session with what tells whether somebody works on it."""

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
    seated: bool
    """An agent that asks what to do next sits there, and was heard of lately."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an issue from the last look."""

    last_at: str
    assessment: IssueAssessment | None
    said: str
    said_state: str
    stamp: str = ""


class KeptCommits(Mapping[int, list[SeenCommit]]):
    """Commits as they are kept; those of an issue that nobody asks for are never read."""

    def __init__(self, written: dict[int, str]) -> None:
        self._written = written

    def __getitem__(self, number: int) -> list[SeenCommit]:
        return _commits.decode(self._written[number])

    def __iter__(self) -> Iterator[int]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def __contains__(self, number: object) -> bool:
        return number in self._written


class Ground(msgspec.Struct, kw_only=True):
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
    commits: Mapping[int, list[SeenCommit]]
    """Those that were asked for: see `FieldBoard.commits`."""
    positions: dict[str, str]
    tracker_read_at: str


class FieldBoard:
    """The blackboard, as the facilitator sees it. Every call is one transaction; any thread may call."""

    def __init__(self, board: Blackboard) -> None:
        self.store = board.store

    def positions(self) -> dict[str, str]:
        return self.store.read(lambda tx: dict(tx.all(_POSITIONS, project=tx.project)))

    def set_position(self, name: str, value: str) -> None:
        self.store.write(lambda tx: tx.do(_KEEP_POSITION, project=tx.project, name=name, value=value, at=now()))

    def read(self) -> Ground:
        return self.store.read(_read)

    def commits(self, numbers: Iterable[int]) -> Mapping[int, list[SeenCommit]]:
        """The commits on the base that are known of some issues and pull requests."""
        asked = as_json(sorted(numbers))
        return self.store.read(lambda tx: KeptCommits(dict(tx.all(_COMMITS, project=tx.project, numbers=asked))))

    def keep(
        self,
        stamps: Mapping[int, str],
        assessments: Mapping[int, IssueAssessment],
        commits: Mapping[int, list[SeenCommit]],
        positions: Mapping[str, str],
        *,
        anew: bool,
        gone: Iterable[int] = (),
    ) -> None:
        """What this look saw, for the next one: what is new of git, what was judged, and how far it was read."""

        def work(tx: Transaction) -> None:
            if anew:
                tx.do(_FORGET_COMMITS, project=tx.project)
            tx.do_each(
                _KEEP_COMMITS,
                [
                    {"project": tx.project, "number": number, "commits": as_json(all_)}
                    for number, all_ in commits.items()
                ],
            )
            tx.do_each(_KEEP_ISSUE, [_row(tx, each, stamps.get(number, "")) for number, each in assessments.items()])
            tx.do_each(_FORGET_ISSUE, [{"project": tx.project, "number": number} for number in gone])
            at = now()
            tx.do_each(
                _KEEP_POSITION,
                [{"project": tx.project, "name": name, "value": value, "at": at} for name, value in positions.items()],
            )

        self.store.write(work)

    def say(self, issue: int, actions: Iterable[FacilitateAction], state: str, digest: str) -> None:
        """Carry out what is to be said of one issue: here, and by the outbox where it lives elsewhere."""
        wanted = list(actions)
        self.store.write(lambda tx: _say(tx, issue, wanted, state, digest))


def _row(tx: Transaction, assessment: IssueAssessment, stamp: str) -> dict[str, Any]:
    return {
        "project": tx.project,
        "number": assessment.issue,
        "state": str(assessment.state),
        "last_at": assessment.last_at,
        "stamp": stamp,
        "assessment": as_json(assessment),
    }


def _read(tx: Transaction) -> Ground:
    project = {"project": tx.project}
    positions: dict[str, str] = dict(tx.all(_POSITIONS, **project))
    after = int(positions.get("event") or 0)
    happened = tx.all(_HAPPENED, after=max(0, after - _OVERLAP), **project)
    read_at = tx.one(_STATE, name="since", **project)
    return Ground(
        tasks={row[0]: _task(row) for row in tx.all(_TASKS, no=False, **project)},
        dependencies=_grouped(tx.all(_DEPENDENCIES, **project)),
        sessions=_sessions(tx),
        verdicts={
            task: (commit, status, reason or "") for task, commit, status, reason in tx.all(_VERDICTS, **project)
        },
        approved=_approved(tx),
        reopened=dict(tx.all(_REOPENED, **project)),
        happened={task: at for task, at, _ in happened},
        newest_event=max((newest for _, _, newest in happened), default=after),
        questions={task: (question, kind) for task, question, kind in tx.all(_QUESTIONS, **project)},
        issues={
            number: (task, bool(in_field), _issue.decode(data))
            for number, task, in_field, data in tx.all(_ISSUES, no=False, **project)
            if data != "{}"
        },
        requests=[(task, _request.decode(data)) for task, data in tx.all(_REQUESTS, **project)],
        ends={name: (int(good), int(all_) - int(good)) for name, good, all_ in tx.all(_ENDS, **project)},
        kept={row[0]: _kept(row) for row in tx.all(_KEPT, **project)},
        commits={},
        positions=positions,
        tracker_read_at=str(read_at[1]) if read_at else "",
    )


def _kept(row: tuple[Any, ...]) -> Kept:
    _, last_at, assessment, said, said_state, stamp = row
    return Kept(
        last_at=last_at,
        assessment=_read_assessment(assessment),
        said=said,
        said_state=said_state,
        stamp=stamp,
    )


def _read_assessment(written: str) -> IssueAssessment | None:
    """What another version of Genba wrote in words of its own counts as not judged yet."""
    try:
        return _assessment.decode(written) if written != "{}" else None
    except msgspec.ValidationError:
        return None


def _task(row: tuple[Any, ...]) -> TaskSeen:
    return TaskSeen(
        id=row[0],
        number=row[1],
        title=row[2],
        body=row[3],
        status=row[4],
        priority=row[5],
        labels=() if row[6] == "[]" else _labels.decode(row[6]),
        parent=row[7],
        assignee=row[8],
        requires_review=bool(row[9]),
        blocker_kind=row[10] or "",
        blocker_reason=row[11],
        tracker=row[12],
        created_at=row[13],
        updated_at=row[14],
    )


def _sessions(tx: Transaction) -> dict[int, list[SessionSeen]]:
    found: dict[int, list[SessionSeen]] = {}
    for row in tx.all(_SESSIONS, project=tx.project, no=False, now=now()):
        found.setdefault(row[0], []).append(
            SessionSeen(
                run=row[1],
                agent=row[2],
                status=row[3],
                waits_for=row[4],
                outcome=row[5] or "",
                reason=row[6],
                branch=row[7],
                verified=row[8],
                started_at=row[9],
                heartbeat_at=row[10],
                executor=row[11],
                host=row[12],
                purpose=row[13],
                seated=bool(row[14]),
            )
        )
    return found


def _approved(tx: Transaction) -> dict[int, str]:
    """By task: the commit that was approved last; whoever sends work back takes that with it."""
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


def _say(tx: Transaction, issue: int, actions: list[FacilitateAction], state: str, digest: str) -> None:
    try:
        task = look(tx, issue).task
    except NotFoundError:
        task = None
    elsewhere = task is None or task.tracker != "local"
    for action in actions:
        match action.action:
            case "comment" | "update" if elsewhere:
                body = seen(action.body)
                outbox.record(
                    tx, f"facilitator:{issue}", KeepComment(issue=issue, name=FACILITATOR, body=body), run=FACILITATOR
                )
            case "comment" | "update" if task is not None:
                tx.do(_OWN_COMMENT, task=task.id, body=seen(action.body), remote=_OWN_NAME, at=now(), yes=True)
            case "label" if task is not None:
                _relabel(tx, issue, action, elsewhere)
            case _:
                continue  # what a person must see is shown, and remembered as said
    tx.do(_SAY, project=tx.project, number=issue, said=digest, state=state)


def _relabel(tx: Transaction, issue: int, action: FacilitateAction, elsewhere: bool) -> None:
    """The labels here change at once, so that the next look finds them; the tracker's by one deed."""
    before = look(tx, issue).task
    add = (action.label,) if action.label and action.label not in before.labels else ()
    remove = tuple(label for label in action.remove if label in before.labels)
    if not add and not remove:
        return
    after = tasks.edit(tx, issue, TaskEdit(add_labels=add, remove_labels=remove), _ACTOR, None)
    if elsewhere:
        deed = Relabel(issue=issue, add=add, remove=remove)
        outbox.record(tx, f"labels:{issue}:{after.version}", deed, run=FACILITATOR)
