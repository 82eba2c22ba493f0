"""What only a person can decide.

Law: a task has one open escalation of a kind. Its decision is written together with what it does to the task; what the
fleet makes of it is the orchestrator's.
"""

from typing import Any

import msgspec

from genba.blackboard.database.paging import WHOLE, Page
from genba.blackboard.database.sanitize import as_json, bounded, bounded_through, named, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.fleet import controls, plans
from genba.blackboard.reviews import reviews
from genba.blackboard.tasks.history import DECIDED, ESCALATED, NewEvent, tell
from genba.blackboard.tasks.status_gateway import approve, change_status
from genba.blackboard.tasks.task_rows import GOING, hold, task_with_rows
from genba.blackboard.tasks.task_tree import hold_line
from genba.blackboard.tasks.transition_rules import refused
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import Actor, ActorKind, Blocker, StatusChange, Task, TaskStatus

COLUMNS = """
SELECT e.id, t.number, e.kind, e.question, e.run, e."commit", e.evidence, e.status, e.answer, e.answered_by,
  e.created_at, e.answered_at
FROM escalations e JOIN tasks t ON t.id = e.task_id
"""
"""What `escalation_of` reads."""

_PAGE = "AND e.id > :after ORDER BY e.id LIMIT :limit"
_OPEN = Statement(COLUMNS + f"WHERE e.project_id = :project AND e.status = 'open' {_PAGE}")
_ALL = Statement(COLUMNS + f"WHERE e.project_id = :project {_PAGE}")
_IN_VIEW = f"""
WHERE t.project_id = :project AND t.{GOING} AND (e.status = 'open'
  OR (e.status <> 'withdrawn' AND NOT EXISTS (SELECT 1 FROM escalations n WHERE n.task_id = e.task_id
    AND n.kind = e.kind AND n.status NOT IN ('open', 'withdrawn') AND n.id > e.id)))
ORDER BY e.id
"""  # noqa: S608  (words of this house)
_OF_FIELD = Statement(COLUMNS + _IN_VIEW)
_OF_TASK = Statement(COLUMNS + "WHERE t.id = :task ORDER BY e.id DESC")
_OPEN_OF_KIND = Statement(COLUMNS + "WHERE t.id = :task AND e.kind = :kind AND e.status = 'open'")
_ASKED_BEFORE = Statement(
    COLUMNS
    + """
WHERE t.id = :task AND e.kind = 'question' AND e.run = :run AND e.part = :part AND e.question = :question
  AND e.status <> 'withdrawn'
ORDER BY e.id DESC LIMIT 1
"""
)
_INSERT = Statement("""
INSERT INTO escalations (project_id, task_id, kind, question, run, part, "commit", evidence, created_at)
VALUES (:project, :task, :kind, :question, :run, :part, :commit, :evidence, :at)
""")
_PART = Statement("SELECT part FROM sessions WHERE run = :run AND task_id = :task")
_DECIDE = Statement("""
UPDATE escalations SET status = :status, answer = :answer, answered_by = :by, answered_at = :at
WHERE id = :id AND status = 'open'
""")

_evidence = reader(dict[str, Any])

_JUDGEMENTS = (EscalationKind.REVIEW, EscalationKind.PLAN)
"""What is approved or rejected, and not answered."""


def escalate(tx: Transaction, escalation: Escalation, blocker: Blocker | None) -> Escalation:
    """Ask a person. With a blocker the task waits, blocked, for what they say."""
    number = escalation.task
    question = bounded(escalation.question.strip()) or "it does not say what it needs"
    hold_line(tx, number, with_itself=False)
    task = hold(tx, number).task
    part = tx.one(_PART, run=seen(escalation.run), task=task.id)
    key = {"run": seen(escalation.run), "part": int(part[0]) if part else 0, "question": question}
    _withdraw_older(tx, task, escalation)
    there = tx.one(_OPEN_OF_KIND, task=task.id, kind=str(escalation.kind))
    if there is None and part is not None and escalation.kind is EscalationKind.QUESTION:
        there = tx.one(
            _ASKED_BEFORE, task=task.id, **key
        )  # a step that is repeated after the answer asks nothing again
    if there is not None:
        return escalation_of(there)
    if task.status.ended:
        raise refused(number, f"it is {task.status}: there is nothing left to decide")
    actor, at = Actor(ActorKind.ORCHESTRATOR, "genba"), now()
    tx.do(
        _INSERT,
        project=tx.project,
        task=task.id,
        kind=str(escalation.kind),
        commit=seen(escalation.commit),
        evidence=as_json(bounded_through(msgspec.to_builtins(escalation.evidence))),
        at=at,
        **key,
    )
    values = {"kind": escalation.kind, "question": question}
    line = NewEvent(task=task.id, version=task.version, kind=ESCALATED, data=values)
    tell(tx, actor, at, [line], str(key["run"]))
    if blocker is not None:
        reason = bounded(blocker.reason.strip()) or question
        _block(tx, task, msgspec.structs.replace(blocker, reason=reason), actor, escalation.run)
    return open_one(tx, task, escalation.kind)


def answer(tx: Transaction, number: int, text: str, actor: Actor, only: int | None = None) -> Escalation:
    """Answer what waits for an answer; the task can go on. `only`: the one that was read, and no newer one."""
    storable(text, "the answer", empty=False)
    task, found = _to_decide(tx, number, actor, only)
    if found.kind in _JUDGEMENTS:
        raise StateConflictError(
            f"task #{found.task} waits for a judgement of its {found.kind}, not for an answer",
            unchanged="nothing was changed.",
            hint=f"genba approve {found.task}\ngenba reject {found.task} --reason TEXT",
        )
    _decide(tx, task, found, "answered", text, actor)
    _go_on(tx, task, found, actor, "it was answered")
    return _again(tx, task, found)


def decide(
    tx: Transaction, number: int, approved: bool, reason: str, actor: Actor, only: int | None = None
) -> Escalation:
    """Approve or reject what waits for a person. `only`: the one that was read, and no newer one."""
    storable(reason, "the reason")
    task, found = _to_decide(tx, number, actor, only)
    if not approved and not reason.strip():
        raise UsageError(f"task #{task.number}: a rejection needs a reason", unchanged="nothing was changed.")
    _decide(tx, task, found, "approved" if approved else "rejected", reason, actor)
    match found.kind:
        case EscalationKind.REVIEW:
            _judge_commit(tx, task, found, approved, reason, actor)
        case EscalationKind.PLAN:
            if not approved:
                plans.reject_proposed(tx, task, reason, actor)
            _unblock(tx, task, actor, "its plan was judged")
        case _ if approved:
            _go_on(tx, task, found, actor, reason or "it was approved")
    return _again(tx, task, found)


def settle_review(tx: Transaction, number: int, commit: str, actor: Actor) -> None:
    """A person approved a commit without its escalation: decide that escalation too."""
    task = task_with_rows(tx, number).task
    row = tx.one(_OPEN_OF_KIND, task=task.id, kind=str(EscalationKind.REVIEW))
    if row is not None and escalation_of(row).commit in ("", commit):
        _decide(tx, task, escalation_of(row), "approved", "", actor)


def escalations(tx: Transaction, open_only: bool, page: Page = WHOLE) -> list[Escalation]:
    found = tx.all(_OPEN if open_only else _ALL, project=tx.project, after=page.after, limit=page.limit)
    return [escalation_of(row) for row in found]


def escalation(tx: Transaction, number: int) -> Escalation:
    """What a task waits for a person with: the newest that is open, else the newest."""
    task = task_with_rows(tx, number).task
    found = [escalation_of(row) for row in tx.all(_OF_TASK, task=task.id)]
    if task.review_of is not None and all(one.status != "open" for one in found):
        return escalation(tx, task.review_of)  # the number of a review stands for the task it reviews
    if not found:
        raise _nothing_waits(number)
    return next((one for one in found if one.status == "open"), found[0])


def of_field(tx: Transaction) -> tuple[Escalation, ...]:
    return tuple(escalation_of(row) for row in tx.all(_OF_FIELD, project=tx.project))


def open_one(tx: Transaction, task: Task, kind: EscalationKind) -> Escalation:
    row = tx.one(_OPEN_OF_KIND, task=task.id, kind=str(kind))
    if row is None:
        raise _nothing_waits(task.number)
    return escalation_of(row)


def escalation_of(row: Row) -> Escalation:
    return Escalation(
        id=row[0],
        task=row[1],
        kind=EscalationKind(row[2]),
        question=row[3],
        run=row[4],
        commit=row[5],
        evidence=_evidence.decode(row[6]),
        status=row[7],
        answer=row[8],
        answered_by=row[9],
        created_at=row[10],
        answered_at=row[11] or "",
    )


def _to_decide(tx: Transaction, number: int, actor: Actor, only: int | None) -> tuple[Task, Escalation]:
    """The task, held, and what is open; a refusal tells what was decided before, or what is asked by now."""
    named(actor)
    number = escalation(tx, number).task
    hold_line(tx, number, with_itself=False)
    task = hold(tx, number).task
    found = escalation(tx, number)
    if found.status == "open":
        if only is not None and only != found.id:
            raise asked_again(found)
        return task, found
    by = f" by {found.answered_by}" if found.answered_by else ""
    raise StateConflictError(
        f"nothing of task #{number} waits for a person: the last was {found.status}{by}",
        unchanged="nothing was changed.",
        hint="genba decisions",
    )


def asked_again(found: Escalation) -> StateConflictError:
    """The person has read another question than the one that is decided next."""
    return StateConflictError(
        f"task #{found.task} waits for something else by now: {found.kind}",
        unchanged="nothing was changed.",
        hint=f"genba decisions show {found.task}",
    )


def _decide(tx: Transaction, task: Task, found: Escalation, status: str, answer: str, actor: Actor) -> None:
    at = now()
    tx.do(_DECIDE, id=found.id, status=status, answer=answer, by=actor.name, at=at)
    values = {"kind": found.kind, "status": status, "answer": answer}
    tell(tx, actor, at, [NewEvent(task=task.id, version=task.version, kind=DECIDED, data=values)], found.run)


def _judge_commit(tx: Transaction, task: Task, found: Escalation, approved: bool, reason: str, actor: Actor) -> None:
    """A person's judgement of a commit, where there is a review task for it and where there is none."""
    commit = found.commit
    if not commit:
        raise refused(task.number, "its escalation names no commit")
    if reviews.settle_by_hand(tx, task.number, commit, approved, (reason,), actor):
        return
    if approved:
        approve(tx, task.number, commit, actor)
    else:
        reviews.send_back(tx, task.number, f"{actor.name} requests changes")


def _block(tx: Transaction, task: Task, blocker: Blocker, actor: Actor, run: str) -> None:
    if task.status is TaskStatus.BLOCKED:
        return
    if task.status is TaskStatus.REVIEW:  # its work came back too often: the author continues after a decision
        back = StatusChange(to=TaskStatus.IN_PROGRESS, actor=actor, reason=blocker.reason, session=run)
        change_status(tx, task.number, back)
    change = StatusChange(to=TaskStatus.BLOCKED, actor=actor, reason=blocker.reason, blocker=blocker, session=run)
    change_status(tx, task.number, change)


def _unblock(tx: Transaction, task: Task, actor: Actor, reason: str) -> None:
    if task.status is TaskStatus.BLOCKED:
        change_status(tx, task.number, StatusChange(to=TaskStatus.OPEN, actor=actor, reason=reason))


def _go_on(tx: Transaction, task: Task, found: Escalation, actor: Actor, reason: str) -> None:
    if found.kind is EscalationKind.STOPPED:
        controls.hold(tx, task.number, False, actor)
    _unblock(tx, task, actor, reason)


def _withdraw_older(tx: Transaction, task: Task, escalation: Escalation) -> None:
    """A question about a commit that is no longer the one to judge is no question any more."""
    row = tx.one(_OPEN_OF_KIND, task=task.id, kind=str(EscalationKind.REVIEW))
    if escalation.kind is EscalationKind.REVIEW and row is not None and row[5] != escalation.commit:
        tx.do(_DECIDE, id=row[0], status="withdrawn", answer="there is a newer commit", by="genba", at=now())


def _again(tx: Transaction, task: Task, found: Escalation) -> Escalation:
    return next(one for row in tx.all(_OF_TASK, task=task.id) if (one := escalation_of(row)).id == found.id)


def _nothing_waits(number: int) -> NotFoundError:
    return NotFoundError(
        f"nothing of task #{number} waits for a person", unchanged="nothing was changed.", hint="genba decisions"
    )
