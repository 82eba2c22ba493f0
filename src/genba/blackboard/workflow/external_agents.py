"""Sessions of agents that came by themselves: those that left without a word, and managers that hand over."""

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.fleet import session_segments
from genba.blackboard.fleet.sessions import settle_in
from genba.blackboard.tasks.status_gateway import change_status
from genba.blackboard.tasks.task_rows import hold
from genba.domain.fleet.records import BranchHandover, SegmentEnd, WaitsFor
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, TaskStatus

_ABANDONED = Statement("""
SELECT s.run FROM sessions s JOIN tasks t ON t.id = s.task_id
WHERE t.project_id = :project AND s.status = 'running' AND s.external
  AND NOT EXISTS (SELECT 1 FROM agent_connections a WHERE a.run = s.run AND a.status = 'active' AND a.lease_until > :at)
  AND s.heartbeat_at < :since
ORDER BY s.id
""")

_RENEW = Statement("""
UPDATE agent_connections SET lease_until = :lease WHERE project_id = :project AND status = 'active' AND NOT spawned
""")


def renew(tx: Transaction, lease: str) -> None:
    """Extend the lease of every connected external agent."""
    tx.do(_RENEW, project=tx.project, lease=lease)


def abandoned(tx: Transaction, at: str, since: str) -> tuple[str, ...]:
    """Running sessions of external agents without an active connection, but those that started after `since`."""
    rows = tx.all(_ABANDONED, project=tx.project, at=at, since=since)
    return tuple(row[0] for row in rows)


def hand_over_branch(tx: Transaction, given: BranchHandover) -> None:
    """End the session of an outside manager; another one waits with the branch for its review and merge.

    Safe to repeat: a manager hands over once.
    """
    manager, order = session_segments.session(tx, given.manager), given.order
    task = hold(tx, order.task).task
    if session_segments.session(tx, given.manager).status != SessionStatus.RUNNING:
        return
    ended = SegmentEnd(run=manager.run, part=manager.part, outcome=Outcome.COMPLETED, reason="its subtasks are done")
    session_segments.end_part(tx, ended)
    session_segments.write_session(
        tx,
        task,
        order,
        executor=given.executor,
        host=given.start.host,
        plan=given.plan,
        base_branch=given.base_branch,
    )
    settle_in(tx, given.start)
    actor = Actor(ActorKind.ORCHESTRATOR, order.run)
    change = StatusChange(to=TaskStatus.REVIEW, actor=actor, commit=given.commit, session=order.run)
    change_status(tx, order.task, change)
    waits = SegmentEnd(
        run=order.run, part=order.part, waits_for=WaitsFor.REVIEW, verified=given.commit, state=given.state
    )
    session_segments.end_part(tx, waits)
