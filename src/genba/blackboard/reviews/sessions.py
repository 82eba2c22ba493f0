"""Sessions of `genba run` that review a commit.

Law: a review task has at most one session that has not ended, of `genba run` or of the fleet. It is claimed before
anything is made for it, so that of two who begin it one wins.
"""

from genba.blackboard.database.sanitize import bounded, now, seen, storable
from genba.blackboard.database.store import Row, Statement, Transaction
from genba.blackboard.fleet.sessions import end_session
from genba.blackboard.fleet.spending import spend_rest
from genba.blackboard.reviews.reviews import check_reviewer
from genba.blackboard.tasks.status_gateway import change_status
from genba.blackboard.tasks.task_records import agent_id
from genba.blackboard.tasks.task_rows import hold
from genba.blackboard.tasks.task_tree import hold_line
from genba.blackboard.tasks.transition_rules import refused
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import Died, SessionEnd, SessionStart
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskStatus

_OPEN = Statement("""
SELECT s.run, a.name, s.branch, s.base, s.workdir, s.host, s.process, s.heartbeat_at, s.executor
FROM sessions s JOIN agents a ON a.id = s.agent_id WHERE s.task_id = :task AND s.status <> 'ended' AND s.run <> :run
""")
_IS_THERE = Statement("SELECT 1 FROM sessions WHERE run = :run AND task_id = :task")
_LAST_ATTEMPT = Statement("SELECT coalesce(max(attempt), 0) FROM sessions WHERE task_id = :task AND purpose = 'review'")
_BURY = Statement("""
UPDATE sessions SET status = 'ended', outcome = :outcome, reason = 'its process died', ended_at = :at WHERE run = :run
""")
_INSERT = Statement("""
INSERT INTO sessions (run, task_id, agent_id, attempt, purpose, branch, base, host, process, started_at, heartbeat_at)
VALUES (:run, :task, :agent, :attempt, 'review', :branch, :base, :host, :process, :at, :at)
""")
_GO_ON = Statement("""
UPDATE sessions SET status = 'running', outcome = NULL, reason = '', ended_at = NULL, branch = :branch, base = :base,
  host = :host, process = :process, heartbeat_at = :at WHERE run = :run
""")
_ADVISED = Statement("""
UPDATE sessions SET status = 'ended', forgiven = :yes, outcome = :outcome, reason = :reason, iterations = :iterations,
  tokens = :tokens, cost = :cost, ended_at = :at WHERE run = :run
""")


def begin_review(tx: Transaction, number: int, start: SessionStart, died: Died) -> None:
    """Claim a review task for a session of `genba run`. Safe to repeat.

    Raises StateConflictError while another session performs the review, and once its verdict is given.
    """
    storable(start.run, "the run", empty=False)
    hold_line(tx, number, with_itself=False)
    task = hold(tx, number).task
    check_reviewer(tx, task, start.agent)
    is_there = tx.one(_IS_THERE, run=start.run, task=task.id) is not None
    if task.status is TaskStatus.DONE and is_there:
        return  # it died after its verdict, and has its worktree to remove
    at = now()
    for row in tx.all(_OPEN, task=task.id, run=start.run):
        other, executor = _started(row), row[-1]
        if executor or not died(other):
            hint = f"genba logs {other.run}   or, to continue it: genba work" if executor else f"genba logs {other.run}"
            raise refused(number, f"{other.run} performs this review", hint)
        tx.do(_BURY, run=other.run, outcome=str(Outcome.FAILED), at=at)
    _claim(tx, task, start)
    _write(tx, task, start, is_there, at)


def end_review(tx: Transaction, number: int, end: SessionEnd) -> None:
    """Record how a session that reviewed ended. Without a verdict its task is open again. Safe to repeat."""
    hold_line(tx, number, with_itself=False)
    task = hold(tx, number).task
    end_session(tx, end)
    if task.status is TaskStatus.IN_PROGRESS and not tx.all(_OPEN, task=task.id, run=end.run):
        actor = Actor(ActorKind.ORCHESTRATOR, end.run)
        reason = end.reason or "its reviewer gave no verdict"
        change_status(tx, number, StatusChange(to=TaskStatus.OPEN, actor=actor, reason=reason, session=end.run))


def record_advice(tx: Transaction, number: int, start: SessionStart, end: SessionEnd) -> None:
    """Record a session that advised on a task where a person decides. It claims nothing, and counts as no attempt."""
    task = hold(tx, number).task
    at = now()
    _write(tx, task, start, tx.one(_IS_THERE, run=start.run, task=task.id) is not None, at)
    tx.do(
        _ADVISED,
        run=end.run,
        yes=True,
        outcome=str(end.outcome),
        reason=bounded(end.reason),
        iterations=end.iterations,
        tokens=end.tokens,
        cost=end.cost_usd,
        at=at,
    )
    spend_rest(tx, end.run)


def _started(row: Row) -> SessionStart:
    run, agent, branch, base, workdir, host, process, heartbeat_at, _ = row
    return SessionStart(
        run=run,
        agent=agent,
        branch=branch,
        base=base,
        workdir=workdir,
        host=host,
        process=process,
        heartbeat_at=heartbeat_at,
    )


def _claim(tx: Transaction, task: Task, start: SessionStart) -> None:
    if task.status is TaskStatus.OPEN:
        actor = Actor(ActorKind.WORKER, start.agent)
        reason = f"reviewed by {start.agent}"
        change = StatusChange(to=TaskStatus.IN_PROGRESS, actor=actor, reason=reason, session=start.run)
        change_status(tx, task.number, change)
    elif task.status is not TaskStatus.IN_PROGRESS:
        raise refused(task.number, f"its review cannot begin: it is {task.status}")


def _write(tx: Transaction, task: Task, start: SessionStart, is_there: bool, at: str) -> None:
    last = tx.one(_LAST_ATTEMPT, task=task.id)
    place = {"branch": seen(start.branch), "base": seen(start.base), "host": seen(start.host)}
    if is_there:
        tx.do(_GO_ON, run=start.run, process=start.process, at=at, **place)
        return
    tx.do(
        _INSERT,
        run=start.run,
        task=task.id,
        agent=agent_id(tx, start.agent, at),
        attempt=1 + (int(last[0]) if last else 0),
        process=start.process,
        at=at,
        **place,
    )
