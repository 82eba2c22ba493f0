"""The copy of a tracker: its issues, its pull requests, and how far it was read.

Law: `data` of a row is what was last acted on. A page of the list only marks what is stale; the issue and what it means
for its task are written in one transaction, so a sync that was cut off repeats it without effect.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from genba.blackboard.database.sanitize import LARGEST, as_json, most, now, seen
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tasks.task_records import leave_numbers_to_tracker
from genba.blackboard.tasks.task_rows import id_of, task_with_rows
from genba.domain.decoding import reader
from genba.domain.errors import StateConflictError
from genba.domain.sessions.loop_state import Feedback
from genba.domain.tasks.task import Task
from genba.domain.timestamps import format_time
from genba.domain.tracker.issues import FIRST_OWN_NUMBER
from genba.domain.tracker.remote import BoardItem, IssuePage, RemoteComment, TrackedIssue, TrackedPullRequest

_VALUE = Statement("SELECT value FROM tracker_state WHERE project_id = :project AND name = :name")
_SET = Statement("""
INSERT INTO tracker_state (project_id, name, value, updated_at) VALUES (:project, :name, :value, :at)
ON CONFLICT (project_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
""")
_UNSET = Statement("DELETE FROM tracker_state WHERE project_id = :project AND name = :name")
_LEASE = Statement("""
INSERT INTO tracker_state (project_id, name, value, updated_at) VALUES (:project, :name, :owner, :until)
ON CONFLICT (project_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
WHERE tracker_state.updated_at < :now OR tracker_state.updated_at > :far OR tracker_state.value IN (:owner, :dead)
RETURNING value
""")
_HOLDER = Statement("SELECT value, updated_at FROM tracker_state WHERE project_id = :project AND name = :name")
_LET_GO = Statement("DELETE FROM tracker_state WHERE project_id = :project AND name = :name AND value = :owner")

_KEEP = Statement("""
INSERT INTO tracked_issues (project_id, number, reference, state, updated_at, details_stale, seen_in, data)
VALUES (:project, :number, :reference, :state, :updated_at, :wanted, :seen_in, :data)
ON CONFLICT (project_id, number) DO UPDATE SET
  details_stale = (tracked_issues.details_stale OR tracked_issues.gone
      OR tracked_issues.updated_at <> excluded.updated_at
      OR (:seen_in <> '' AND tracked_issues.seen_in <> :seen_in AND excluded.state = 'open'))
    AND (:wanted OR tracked_issues.task_id IS NOT NULL),
  data = CASE WHEN tracked_issues.task_id IS NOT NULL AND tracked_issues.data LIKE :detailed
    THEN tracked_issues.data ELSE excluded.data END,
  reference = excluded.reference, state = excluded.state, updated_at = excluded.updated_at, gone = :no,
  seen_in = CASE WHEN :seen_in = '' THEN tracked_issues.seen_in ELSE :seen_in END
""")
_IN_THE_WAY = Statement("""
SELECT number FROM tasks WHERE project_id = :project AND tracker = 'local' AND number BETWEEN :low AND :high
""")
_COLUMNS = """
SELECT i.number, i.reference, i.task_id IS NOT NULL, i.state, i.updated_at, i.in_field, i.details_stale, i.gone, i.data
FROM tracked_issues i
"""
_ROW = Statement(_COLUMNS + "WHERE i.project_id = :project AND i.number = :number")
_STALE = Statement(
    _COLUMNS
    + "WHERE i.project_id = :project AND i.details_stale = :yes AND i.gone = :no AND i.number > :after"
    + " ORDER BY i.number LIMIT :limit"
)
_UNSEEN = Statement(
    _COLUMNS
    + "WHERE i.project_id = :project AND i.gone = :no AND i.seen_in <> :seen_in AND i.number > :after"
    + " ORDER BY i.number LIMIT :limit"
)
_AS_OLD = Statement(
    _COLUMNS
    + "WHERE i.project_id = :project AND i.number = :number AND i.task_id IS NOT NULL AND i.updated_at = :updated_at"
)
_EVERY = Statement(_COLUMNS + "WHERE i.project_id = :project AND i.gone = :no ORDER BY i.number")
_BY_REFERENCE = Statement(_COLUMNS + "WHERE i.project_id = :project AND i.reference = :reference")
_MARK = Statement("UPDATE tracked_issues SET details_stale = :yes WHERE project_id = :project AND number = :number")
_WRITE = Statement("""
INSERT INTO tracked_issues (project_id, number, reference, task_id, state, updated_at, in_field, details_stale, gone,
  data)
VALUES (:project, :number, :reference, :task, :state, :updated_at, :in_field, :no, :gone, :data)
ON CONFLICT (project_id, number) DO UPDATE SET reference = excluded.reference, task_id = excluded.task_id,
  state = excluded.state, updated_at = excluded.updated_at, in_field = excluded.in_field, details_stale = :no,
  gone = excluded.gone, data = excluded.data
""")
_COUNT = Statement("""
SELECT count(*), coalesce(sum(CASE WHEN state = 'open' THEN 1 ELSE 0 END), 0) FROM tracked_issues
WHERE project_id = :project AND gone = :no
""")

_ANALYZE = Statement("SELECT 1", "ANALYZE tasks, tracked_issues, events, comments, task_dependencies, task_goals")

_REMOTE_COMMENTS = Statement("""
SELECT remote_id, updated_at, trusted, body FROM comments WHERE task_id = :task AND remote_id IS NOT NULL
""")
_ADD_COMMENT = Statement("""
INSERT INTO comments (task_id, author_kind, author, body, created_at, remote_id, updated_at, trusted)
VALUES (:task, 'tracker', :author, :body, :created_at, :remote_id, :updated_at, :trusted)
ON CONFLICT (task_id, remote_id) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at,
  trusted = excluded.trusted
""")
_DROP_COMMENT = Statement("DELETE FROM comments WHERE task_id = :task AND remote_id = :remote_id")

_KEEP_REQUEST = Statement(
    """
INSERT INTO pull_requests (project_id, number, branch, task_id, state, "commit", watched, updated_at, data)
VALUES (:project, :number, :branch, :task, :state, :commit, :watched, :updated_at, :data)
ON CONFLICT (project_id, number) DO UPDATE SET branch = excluded.branch,
  task_id = coalesce(excluded.task_id, pull_requests.task_id), state = excluded.state, "commit" = excluded."commit",
  watched = CASE WHEN :task IS NULL THEN pull_requests.watched ELSE excluded.watched END,
  updated_at = excluded.updated_at, data = excluded.data
""",
    """
INSERT INTO pull_requests (project_id, number, branch, task_id, state, "commit", watched, updated_at, data)
VALUES (:project, :number, :branch, CAST(:task AS bigint), :state, :commit, :watched, :updated_at, :data)
ON CONFLICT (project_id, number) DO UPDATE SET branch = excluded.branch,
  task_id = coalesce(excluded.task_id, pull_requests.task_id), state = excluded.state, "commit" = excluded."commit",
  watched = CASE WHEN CAST(:task AS bigint) IS NULL THEN pull_requests.watched ELSE excluded.watched END,
  updated_at = excluded.updated_at, data = excluded.data
""",
)
_REQUESTS_OF_BRANCH = Statement("""
SELECT data FROM pull_requests WHERE project_id = :project AND branch = :branch ORDER BY number DESC
""")
_REQUESTS_OF_TASK = Statement("SELECT data FROM pull_requests WHERE task_id = :task ORDER BY number DESC")
_REQUEST = Statement("SELECT data FROM pull_requests WHERE project_id = :project AND number = :number")
_UNWATCH = Statement("UPDATE pull_requests SET watched = :no WHERE task_id = :task AND watched = :yes")

_issue = reader(TrackedIssue)
_request = reader(TrackedPullRequest)
_gaps = reader(list[Feedback])
_keys = reader(list[str])
_UNKNOWN = TrackedIssue(number=0, reference="", title="")
_SKEW = timedelta(hours=1)
"""By how much the clocks of two hosts may differ."""
_HANDED = 500
"""How many of the reviews and checks that were handed over are remembered for a task."""


class TrackedRow(msgspec.Struct, frozen=True, kw_only=True):
    """An issue of the copy."""

    number: int
    reference: str
    has_task: bool
    state: str
    """As the list showed it last: the issue itself may not have been acted on yet."""
    updated_at: str
    in_field: bool
    stale: bool
    gone: bool
    issue: TrackedIssue

    @property
    def acted_on(self) -> TrackedIssue | None:
        """The issue as it was when its task was last brought in line with it."""
        return self.issue if self.issue.detailed else None


class TrackerBoard:
    """What a sync reads and writes. Any thread may call; every call of a method without `tx` is one transaction."""

    def __init__(self, board: Blackboard) -> None:
        self.board = board
        self.store = board.store

    # How far it was read

    def value(self, name: str) -> str:
        return self.store.read(lambda tx: value(tx, name))

    def set_values(self, values: dict[str, str]) -> None:
        self.store.write(lambda tx: _set_all(tx, values))

    def take_lease(self, name: str, owner: str, seconds: float, dead: str = "") -> str:
        """Be the only one who does this for a while; an empty string when it worked, else who does it now.

        `dead`: an owner who is known to have died.
        """

        def take(tx: Transaction) -> str:
            at = datetime.now(UTC)
            ends = at + timedelta(seconds=seconds)
            # No lease lasts longer than it can: one that seems to was written by a clock that was wrong.
            times = {"now": format_time(at), "until": format_time(ends), "far": format_time(ends + _SKEW)}
            if tx.one(_LEASE, project=tx.project, name=name, owner=owner, dead=dead or owner, **times):
                return ""
            row = tx.one(_HOLDER, project=tx.project, name=name)
            return str(row[0]) if row else "another process"

        return self.store.write(take)

    def release(self, name: str, owner: str) -> None:
        self.store.write(lambda tx: tx.do(_LET_GO, project=tx.project, name=name, owner=owner))

    # Issues

    def join(self, repository: str) -> None:
        """The project's issues are those of this repository from now on. Another one is refused."""

        def join(tx: Transaction) -> None:
            known = value(tx, "repository")
            if known and known.lower() != repository.lower():
                raise StateConflictError(
                    f"this blackboard has the issues of {known}, not of {repository}",
                    unchanged="nothing was changed.",
                    hint="give the project another database: `database` in .genba/config.yaml, or set\n"
                    f"tracker.github.repository back to {known}",
                )
            if not known:
                set_value(tx, "repository", repository)
            leave_numbers_to_tracker(tx)

        if self.value("repository") != repository:
            self.store.write(join)

    def keep_page(
        self, page: IssuePage, wanted: Callable[[TrackedIssue], bool], values: dict[str, str], seen_in: str = ""
    ) -> None:
        """A page and how far it was read, together. What changed and is wanted, or has a task, is stale from now on."""

        def keep(tx: Transaction) -> None:
            refuse_own_numbers(tx, [issue.number for issue in page.issues])
            again = _changed_in_one_second(tx, page.issues)
            tx.do_each(_KEEP, [_as_row(tx, issue, wanted(issue), seen_in) for issue in page.issues])
            if again:
                tx.do_each(_MARK, [{"project": tx.project, "number": number, "yes": True} for number in again])
            _set_all(tx, values)

        self.store.write(keep)

    def stale(self, limit: int, after: int = 0) -> list[TrackedRow]:
        """Issues whose details are to be read, by number."""
        return self._rows(_STALE, yes=True, no=False, after=after, limit=most(limit))

    def unseen(self, seen_in: str, limit: int, after: int = 0) -> list[TrackedRow]:
        """Issues that a full look did not come by: deleted, or moved to another repository, or missed."""
        return self._rows(_UNSEEN, no=False, seen_in=seen_in, after=after, limit=most(limit))

    def every(self) -> list[TrackedRow]:
        return self._rows(_EVERY, no=False)

    def row(self, number: int) -> TrackedRow | None:
        return self.store.read(lambda tx: row_of(tx, number))

    def mark_stale(self, numbers: Collection[int]) -> None:
        def mark(tx: Transaction) -> None:
            tx.do_each(_MARK, [{"project": tx.project, "number": number, "yes": True} for number in numbers])

        if numbers:
            self.store.write(mark)

    def analyze_tables(self) -> None:
        """Tell PostgreSQL how large the tables have become: what it planned while they were empty reads all of them."""
        if self.store.on_postgres:
            self.store.write(lambda tx: tx.do(_ANALYZE))

    def counts(self) -> tuple[int, int]:
        """How many issues the copy has, and how many of them are open."""
        row = self.store.read(lambda tx: tx.one(_COUNT, project=tx.project, no=False))
        return (int(row[0]), int(row[1])) if row else (0, 0)

    # Pull requests

    def pull_requests(self, number: int) -> list[TrackedPullRequest]:
        """The pull requests of a task, newest first."""

        def read(tx: Transaction) -> list[TrackedPullRequest]:
            found = tx.all(_REQUESTS_OF_TASK, task=task_with_rows(tx, number).task.id)
            return [_request.decode(data) for (data,) in found]

        return self.store.read(read)

    def keep_pull_requests(self, found: Iterable[TrackedPullRequest]) -> None:
        requests = list(found)
        if requests:
            self.store.write(lambda tx: keep_pull_requests(tx, requests))

    # What goes into the next prompt

    def findings(self, number: int) -> tuple[Feedback, ...]:
        """Feedback of reviewers and checks that no session has taken yet, oldest first."""
        return self.store.read(lambda tx: findings(tx, number))

    def clear_findings(self, number: int) -> None:
        """A session has them in its prompt now."""
        self.store.write(lambda tx: tx.do(_UNSET, project=tx.project, name=_findings_name(number)))

    def _rows(self, statement: Statement, **values: object) -> list[TrackedRow]:
        found = self.store.read(lambda tx: tx.all(statement, project=tx.project, **values))
        return [_row(row) for row in found]


# ── inside of a transaction ──────────────────────────────────────────────────────────────────────────────────────────


def value(tx: Transaction, name: str) -> str:
    row = tx.one(_VALUE, project=tx.project, name=name)
    return str(row[0]) if row else ""


def set_value(tx: Transaction, name: str, text: str) -> None:
    """Empty: it is forgotten."""
    if text:
        tx.do(_SET, project=tx.project, name=name, value=text, at=now())
    else:
        tx.do(_UNSET, project=tx.project, name=name)


def refuse_own_numbers(tx: Transaction, numbers: Sequence[int]) -> None:
    """Tasks that were here before the project was joined to its tracker must not have the number of an issue."""
    if not numbers:
        return
    asked = frozenset(numbers)
    if beyond := sorted(number for number in asked if not 0 < number < FIRST_OWN_NUMBER):
        raise StateConflictError(
            f"the tracker has an issue #{beyond[0]}, and Genba has only #1 to #{FIRST_OWN_NUMBER - 1} for issues: its "
            "own tasks come after that",
            unchanged="no task was changed.",
            hint="check tracker.github in .genba/config.yaml",
        )
    own = tx.all(_IN_THE_WAY, project=tx.project, low=min(asked), high=max(asked))
    twice = sorted(number for (number,) in own if number in asked)
    if twice:
        shown = ", ".join(f"#{number}" for number in twice[:10])
        raise StateConflictError(
            f"the project has tasks of its own with the numbers of issues: {shown}",
            unchanged="no task was changed.",
            hint="give the project another database: `database` in .genba/config.yaml",
        )


def row_of(tx: Transaction, number: int) -> TrackedRow | None:
    found = tx.one(_ROW, project=tx.project, number=number) if 0 < number <= LARGEST else None
    return _row(found) if found else None


def row_by_reference(tx: Transaction, reference: str) -> TrackedRow | None:
    found = tx.one(_BY_REFERENCE, project=tx.project, reference=seen(reference))
    return _row(found) if found else None


def write_issue(tx: Transaction, issue: TrackedIssue, task: Task | None, in_field: bool, gone: bool = False) -> None:
    """The issue as it was acted on."""
    tx.do(
        _WRITE,
        project=tx.project,
        number=issue.number,
        reference=seen(issue.reference),
        task=task.id if task else None,
        state=issue.state,
        updated_at=seen(issue.updated_at),
        in_field=in_field,
        gone=gone,
        no=False,
        data=as_json(_storable(issue)),
    )


def copy_comments(tx: Transaction, task: int, comments: Sequence[RemoteComment]) -> int:
    """Bring the copied comments of a task in line; those that were written here stay. How many changed."""
    there = {row[0]: (row[1], row[2], row[3]) for row in tx.all(_REMOTE_COMMENTS, task=task)}
    changed = 0
    for comment in comments:
        body, edited = seen(comment.body), seen(comment.updated_at)
        if there.pop(comment.id, None) == (edited, comment.trusted, body):
            continue
        changed += 1
        tx.do(
            _ADD_COMMENT,
            task=task,
            author=seen(comment.author) or "unknown",
            body=body,
            created_at=seen(comment.created_at),
            remote_id=seen(comment.id),
            updated_at=edited,
            trusted=comment.trusted,
        )
    tx.do_each(_DROP_COMMENT, [{"task": task, "remote_id": remote} for remote in there]) if there else None
    return changed + len(there)


def keep_pull_requests(
    tx: Transaction, found: Iterable[TrackedPullRequest], task: Task | None = None, watched: bool = False
) -> None:
    """Pull requests as they are now, and the task whose work they bring, where that is known."""
    for request in found:
        tx.do(
            _KEEP_REQUEST,
            project=tx.project,
            number=request.number,
            branch=seen(request.branch),
            task=task.id if task else None,
            state=str(request.state),
            commit=seen(request.commit),
            watched=watched,
            updated_at=seen(request.updated_at),
            data=as_json(request),
        )


def pull_requests_of_branch(tx: Transaction, branch: str) -> list[TrackedPullRequest]:
    """Newest first."""
    return [_request.decode(data) for (data,) in tx.all(_REQUESTS_OF_BRANCH, project=tx.project, branch=seen(branch))]


def pull_request(tx: Transaction, number: int) -> TrackedPullRequest | None:
    row = tx.one(_REQUEST, project=tx.project, number=number)
    return _request.decode(row[0]) if row else None


def unwatch(tx: Transaction, task: Task) -> None:
    tx.do(_UNWATCH, task=task.id, yes=True, no=False)


def findings(tx: Transaction, number: int) -> tuple[Feedback, ...]:
    text = value(tx, _findings_name(number))
    return tuple(_gaps.decode(text)) if text else ()


def add_findings(tx: Transaction, number: int, gap: Feedback) -> None:
    """Keep feedback for the next session of the task."""
    id_of(tx, number)
    set_value(tx, _findings_name(number), as_json([*findings(tx, number), gap][-10:]))


def handed(tx: Transaction, number: int) -> frozenset[str]:
    """The reviews and checks that were handed to the author of a task."""
    text = value(tx, f"handed:{number}")
    return frozenset(_keys.decode(text)) if text else frozenset()


def hand_over(tx: Transaction, number: int, keys: Sequence[str]) -> None:
    text = value(tx, f"handed:{number}")
    before = _keys.decode(text) if text else []
    set_value(tx, f"handed:{number}", as_json(list(dict.fromkeys([*before, *keys]))[-_HANDED:]))


def card_of(issue: TrackedIssue, owner: str, project: int) -> BoardItem | None:
    mine = (card for card in issue.cards if card.project == project and card.owner.lower() == owner.lower())
    return next(mine, None)


def _changed_in_one_second(tx: Transaction, issues: Sequence[TrackedIssue]) -> list[int]:
    """Issues that are as old as the copy says and yet not the same: a tracker tells the time to the second."""
    changed = []
    for issue in issues:
        found = tx.one(_AS_OLD, project=tx.project, number=issue.number, updated_at=seen(issue.updated_at))
        known = _row(found).acted_on if found else None
        if known is not None and _shown(known) != _shown(issue):
            changed.append(issue.number)
    return changed


def _shown(issue: TrackedIssue) -> tuple[str, str, frozenset[str]]:
    return issue.state, issue.title.strip(), frozenset(label.lower() for label in issue.labels)


def _findings_name(number: int) -> str:
    return f"findings:{number}"


def _set_all(tx: Transaction, values: dict[str, str]) -> None:
    for name, text in values.items():
        set_value(tx, name, text)


def _as_row(tx: Transaction, issue: TrackedIssue, wanted: bool, seen_in: str) -> dict[str, object]:
    return {
        "project": tx.project,
        "number": issue.number,
        "reference": seen(issue.reference),
        "state": issue.state,
        "updated_at": seen(issue.updated_at),
        "wanted": wanted,
        "seen_in": seen_in,
        "no": False,
        "detailed": '%"detailed":true%',
        "data": as_json(_storable(issue)),
    }


def _storable(issue: TrackedIssue) -> TrackedIssue:
    """Its comments have a table of their own."""
    return msgspec.structs.replace(issue, comments=()) if issue.comments else issue


def _row(row: Row) -> TrackedRow:
    number, reference, has_task, state, updated_at, in_field, stale, gone, data = row
    issue = _issue.decode(data) if data != "{}" else msgspec.structs.replace(_UNKNOWN, number=number)
    return TrackedRow(
        number=number,
        reference=reference,
        has_task=bool(has_task),
        state=state,
        updated_at=updated_at,
        in_field=bool(in_field),
        stale=bool(stale),
        gone=bool(gone),
        issue=issue,
    )
