"""Sessions: who works on a task, for which time, and how it ended.

A task has at most one running session. Its process holds the lock of the task's branch, so an older session
that still says it runs has lost its process.
"""

from typing import Any

from genba.blackboard.database.sanitize import bounded, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.fleet.spending import spend_rest
from genba.blackboard.reviews.requests import changes_requested
from genba.blackboard.tasks.history import TAKEN_OVER, NewEvent, tell
from genba.blackboard.tasks.status_gateway import change_status
from genba.blackboard.tasks.task_records import agent_id
from genba.blackboard.tasks.task_rows import hold, task_with_rows
from genba.blackboard.tasks.task_tree import hold_line
from genba.blackboard.tasks.transition_rules import refuse_step, refused, reviewed_commit
from genba.blackboard.tasks.verifications import last_verification
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import Purpose
from genba.domain.goals.verification import VerdictStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import Briefing, Died, SessionEnd, SessionStart, SessionStatus
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskStatus

_OF_RUN = Statement("SELECT id, task_id, attempt, status, purpose, workflow FROM sessions WHERE run = :run")
_NEWEST = Statement("""
SELECT id, run, attempt, status FROM sessions WHERE task_id = :task AND purpose = :purpose ORDER BY attempt DESC LIMIT 1
""")
_BURY = Statement("""
UPDATE sessions SET status = 'ended', outcome = :outcome, reason = 'its process died', ended_at = :at
WHERE task_id = :task AND status = 'running' AND run <> :run
""")
_LEAVE = Statement("""
UPDATE sessions SET status = 'ended', waits_for = '', outcome = :outcome, reason = 'another run took over',
  ended_at = :at WHERE task_id = :task AND status = 'waiting' AND run <> :run
""")
_SETTLE_IN = Statement("""
UPDATE sessions SET branch = :branch, base = :base, workdir = :workdir, host = :host, process = :process,
  heartbeat_at = :at WHERE run = :run
""")
_INSERT = Statement("""
INSERT INTO sessions (run, task_id, agent_id, attempt, branch, base, workdir, host, process, started_at, heartbeat_at)
VALUES (:run, :task, :agent, :attempt, :branch, :base, :workdir, :host, :process, :at, :at)
""")
_REVIVE = Statement("""
UPDATE sessions SET agent_id = :agent, attempt = :attempt, status = 'running', waits_for = '', branch = :branch,
  base = :base, workdir = :workdir, host = :host, process = :process, outcome = NULL, reason = '', ended_at = NULL,
  heartbeat_at = :at WHERE run = :run AND task_id = :task
""")
_END = Statement("""
UPDATE sessions SET status = 'ended', outcome = :outcome, reason = :reason, iterations = :iterations,
  tokens = :tokens, cost = :cost, verified = :verified, base_branch = :lands_on, ended_at = :at
  WHERE run = :run AND status = 'running'
  AND workflow = ''
""")
_RUNNING = Statement("""
SELECT s.run, a.name, s.branch, s.base, s.workdir, s.host, s.process
FROM sessions s JOIN agents a ON a.id = s.agent_id WHERE s.task_id = :task AND s.status = 'running' AND s.run <> :run
""")
_PLACE = Statement("""
SELECT s.run, a.name, s.branch, s.base, s.workdir, s.host, s.process
FROM sessions s JOIN agents a ON a.id = s.agent_id WHERE s.task_id = :task AND s.purpose IN ('work', 'integrate')
ORDER BY s.attempt DESC, s.id DESC LIMIT 1
""")
_STARTED = Statement("""
SELECT s.run, a.name, s.branch, s.base, s.workdir, s.host, s.process
FROM sessions s JOIN agents a ON a.id = s.agent_id WHERE s.run = :run
""")
_VERIFIED = Statement("""
SELECT "commit", status FROM verifications WHERE task_id = :task AND run = :run ORDER BY id DESC LIMIT 1
""")
_OF_BRANCH = Statement("""
SELECT DISTINCT t.number FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE s.branch = :branch AND s.purpose IN ('work', 'integrate') AND t.project_id = :project
  AND t.status NOT IN ('done', 'cancelled') ORDER BY t.number
""")
_PLACES = Statement("""
SELECT s.run, s.branch FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE t.number = :number AND t.project_id = :project AND s.purpose IN ('work', 'integrate') ORDER BY s.id
""")
_IS_OURS = Statement("""
SELECT 1 FROM sessions s JOIN tasks t ON t.id = s.task_id WHERE s.run = :run AND t.project_id = :project
""")

_NEXT = {
    TaskStatus.BACKLOG: "it is in the backlog, and is not open yet",
    TaskStatus.REVIEW: "it is in review: its work is there, and waits to be judged",
    TaskStatus.DONE: "it is done",
    TaskStatus.CANCELLED: "it was cancelled",
}


def tasks_of_branch(tx: Transaction, branch: str) -> tuple[int, ...]:
    """The tasks that are not ended and whose sessions worked on a branch."""
    return tuple(row[0] for row in tx.all(_OF_BRANCH, branch=branch, project=tx.project))


def places_of(tx: Transaction, number: int) -> tuple[tuple[str, str], ...]:
    """The sessions that worked on a task, each with its branch."""
    return tuple((row[0], row[1]) for row in tx.all(_PLACES, number=number, project=tx.project))


def begin_session(tx: Transaction, number: int, start: SessionStart, died: Died | None = None) -> Briefing:
    """Claim a task for a run, or go on with a claim whose process died. Repeating it changes nothing."""
    storable(start.run, "the run", empty=False)
    storable(start.agent, "the agent", empty=False)
    hold_line(tx, number, with_itself=False)
    task = hold(tx, number).task
    mine = tx.one(_OF_RUN, run=start.run)
    if mine is not None and mine[1] != task.id:
        raise StateConflictError(
            f"run {start.run} works on another task already",
            unchanged="nothing was changed.",
            hint=f"genba task show {number}",
        )
    if mine is not None and mine[5]:
        return _in_fleet(tx, task, start, mine)
    newest = tx.one(_NEWEST, task=task.id, purpose=str(Purpose.WORK))
    going_on = mine is not None and newest is not None and mine[0] == newest[0]
    if task.status is TaskStatus.IN_PROGRESS and going_on and mine is not None and mine[3] == SessionStatus.RUNNING:
        return _briefing(tx, task, start.run, int(mine[2]))
    if task.status is TaskStatus.REVIEW and going_on and mine is not None:
        _write(tx, task, start, int(mine[2]), is_there=True)  # its work is verified; the run comes back to finalize it
        return _briefing(tx, task, start.run, int(mine[2]))
    refuse_step(task, "and the agent of that task carries it out")
    _no_session_runs(tx, task, start.run, died)
    last_attempt = int(newest[2]) if newest else 0
    attempt = last_attempt if going_on else last_attempt + 1
    task = _claim(tx, task, start, newest, attempt)
    _write(tx, task, start, attempt, is_there=mine is not None)
    return _briefing(tx, task, start.run, attempt)


def _in_fleet(tx: Transaction, task: Task, start: SessionStart, mine: Row) -> Briefing:
    """A part of a session of the fleet tells where it works. The orchestrator has claimed the task for it."""
    if mine[3] != SessionStatus.RUNNING:
        raise refused(task.number, f"{start.run} is a session of the fleet, and it is {mine[3]}", "genba work")
    settle_in(tx, start)
    return _briefing(tx, task, start.run, int(mine[2]))


def settle_in(tx: Transaction, start: SessionStart) -> None:
    """Write down where a session works."""
    tx.do(_SETTLE_IN, run=start.run, at=now(), **_place(start))


def _place(start: SessionStart) -> dict[str, Any]:
    return {
        "branch": seen(start.branch),
        "base": seen(start.base),
        "workdir": seen(start.workdir),
        "host": seen(start.host),
        "process": start.process,
    }


def _no_session_runs(tx: Transaction, task: Task, run: str, died: Died | None) -> None:
    """Refuse while another run still works on the task; whether it does, only the caller can see."""
    for row in tx.all(_RUNNING, task=task.id, run=run) if died is not None else []:
        other = _started(row)
        if died is not None and not died(other):
            where = f" on {other.host}" if other.host else ""
            hint = f"genba logs {other.run}\nif that machine is gone: genba run --resume {other.run}"
            raise refused(task.number, f"{other.run} works on it{where}", hint)


def newest_session(tx: Transaction, number: int) -> SessionStart:
    """How the newest session of a task began; all of it empty when there was none."""
    row = tx.one(_PLACE, task=task_with_rows(tx, number).task.id)
    return _started(row or ("", "", "", "", "", "", 0))


def start_of(tx: Transaction, run: str) -> SessionStart:
    """How a session began; all of it empty when there is none."""
    return _started(tx.one(_STARTED, run=seen(run)) or ("", "", "", "", "", "", 0))


def _started(row: Row) -> SessionStart:
    run, agent, branch, base, workdir, host, process = row
    return SessionStart(run=run, agent=agent, branch=branch, base=base, workdir=workdir, host=host, process=process)


def end_session(tx: Transaction, end: SessionEnd) -> None:
    """Write down how a session ended. Only the first end counts. One of the fleet ends with its part."""
    if "\0" in end.run or tx.one(_IS_OURS, run=seen(end.run), project=tx.project) is None:
        raise NotFoundError(
            f"there is no session of the run {end.run!r}", unchanged="nothing was changed.", hint="genba task list"
        )
    tx.do(
        _END,
        run=end.run,
        outcome=str(end.outcome),
        reason=bounded(end.reason),
        iterations=end.iterations,
        tokens=end.tokens,
        cost=end.cost_usd,
        verified=seen(end.verified),
        lands_on=seen(end.lands_on),
        at=now(),
    )
    spend_rest(tx, end.run)


def _claim(tx: Transaction, task: Task, start: SessionStart, newest: Row | None, attempt: int) -> Task:
    actor = Actor(ActorKind.WORKER, start.agent)
    match task.status:
        case TaskStatus.OPEN:
            change = StatusChange(
                to=TaskStatus.IN_PROGRESS, actor=actor, reason=f"attempt {attempt}", session=start.run
            )
            return change_status(tx, task.number, change)
        case TaskStatus.IN_PROGRESS:
            values = {"run": start.run, "from": newest[1] if newest else "", "attempt": attempt}
            line = NewEvent(task=task.id, version=task.version, kind=TAKEN_OVER, data=values)
            tell(tx, actor, now(), [line], start.run)
            return task
        case TaskStatus.BLOCKED:
            reason = task.blocker.reason if task.blocker else ""
            raise refused(task.number, f"it cannot start: it is blocked: {reason}")
        case _:
            raise refused(task.number, f"it cannot start: {_NEXT[task.status]}")


def _write(tx: Transaction, task: Task, start: SessionStart, attempt: int, is_there: bool) -> None:
    at = now()
    tx.do(_BURY, task=task.id, run=start.run, outcome=str(Outcome.FAILED), at=at)
    tx.do(_LEAVE, task=task.id, run=start.run, outcome=str(Outcome.ABORTED), at=at)
    tx.do(
        _REVIVE if is_there else _INSERT,
        run=start.run,
        task=task.id,
        agent=agent_id(tx, start.agent, at),
        attempt=attempt,
        at=at,
        **_place(start),
    )


def _briefing(tx: Transaction, task: Task, run: str, attempt: int) -> Briefing:
    last, own = last_verification(tx, task.number), tx.one(_VERIFIED, task=task.id, run=run)
    sent_back = last is not None and last.status is VerdictStatus.REJECTED
    verified = str(own[0]) if own is not None and own[1] == VerdictStatus.DONE else ""
    if task.status is TaskStatus.REVIEW:  # what is in review was verified; a merge of it may have been looked at since
        verified = reviewed_commit(tx, task) or verified
    return Briefing(
        task=task,
        attempt=attempt,
        verified=verified,
        last=last if sent_back else None,
        changes=changes_requested(tx, task),
    )
