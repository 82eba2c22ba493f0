"""Verdicts with their evidence: artifacts, goals and results, as they were found on one commit."""

import msgspec

from genba.blackboard.database.sanitize import as_json, now, seen
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.tasks.goals import write_goal
from genba.blackboard.tasks.history import VERIFIED, NewEvent, tell
from genba.blackboard.tasks.task_rows import TaskWithRows, hold, id_of
from genba.domain.decoding import reader
from genba.domain.errors import StateConflictError
from genba.domain.goals.verification import Verification
from genba.domain.tasks.task import Actor, ActorKind

_INSERT = Statement("""
INSERT INTO verifications (task_id, session_id, run, "commit", tree, base, branch, status, reason, data, created_at)
VALUES (:task, :session, :run, :commit, :tree, :base, :branch, :status, :reason, :data, :at)
RETURNING id
""")
_ARTIFACT = Statement("""
INSERT INTO artifacts (task_id, session_id, verification_id, type, data, created_at)
VALUES (:task, :session, :verification, :type, :data, :at)
""")
_RESULT = Statement("""
INSERT INTO goal_results (goal_id, verification_id, session_id, status, passed, details, log, seconds, verified_at)
VALUES (:goal, :verification, :session, :status, :passed, :details, :log, :seconds, :at)
""")
_SESSION = Statement("SELECT id, task_id FROM sessions WHERE run = :run")
_HEARTBEAT = Statement("UPDATE sessions SET heartbeat_at = :at WHERE id = :id AND status = 'running'")
_LAST = Statement("SELECT data FROM verifications WHERE task_id = :task ORDER BY id DESC LIMIT 1")
_OF_COMMIT = Statement("""
SELECT data FROM verifications WHERE task_id = :task AND "commit" = :commit ORDER BY id DESC LIMIT 1
""")

_verification = reader(Verification)


def record_verification(tx: Transaction, number: int, run: str, verification: Verification) -> None:
    """Write a verdict down, whole. A run without a session may verify too; its evidence is the same."""
    held, at = hold(tx, number), now()
    task = held.task
    session = _session(tx, held, run, at)
    subject = verification.subject
    row = tx.one(
        _INSERT,
        task=task.id,
        session=session,
        run=seen(run),
        commit=seen(subject.commit),
        tree=seen(verification.tree),
        base=seen(subject.base),
        branch=seen(subject.branch),
        status=str(verification.status),
        reason=str(verification.reason) if verification.reason else None,
        data=as_json(verification),
        at=at,
    )
    written = int(row[0]) if row else 0
    _write_evidence(tx, task.id, session, written, verification, at)
    values = {"status": verification.status, "reason": verification.reason, "commit": seen(subject.commit)}
    actor = Actor(ActorKind.ORCHESTRATOR, seen(run).strip() or "genba")
    tell(tx, actor, at, [NewEvent(task=task.id, version=task.version, kind=VERIFIED, data=values)], seen(run))


def last_verification(tx: Transaction, number: int) -> Verification | None:
    """The newest verdict; one that another version of Genba wrote in words of its own is no verdict here."""
    return _read(tx.one(_LAST, task=id_of(tx, number)))


def verification_of(tx: Transaction, task: int, commit: str) -> Verification | None:
    """The newest verdict on one commit of a task."""
    return _read(tx.one(_OF_COMMIT, task=task, commit=commit))


def _read(row: Row | None) -> Verification | None:
    try:
        return _verification.decode(row[0]) if row else None
    except msgspec.ValidationError:
        return None


def _session(tx: Transaction, held: TaskWithRows, run: str, at: str) -> int | None:
    """The session of the run: it works on this task, or on the one in whose plan this is a step."""
    row = tx.one(_SESSION, run=seen(run)) if run else None
    if row is None:
        return None
    task = held.task
    if row[1] != task.id and not (task.in_plan and row[1] == held.parent_id):
        raise StateConflictError(
            f"run {run} works on another task than #{task.number}",
            unchanged="nothing was changed.",
            hint=f"genba task show {task.number}",
        )
    tx.do(_HEARTBEAT, id=row[0], at=at)
    return int(row[0])


def _write_evidence(
    tx: Transaction, task: int, session: int | None, written: int, verification: Verification, at: str
) -> None:
    shared = {"session": session, "verification": written, "at": at}
    tx.do_each(
        _ARTIFACT,
        [
            {"task": task, "type": type(found).__struct_config__.tag, "data": as_json(found), **shared}
            for found in verification.artifacts
        ],
    )
    results = []
    for goal in verification.results:
        results.append(
            {
                "goal": write_goal(tx, task, goal.goal),
                "status": str(goal.result.status),
                "passed": goal.result.passed,
                "details": seen(goal.result.detail),
                "log": seen(goal.log),
                "seconds": goal.result.seconds,
                **shared,
            }
        )
    tx.do_each(_RESULT, results)
