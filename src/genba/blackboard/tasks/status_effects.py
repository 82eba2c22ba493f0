"""What follows when a task leaves a status: nothing waits any longer for what is over.

Law: this is part of the gateway's transaction. No status of a task is changed here.
"""

from genba.blackboard.database.store import Statement, Transaction
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import Actor, ActorKind, TaskStatus

_END_WAITING = Statement("""
UPDATE sessions SET status = 'ended', waits_for = '', outcome = :outcome, reason = :reason, ended_at = :at
WHERE task_id = :task AND status = 'waiting'
""")
_WITHDRAW_ENTRIES = Statement("""
UPDATE merge_entries SET status = 'withdrawn', detail = :reason, finished_at = :at
WHERE task_id = :task AND status IN ('queued', 'stuck', 'merging')
""")
_WITHDRAW = Statement("""
UPDATE escalations SET status = :status, answer = :reason, answered_by = :by, answered_at = :at
WHERE task_id = :task AND status = 'open'
""")
_WITHDRAW_REVIEW = Statement(_WITHDRAW.sqlite + "AND kind = 'review'")
_WITHDRAW_BLOCKING = Statement(_WITHDRAW.sqlite + "AND kind NOT IN ('review', 'plan')")
_STALE = Statement("""
UPDATE reviews SET status = 'stale', decided_at = :at WHERE of_task_id = :task AND status IN ('open', 'approved')
""")
_STALE_OPEN = Statement("""
UPDATE reviews SET status = 'stale', decided_at = :at
WHERE (of_task_id = :task OR task_id = :task) AND status = 'open'
""")
_FORGIVE = Statement("UPDATE sessions SET forgiven = :yes WHERE task_id = :task AND status = 'ended'")
_RESOLVE = Statement("UPDATE messages SET status = 'resolved' WHERE task_id = :task AND status <> 'resolved'")
_RELEASE = Statement("UPDATE tasks SET held = :no WHERE id = :task AND held = :yes")


def let_go(tx: Transaction, task: int, start: TaskStatus, to: TaskStatus, actor: Actor, at: str) -> None:
    """Draw the consequences of one change of one task."""
    by = actor.name
    if to.ended:
        outcome = Outcome.COMPLETED if to is TaskStatus.DONE else Outcome.ABORTED
        reason = f"its task is {to}"
        tx.do(_END_WAITING, task=task, outcome=str(outcome), reason=reason, at=at)
        tx.do(_WITHDRAW_ENTRIES, task=task, reason=reason, at=at)
        tx.do(_WITHDRAW, task=task, status="withdrawn", reason=reason, by=by, at=at)
        tx.do(_STALE_OPEN, task=task, at=at)
        tx.do(_RELEASE, task=task, yes=True, no=False)
        tx.do(_RESOLVE, task=task)
    elif start is TaskStatus.REVIEW and to is TaskStatus.OPEN:
        reason = "its phase is complete"
        tx.do(_END_WAITING, task=task, outcome=str(Outcome.COMPLETED), reason=reason, at=at)
        tx.do(_WITHDRAW_ENTRIES, task=task, reason=reason, at=at)
        tx.do(_WITHDRAW, task=task, status="withdrawn", reason=reason, by=by, at=at)
        tx.do(_STALE, task=task, at=at)
        tx.do(_FORGIVE, task=task, yes=True)  # the attempts that failed before it are not those of the next agent
    elif start is TaskStatus.REVIEW:
        tx.do(_WITHDRAW_ENTRIES, task=task, reason="its work is worked on again", at=at)
        tx.do(_WITHDRAW_REVIEW, task=task, status="withdrawn", reason="its work is worked on again", by=by, at=at)
        tx.do(_STALE, task=task, at=at)
    elif to is TaskStatus.OPEN:
        # Who reopens an issue on its tracker is a person too.
        by_hand = actor.kind is ActorKind.HUMAN or (actor.kind is ActorKind.TRACKER and start.ended)
        if start is TaskStatus.BLOCKED:
            # A person who unblocks a task, or a manager who gives it away once more, says: go on.
            by_hand = by_hand or actor.kind is ActorKind.MANAGER
            status = "approved" if by_hand else "withdrawn"
            tx.do(_WITHDRAW_BLOCKING, task=task, status=status, reason="the task was unblocked", by=by, at=at)
        if by_hand:
            tx.do(_FORGIVE, task=task, yes=True)
