"""What must hold for a status change besides the table: dependencies, evidence, approval, blockers, family."""

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import APPROVED, STATUS_CHANGED, events_of
from genba.blackboard.tasks.task_rows import TaskWithRows, id_of, missing
from genba.blackboard.tasks.task_tree import abandoned_steps, blocked_above, line_of
from genba.domain.errors import StateConflictError, UsageError
from genba.domain.goals.verification import VerdictStatus
from genba.domain.tasks.task import ActorKind, BlockerKind, StatusChange, Task, TaskStatus

_DEPENDENCIES = Statement("""
SELECT o.number, o.status FROM task_dependencies d JOIN tasks o ON o.id = d.depends_on_id
WHERE d.task_id = :id AND o.status <> 'done' ORDER BY o.number
""")
_PARTS = Statement("""
SELECT number, status, in_plan FROM tasks WHERE parent_task_id = :id AND review_of IS NULL ORDER BY number
""")
_JUDGED = Statement("SELECT status FROM reviews WHERE task_id = :id")
_VERDICT = Statement("""
SELECT status, reason FROM verifications WHERE task_id = :id AND "commit" = :commit ORDER BY id DESC LIMIT 1
""")
_STATUS = Statement("SELECT status, number FROM tasks WHERE id = :id")
_BLOCKER = Statement("SELECT blocker_task_id FROM tasks WHERE id = :id")


def check(tx: Transaction, seen: TaskWithRows, change: StatusChange) -> None:
    """Raise when the change may not happen now."""
    if change.actor.kind is ActorKind.TRACKER:
        _is_closed_on_tracker(seen.task, change)
        return
    match seen.task.status, change.to:
        case start, TaskStatus.IN_PROGRESS:
            _dependencies_are_done(tx, seen.task)
            if start is TaskStatus.REVIEW:
                _no_ancestor_is_blocked(tx, seen)
        case _, TaskStatus.REVIEW:
            _is_verified(tx, seen.task, change)
            _children_have_ended(tx, seen.task, change)
        case TaskStatus.IN_PROGRESS, TaskStatus.DONE:
            _step_is_carried_out(tx, seen.task, change)
        case _, TaskStatus.DONE:
            _is_verified(tx, seen.task, change)
            _is_approved(tx, seen.task, change)
            _is_finalized(seen.task, change)
            _children_have_ended(tx, seen.task, change)
        case _, TaskStatus.BLOCKED:
            _blocker_is_named(tx, seen.task, change)
        case TaskStatus.BLOCKED, TaskStatus.OPEN:
            _no_ancestor_is_blocked(tx, seen)
            _blocker_is_cleared(tx, seen)
        case TaskStatus.REVIEW, TaskStatus.OPEN:
            _phase_is_named(seen.task, change)
            _is_verified(tx, seen.task, change)
            _is_approved(tx, seen.task, change)
            _is_finalized(seen.task, change)
        case ((TaskStatus.BACKLOG | TaskStatus.DONE | TaskStatus.CANCELLED), TaskStatus.OPEN):
            _no_ancestor_has_ended(tx, seen)
            _no_ancestor_is_blocked(tx, seen)


def _is_closed_on_tracker(task: Task, change: StatusChange) -> None:
    """A decision on the tracker stands. It claims no verification; the event names the person and the reason."""
    if task.tracker == "local":
        raise refused(task.number, "it does not live on a tracker: none can tell what becomes of it")
    if not change.reason.strip():
        raise UsageError(
            f"task #{task.number}: a change that a tracker tells needs what happened there",
            unchanged="nothing was changed.",
        )


def refused(number: int, why: str, hint: str = "") -> StateConflictError:
    return StateConflictError(
        f"task #{number}: {why}", unchanged="nothing was changed.", hint=hint or f"genba task show {number}"
    )


def refuse_step(task: Task, deed: str) -> None:
    """Only the agent of the parent changes a step of its plan."""
    if task.in_plan:
        raise refused(
            task.number, f"it is a step of the plan of #{task.parent}, {deed}", f"genba task show {task.parent}"
        )


def _dependencies_are_done(tx: Transaction, task: Task) -> None:
    if not task.dependencies:
        return
    waiting = tx.all(_DEPENDENCIES, id=task.id)
    if not waiting:
        return
    listed = ", ".join(f"#{number} ({status})" for number, status in waiting)
    cancelled = [number for number, status in waiting if status == TaskStatus.CANCELLED]
    hints = [f"genba task depend {task.number} --remove {number}" for number in cancelled]
    raise refused(
        task.number,
        f"it cannot start: it depends on {listed}",
        "\n".join(hints) or f"genba task show {waiting[0][0]}",
    )


def _is_verified(tx: Transaction, task: Task, change: StatusChange) -> None:
    if not change.commit:
        raise UsageError(
            f"task #{task.number}: the way to {change.to} needs the commit that was verified",
            unchanged="nothing was changed.",
        )
    if task.review_of is not None:
        _is_judged(tx, task)
        return
    verdict = tx.one(_VERDICT, id=task.id, commit=change.commit)
    if verdict is None:
        raise refused(task.number, f"commit {change.commit[:12]} was not verified")
    status, reason = verdict
    if status != VerdictStatus.DONE:
        message = f"{status}: {reason}" if reason else status
        raise refused(task.number, f"commit {change.commit[:12]} was verified, and the verdict is {message}")


def _is_judged(tx: Transaction, task: Task) -> None:
    """A review is done by its verdict: it leaves no commit that could be verified."""
    judged = tx.one(_JUDGED, id=task.id)
    if judged is None or judged[0] == "open":
        raise refused(task.number, "it is a review without a verdict")


def _children_have_ended(tx: Transaction, task: Task, change: StatusChange) -> None:
    if not task.children:
        return
    to, left = change.to, {step.number for step in abandoned_steps(tx, task.id, change.session)}
    rows = [row for row in tx.all(_PARTS, id=task.id) if row[0] not in left]
    children = [(number, TaskStatus(status), in_plan) for number, status, in_plan in rows]
    open_ones = [f"#{number} ({status})" for number, status, _ in children if not status.ended]
    if open_ones:
        raise refused(task.number, f"it cannot be {to} before its parts have ended: {', '.join(open_ones)}")
    parts = [status for _, status, in_plan in children if not in_plan]
    if parts and all(status is TaskStatus.CANCELLED for status in parts):
        raise refused(task.number, f"it cannot be {to}: all of its parts were cancelled, and none is done")


def _step_is_carried_out(tx: Transaction, task: Task, change: StatusChange) -> None:
    """A step ends on the branch that it is made on: nothing is merged, and its parent is judged as a whole."""
    if not task.in_plan:
        raise refused(task.number, "it is no step of a plan: it is done when its work was verified and has landed")
    if task.goals:
        _is_verified(tx, task, change)
    _children_have_ended(tx, task, change)


def approved_commit(tx: Transaction, task: Task) -> str:
    """The commit that was approved last, while the task is in review; sending work back clears it."""
    approved = ""
    for event in events_of(tx, task.id):
        if event.kind == APPROVED:
            approved = str(event.data.get("commit", ""))
        elif event.kind == STATUS_CHANGED and event.data.get("from") == TaskStatus.REVIEW:
            approved = ""
    return approved


def reviewed_commit(tx: Transaction, task: Task) -> str:
    """The commit with which a task came to review last."""
    to_review = [
        event
        for event in events_of(tx, task.id)
        if event.kind == STATUS_CHANGED and event.data.get("to") == TaskStatus.REVIEW
    ]
    return str(to_review[-1].data.get("commit", "")) if to_review else ""


def _is_approved(tx: Transaction, task: Task, change: StatusChange) -> None:
    if task.requires_review and approved_commit(tx, task) != change.commit:
        raise refused(
            task.number,
            f"it requires a review, and no reviewer has approved commit {change.commit[:12]}",
            f"genba task approve {task.number}",
        )


def _is_finalized(task: Task, change: StatusChange) -> None:
    if not change.finalized.strip():
        raise UsageError(
            f"task #{task.number}: the way to {change.to} needs how its work was finalized, such as `merged 3f9c2ab`",
            unchanged="nothing was changed.",
        )


def _phase_is_named(task: Task, change: StatusChange) -> None:
    if not change.phase.strip():
        raise UsageError(
            f"task #{task.number}: the way from review to open needs the agent whose phase is complete",
            unchanged="nothing was changed.",
        )


def _blocker_is_named(tx: Transaction, task: Task, change: StatusChange) -> None:
    blocker = change.blocker
    if blocker is None or not blocker.reason.strip():
        raise UsageError(f"task #{task.number}: a blocked task needs a reason", unchanged="nothing was changed.")
    if blocker.task is None:
        return
    if blocker.task == task.number:
        raise refused(task.number, "it cannot be blocked by itself")
    if any(above.number == blocker.task for above in line_of(tx, task.number)):
        raise refused(task.number, f"it is a part of #{blocker.task} and cannot be blocked by it")
    _blockers_end_somewhere(tx, task, blocker.task)


def _blockers_end_somewhere(tx: Transaction, task: Task, number: int) -> None:
    """A blocker must not wait for the task or its subtasks: neither could continue."""
    chain, following = [number], id_of(tx, number)
    while True:
        if any(above.id == task.id for above in line_of(tx, chain[-1])):
            shown = " → ".join(f"#{link}" for link in (task.number, *chain, task.number))
            raise refused(task.number, f"it would be blocked by what waits for it: {shown}")
        row = tx.one(_BLOCKER, id=following)
        if row is None or row[0] is None:
            return
        following = row[0]
        found = tx.one(_STATUS, id=following)
        if found is None or found[1] in chain:
            return
        chain.append(found[1])


def _blocker_is_cleared(tx: Transaction, seen: TaskWithRows) -> None:
    blocker = seen.task.blocker
    if blocker is None or blocker.kind is not BlockerKind.DEPENDENCY or seen.blocker_id is None:
        return
    row = tx.one(_STATUS, id=seen.blocker_id)
    if row is not None and row[0] == TaskStatus.BLOCKED:
        raise refused(
            seen.task.number,
            f"#{blocker.task} stands in its way, and is blocked itself",
            f"genba task show {blocker.task}",
        )


def _no_ancestor_is_blocked(tx: Transaction, seen: TaskWithRows) -> None:
    if seen.parent_id is None:
        return
    root = blocked_above(line_of(tx, seen.task.number)[1:])
    if root is not None:
        raise refused(
            seen.task.number,
            f"it is a part of #{root.number}, which is blocked",
            f"unblock that first: genba task show {root.number}",
        )


def _no_ancestor_has_ended(tx: Transaction, seen: TaskWithRows) -> None:
    if seen.parent_id is None:
        return
    row = tx.one(_STATUS, id=seen.parent_id)
    if row is None:
        raise missing(seen.task.parent or 0)
    status, number = row
    if TaskStatus(status).ended:
        raise refused(
            seen.task.number,
            f"it is a part of #{number}, which is {status}",
            f"reopen the parent first: genba task show {number}",
        )
