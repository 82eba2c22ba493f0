"""Everything that the next action of a connection is decided on, seen at one moment; and what is left of it afterwards.

Law: one read transaction, few statements. Only the newest verdict on a claim of the same run counts.
"""

import msgspec

from genba.blackboard.database.sanitize import now, seen
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.fleet.returned_work import came_back, evidence_of_merge
from genba.blackboard.tasks.history import AGENT_CONNECTED, PART_BEGAN
from genba.blackboard.workflow import messages
from genba.blackboard.workflow.agent_connections import PART_OVER, TAKEN, known
from genba.blackboard.workflow.connection_values import StoredConnection, WorkflowLimits
from genba.blackboard.workflow.phases import reached
from genba.blackboard.workflow.subtask_views import SubtaskRow, family, goal_text, is_waiting_for_a_worker, with_story
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError
from genba.domain.fleet.records import WaitsFor
from genba.domain.goals.verification import VerdictStatus, Verification
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import TaskStatus
from genba.domain.workflow.actions import Evidence, ExitReason, Hierarchy, Phase, SessionResult, Snapshot, SubtaskView

_SESSION = Statement("""
SELECT s.id, s.status, s.waits_for, s.outcome, s.task_id,
  (SELECT count(*) FROM sessions o WHERE o.task_id = s.task_id AND o.run <> s.run AND o.status <> 'ended'), p.stopping
FROM sessions s JOIN tasks t ON t.id = s.task_id JOIN projects p ON p.id = t.project_id
WHERE s.run = :run AND t.project_id = :project
""")
_VERDICTS = Statement("""
SELECT v.task_id, v."commit", v.status, v.id, v.created_at FROM verifications v JOIN tasks t ON t.id = v.task_id
WHERE v.run = :run AND (t.id = :task OR t.parent_task_id = :task) ORDER BY v.id
""")
_VERDICT = Statement("SELECT data FROM verifications WHERE id = :id")
_HELD = Statement("""
WITH RECURSIVE line(id, parent, held) AS (
  SELECT id, parent_task_id, held FROM tasks WHERE id = :task
  UNION ALL
  SELECT t.id, t.parent_task_id, t.held FROM tasks t JOIN line ON t.id = line.parent)
SELECT count(*), sum(CASE WHEN held THEN 1 ELSE 0 END) FROM line
""")
_ROOM = Statement("""
SELECT (SELECT coalesce(sum(workers), 0) FROM executors WHERE project_id = :project AND status = 'live'),
  (SELECT count(*) FROM sessions s JOIN executors e ON e.id = s.executor AND e.project_id = :project
    WHERE s.status = 'running' AND e.status = 'live')
""")
_CREDENTIAL = Statement("""
SELECT used_at FROM credentials WHERE run = :run AND project_id = :project ORDER BY created_at DESC, id DESC LIMIT 1
""")
_NEWEST_CONNECTION = Statement("""
SELECT status, exit, message, last_action, calls FROM agent_connections
WHERE run = :run AND project_id = :project AND spawned ORDER BY created_at DESC, id DESC LIMIT 1
""")
_STORY = Statement(f"""
SELECT coalesce(max(CASE WHEN kind = '{PART_BEGAN}' THEN id END), 0),
  coalesce(max(CASE WHEN kind = '{AGENT_CONNECTED}' THEN id END), 0)
FROM events WHERE task_id = :task AND session = :run
""")  # noqa: S608  (constants of this package)
_ALIKE = Statement("", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

_verification = reader(Verification)
_OUTPUT = 4_000
_WAITING = {
    WaitsFor.ANSWER: ExitReason.BLOCKED,
    WaitsFor.REVIEW: ExitReason.COMPLETED,
    WaitsFor.MERGE: ExitReason.COMPLETED,
    WaitsFor.PULL_REQUEST: ExitReason.COMPLETED,
    WaitsFor.BUDGET: ExitReason.BUDGET,
    WaitsFor.RESUME: ExitReason.PAUSED,
    WaitsFor.PARTS: ExitReason.SUSPENDED,
}
"""What a session that waits means for an instance that is still there."""
_ENDED = {
    Outcome.COMPLETED: ExitReason.COMPLETED,
    Outcome.BLOCKED: ExitReason.BLOCKED,
    Outcome.BUDGET_EXHAUSTED: ExitReason.BUDGET,
}
_FOR_GOOD = {
    ExitReason.CANCELLED: "its task was cancelled",
    ExitReason.BUDGET: "its budget is spent",
    ExitReason.NO_TASK: "there is no task for it",
    ExitReason.NO_PROGRESS: "it asked again and again, and nothing changed",
    ExitReason.REVOKED: "its connection was closed",
    ExitReason.TAKEN: "another session works on its task",
}


def snapshot(
    tx: Transaction, connection_id: str, limits: WorkflowLimits, waited_seconds: float, repeats: int
) -> Snapshot:
    """What the blackboard shows to a connection now."""
    if tx.on_postgres:
        tx.do(_ALIKE)  # every statement sees the same moment
    there = known(tx, connection_id)
    if there is None:
        raise NotFoundError(
            f"there is no connection {connection_id!r}", unchanged="nothing was changed.", hint="authenticate again"
        )
    connection = there.connection
    bare = Snapshot(
        agent=connection.agent,
        hierarchy=connection.hierarchy,
        spawned=connection.spawned,
        waited_seconds=waited_seconds,
        suspend_seconds=limits.suspend_seconds,
        repeats=repeats,
        max_repeats=limits.max_repeats,
        max_reworks=limits.max_reworks,
        max_subtasks=limits.max_subtasks,
        ending=_connection_ending(there),
    )
    session = (
        tx.one(_SESSION, run=connection.run, project=tx.project)
        if connection.run and connection.task is not None
        else None
    )
    if session is None:
        return bare
    found = _seen(tx, bare, session, connection.run, limits)
    return (
        found
        if connection.closed == PART_OVER or bare.ending is None
        else msgspec.structs.replace(found, ending=bare.ending)
    )


def session_result(tx: Transaction, run: str) -> SessionResult:
    """How far a run has come, by what its newest instance did; one of an earlier part says nothing of this one."""
    if tx.on_postgres:
        tx.do(_ALIKE)
    session = tx.one(_SESSION, run=seen(run), project=tx.project)
    if session is None:
        raise NotFoundError(
            f"there is no session of the run {run!r}", unchanged="nothing was changed.", hint="genba task list"
        )
    phase, _ = reached(tx, session[4], session[0])
    verdicts = [row for row in tx.all(_VERDICTS, run=run, task=session[4]) if row[0] == session[4]]
    green = bool(verdicts) and verdicts[-1][2] == VerdictStatus.DONE
    credential = tx.one(_CREDENTIAL, run=run, project=tx.project)
    connection = tx.one(_NEWEST_CONNECTION, run=run, project=tx.project)
    began, sat_down = tx.one(_STORY, task=session[4], run=run) or (0, 0)
    came = sat_down > began
    used = credential is not None and credential[0] is not None
    connected = came and connection is not None and (connection[0] == "active" or used)
    reason, output = (str(connection[1]), str(connection[2])) if connection is not None and connected else ("", "")
    return SessionResult(
        connected=connected,
        completed=came and phase is Phase.COMPLETED and green,
        blocked=(output or "it cannot go on, and does not say why") if reason == ExitReason.BLOCKED else "",
        suspended=(output or "others carry out the parts of its task") if reason == ExitReason.SUSPENDED else "",
        paused="a person paused it" if reason == ExitReason.PAUSED else "",
        refused=output or _FOR_GOOD[ExitReason(reason)] if reason in _FOR_GOOD else "",
        last_action=str(connection[3]) if connection is not None else "",
        calls=int(connection[4]) if connection is not None else 0,
    )


def _seen(tx: Transaction, bare: Snapshot, session: Row, run: str, limits: WorkflowLimits) -> Snapshot:
    manages = bare.hierarchy is Hierarchy.MANAGER
    members = family(tx, session[4])
    task = next(one for one in members if one.id == session[4])
    parts = [one for one in members if one.id != task.id and one.in_plan is not manages]
    pieces = [one.view for one in parts]
    if manages:
        pieces = with_story(tx, task.id, pieces)
    phase, atomic = reached(tx, task.id, session[0])
    line = tx.one(_HELD, task=task.id) or (1, 0)
    verdicts = tx.all(_VERDICTS, run=run, task=task.id)
    own = [row for row in verdicts if row[0] == task.id]
    red, evidence = _evidence(tx, task, parts, verdicts, limits)
    since = red[4] if red is not None else ""
    entry = came_back(tx, task.id) if manages and not own else None
    if entry is not None:
        since, evidence = entry[6], evidence_of_merge(task.view.number, entry, limits.max_reworks)
    unread = tx.one(messages.COUNT, task=task.id)
    return msgspec.structs.replace(
        bare,
        task=task.view,
        phase=phase,
        atomic=atomic,
        pieces=tuple(pieces),
        evidence=evidence,
        answered=manages and bool(since) and _is_answered(parts, since),
        verified=own[-1][1] if own and own[-1][2] == VerdictStatus.DONE else "",
        ending=_ending(task.view, session, bool(line[1])) or bare.ending,
        worker_needed=manages and bare.spawned and _worker_needed(tx, pieces),
        reworks=sum(row[2] == VerdictStatus.REJECTED for row in verdicts),
        messages=int(unread[0]) if unread else 0,
        may_split=not manages or line[0] - 1 < limits.max_depth,
    )


def _connection_ending(there: StoredConnection) -> ExitReason | None:
    if there.connection.status != "active" or not there.agent_active or there.expires_at <= now():
        return ExitReason.TAKEN if there.connection.closed == TAKEN else ExitReason.REVOKED
    return ExitReason(there.exit) if there.exit else None


def _ending(task: SubtaskView, session: Row, held: bool) -> ExitReason | None:
    """Why an instance must stop whatever it does. A task that is blocked, in review or done speaks for itself."""
    _, status, waits_for, outcome, _, others, stopping = session
    if task.status is TaskStatus.CANCELLED:
        return ExitReason.CANCELLED
    if status == SessionStatus.ENDED:
        own = _ENDED.get(outcome, ExitReason.TAKEN)
        return ExitReason.TAKEN if others and own is not ExitReason.COMPLETED else own
    if status == SessionStatus.WAITING:
        return _WAITING.get(WaitsFor(waits_for), ExitReason.PAUSED)
    return ExitReason.PAUSED if held or stopping else None


def _evidence(
    tx: Transaction, task: SubtaskRow, parts: list[SubtaskRow], verdicts: list[Row], limits: WorkflowLimits
) -> tuple[Row | None, Evidence | None]:
    """The newest verdict on the step in progress, else on the task, when it was not a pass."""
    for about in (*(one for one in parts if one.in_plan and one.view.status is TaskStatus.IN_PROGRESS), task):
        of_it = [row for row in verdicts if row[0] == about.id]
        if not of_it or of_it[-1][2] == VerdictStatus.DONE:
            continue
        red = sum(row[2] != VerdictStatus.DONE for row in of_it)
        row = tx.one(_VERDICT, id=of_it[-1][3])
        found = evidence_of(about.view.number, row[0] if row else "")
        return of_it[-1], msgspec.structs.replace(
            found, commit=found.commit or of_it[-1][1], round=red, rounds=limits.max_reworks
        )
    return None, None


def evidence_of(number: int, data: str) -> Evidence:
    """Why a claim was not believed, out of the verdict that was written down."""
    try:
        found = _verification.decode(data)
    except msgspec.MsgspecError:  # another version of Genba wrote it in words of its own
        return Evidence(task=number, verdict="rejected", summary="the work was verified, and did not pass")
    return evidence(number, found)


def evidence(number: int, found: Verification) -> Evidence:
    failing = [result for result in found.results if result.rejects or result.broken]
    lines = tuple(f"{goal_text(one.goal.goal)}: {one.result.detail or one.result.status}" for one in failing)
    missing = tuple(f"missing: {what}" for what in found.missing)
    summary = "; ".join((*missing, *found.findings)) or (lines[0] if lines else found.verdict)
    return Evidence(
        task=number,
        commit=found.subject.commit,
        verdict=str(found.reason or found.status),
        summary=summary,
        failing=(*missing, *lines),
        output=failing[0].result.output[-_OUTPUT:] if failing else "",
    )


def _is_answered(parts: list[SubtaskRow], since: str) -> bool:
    return any(one.view.status is TaskStatus.DONE and one.created_at > since for one in parts)


def _worker_needed(tx: Transaction, pieces: list[SubtaskView]) -> bool:
    """Whether a part could begin at once if this instance gave its worker free."""
    done = frozenset(one.number for one in pieces if one.status is TaskStatus.DONE)
    if not any(is_waiting_for_a_worker(one, done) for one in pieces):
        return False
    row = tx.one(_ROOM, project=tx.project)
    return row is not None and 0 < row[0] <= row[1]
