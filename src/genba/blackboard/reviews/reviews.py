"""Reviews: each is a child task that is bound to one commit of its parent.

Law: a review lives while its parent is in review with that commit; the gateway makes it stale when the parent goes on.
No agent reviews its own work. A verdict ends the review task and is given once.
"""

from collections.abc import Callable, Sequence

from genba.blackboard.database.sanitize import as_json, bounded, named, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.history import REVIEW_ASKED, REVIEWED, NewEvent, tell
from genba.blackboard.tasks.status_gateway import approve, change_status
from genba.blackboard.tasks.task_records import add
from genba.blackboard.tasks.task_rows import GOING, hold, task_with_rows
from genba.blackboard.tasks.task_tree import hold_line
from genba.blackboard.tasks.transition_rules import refused, reviewed_commit
from genba.domain.decoding import reader
from genba.domain.errors import UsageError
from genba.domain.fleet.records import Review
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskDraft, TaskStatus

_GENBA = Actor(ActorKind.ORCHESTRATOR, "genba")
_MOST_FINDINGS = 50

_COLUMNS = """
SELECT t.number, o.number, r."commit", r.reviewer_type, r.status, r.reviewer, r.findings
FROM reviews r JOIN tasks t ON t.id = r.task_id JOIN tasks o ON o.id = r.of_task_id
"""
OF_FIELD = Statement(_COLUMNS + f"WHERE o.project_id = :project AND o.{GOING} ORDER BY r.id")
"""The reviews of every task that has not ended, oldest first."""
_ONE = Statement(_COLUMNS + "WHERE t.id = :task")
_OF_COMMIT = Statement(
    _COLUMNS + """WHERE o.id = :of AND r."commit" = :commit AND r.status <> 'stale' ORDER BY r.id DESC LIMIT 1"""
)
_INSERT = Statement("""
INSERT INTO reviews (project_id, task_id, of_task_id, "commit", reviewer_type, created_at)
VALUES (:project, :task, :of, :commit, :reviewer_type, :at)
""")
_DECIDE = Statement("""
UPDATE reviews SET status = :status, reviewer = :reviewer, run = :run, findings = :findings, decided_at = :at
WHERE task_id = :task AND status = 'open'
""")
_AUTHORS = Statement("""
SELECT DISTINCT a.name FROM sessions s JOIN agents a ON a.id = s.agent_id JOIN tasks t ON t.id = s.task_id
WHERE t.project_id = :project AND t.number = :number AND s.purpose IN ('work', 'integrate')
""")
_AUTHORS_OF_FIELD = Statement("""
SELECT DISTINCT t.number, a.name FROM tasks t JOIN sessions s ON s.task_id = t.id JOIN agents a ON a.id = s.agent_id
WHERE t.project_id = :project AND t.status = 'review' AND s.purpose IN ('work', 'integrate')
""")

_WAITING = Statement("SELECT 1 FROM sessions WHERE task_id = :task AND status = 'waiting' LIMIT 1")

_texts = reader(tuple[str, ...])


def ask_review(
    tx: Transaction,
    of: int,
    commit: str,
    reviewer_type: str,
    assignee: str = "",
    words: Callable[[str], str] = str,
) -> Review:
    """Ask for a judgement of one commit. The same commit is asked about once while it is in review.

    `words` puts a sentence into the language of the project.
    """
    storable(commit, "the commit", empty=False)
    hold_line(tx, of, with_itself=False)
    parent = hold(tx, of).task
    if parent.status is not TaskStatus.REVIEW:
        raise refused(of, f"it is {parent.status}, and only a task in review is reviewed")
    verified = reviewed_commit(tx, parent)
    if verified != commit:
        raise refused(of, f"it is in review with commit {verified[:12]}, not with {commit[:12]}")
    there = tx.one(_OF_COMMIT, of=parent.id, commit=commit)
    if there is not None:
        return review_of(there)
    if assignee:
        _not_an_author(tx, of, assignee)
    draft = TaskDraft(
        title=words(f"Review: {parent.title}"),
        body=words(f"Judge commit {commit} of #{of}."),
        type="review",
        priority=parent.priority,
        parent=of,
        assignee=assignee,
        reviewer_type=reviewer_type,
        review_of=of,
        review_commit=commit,
    )
    made = add(tx, draft, _GENBA)
    at = now()
    tx.do(_INSERT, project=tx.project, task=made.id, of=parent.id, commit=commit, reviewer_type=reviewer_type, at=at)
    values = {"commit": commit, "review": made.number, "reviewer_type": reviewer_type}
    tell(tx, _GENBA, at, [NewEvent(task=parent.id, version=parent.version, kind=REVIEW_ASKED, data=values)])
    return _review(tx, made)


def verdict(
    tx: Transaction,
    number: int,
    approved: bool,
    findings: Sequence[str],
    reviewer: str,
    actor: Actor,
    run: str = "",
) -> Review:
    """Record a judgement. The first one counts; one on a commit that is no longer in review is stale."""
    named(actor)
    of = task_with_rows(tx, number).task.review_of
    if of is None:
        raise refused(number, "it is no review")
    hold_line(tx, of, with_itself=False)
    parent = hold(tx, of).task
    task = hold(tx, number).task
    review = _review(tx, task)
    if review.status != "open":
        return review
    if actor.kind is not ActorKind.HUMAN:
        _not_an_author(tx, of, reviewer)
    if not approved and not any(finding.strip() for finding in findings):
        raise UsageError(f"task #{number}: a request for changes needs a reason", unchanged="nothing was changed.")
    at, current = now(), parent.status is TaskStatus.REVIEW and reviewed_commit(tx, parent) == review.commit
    status = ("approved" if approved else "changes") if current else "stale"
    if status == "approved":
        approve(tx, of, review.commit, actor)
    kept = tuple(bounded(finding) for finding in findings[:_MOST_FINDINGS])
    if findings[_MOST_FINDINGS:]:
        kept = (*kept, f"… and {len(findings) - _MOST_FINDINGS} more")
    tx.do(_DECIDE, task=task.id, status=status, reviewer=seen(reviewer), run=seen(run), findings=as_json(kept), at=at)
    values = {"commit": review.commit, "review": number, "status": status, "findings": kept, "reviewer": seen(reviewer)}
    tell(tx, actor, at, [NewEvent(task=parent.id, version=parent.version, kind=REVIEWED, data=values)], seen(run))
    _finish(tx, task, review.commit, f"{status} by {seen(reviewer) or actor.name}", run)
    if status == "changes":
        send_back(tx, of, f"{seen(reviewer) or actor.name} requests changes", run)
    return _review(tx, task)


def send_back(tx: Transaction, number: int, reason: str, run: str = "") -> None:
    """Open a task whose work needs changes, unless a session of the fleet waits to go on with them. Safe to repeat."""
    task = hold(tx, number).task
    if task.status is not TaskStatus.REVIEW or tx.one(_WAITING, task=task.id) is not None:
        return
    for to in (TaskStatus.IN_PROGRESS, TaskStatus.OPEN):
        change_status(tx, number, StatusChange(to=to, actor=_GENBA, reason=reason, session=run))


def settle_by_hand(
    tx: Transaction, of: int, commit: str, approved: bool, findings: Sequence[str], actor: Actor
) -> bool:
    """A person has judged a commit: its review task is done with that. False where there is none that is open."""
    there = tx.one(_OF_COMMIT, of=task_with_rows(tx, of).task.id, commit=commit)
    if there is None or there[4] != "open":
        return False
    verdict(tx, int(there[0]), approved, findings, actor.name, actor)
    return True


def authors_of_field(tx: Transaction) -> dict[int, frozenset[str]]:
    """By task that is in review: who has worked on it."""
    found: dict[int, frozenset[str]] = {}
    for number, agent in tx.all(_AUTHORS_OF_FIELD, project=tx.project):
        found[number] = found.get(number, frozenset()) | {agent}
    return found


def authors(tx: Transaction, number: int) -> frozenset[str]:
    """The agents that have worked on a task."""
    return frozenset(row[0] for row in tx.all(_AUTHORS, project=tx.project, number=number))


def check_reviewer(tx: Transaction, review_task: Task, agent: str) -> None:
    """Refuse an agent that would judge its own work."""
    if review_task.review_of is None:
        raise refused(review_task.number, "it is no review")
    _not_an_author(tx, review_task.review_of, agent)


def review_of(row: Row) -> Review:
    return Review(
        task=row[0],
        of=row[1],
        commit=row[2],
        reviewer_type=row[3],
        status=row[4],
        reviewer=row[5],
        findings=_texts.decode(row[6]),
    )


def _review(tx: Transaction, task: Task) -> Review:
    row = tx.one(_ONE, task=task.id)
    if row is None:
        raise refused(task.number, "it is no review")
    return review_of(row)


def _not_an_author(tx: Transaction, of: int, agent: str) -> None:
    if agent in authors(tx, of):
        raise refused(of, f"{agent} has worked on it, and no agent reviews its own work")


def _finish(tx: Transaction, task: Task, commit: str, how: str, run: str) -> None:
    """Take a review task to its end, by the ways that the table has."""
    if task.status is TaskStatus.BLOCKED:
        task = change_status(tx, task.number, StatusChange(to=TaskStatus.OPEN, actor=_GENBA, reason=how, session=run))
    if task.status is TaskStatus.OPEN:
        begin = StatusChange(to=TaskStatus.IN_PROGRESS, actor=_GENBA, reason=how, session=run)
        task = change_status(tx, task.number, begin)
    if task.status is TaskStatus.IN_PROGRESS:
        judged = StatusChange(to=TaskStatus.REVIEW, actor=_GENBA, reason=how, commit=commit, session=run)
        task = change_status(tx, task.number, judged)
    if task.status is TaskStatus.REVIEW:
        end = StatusChange(to=TaskStatus.DONE, actor=_GENBA, reason=how, commit=commit, finalized=how, session=run)
        change_status(tx, task.number, end)
