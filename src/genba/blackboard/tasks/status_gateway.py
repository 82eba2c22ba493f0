"""The one place that changes a status.

Law: a change passes the table of `domain.tasks.statuses` and the rules below, and is written with its event; a
refusal leaves everything as it was. While a task is blocked, nothing below it is open or in progress; when a task has
ended, everything below it has; only issues of a tracker have a state of their own, whatever that of their parent is.
When a task leaves review, its open reviews are cancelled. When it reaches review by
an agent that did not follow the plan of an earlier one, the open steps of that plan are cancelled.
A phase that is complete is written together with the change that ends it. A task that is reopened has none.
"""

from typing import Any

import msgspec

from genba.blackboard.database.sanitize import as_json, named, now, storable
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import APPROVED, STATUS_CHANGED, NewEvent, tell
from genba.blackboard.tasks.status_effects import let_go
from genba.blackboard.tasks.task_rows import TaskWithRows, hold, id_of
from genba.blackboard.tasks.task_tree import (
    Relative,
    abandoned_steps,
    blocked_above,
    descendants,
    hold_line,
    hold_relations,
    line_of,
    local_descendants,
    open_reviews,
)
from genba.blackboard.tasks.transition_rules import check, refused
from genba.blackboard.tasks.verifications import verification_of
from genba.domain.errors import StateConflictError
from genba.domain.goals.goal import OF_CHANGES
from genba.domain.tasks.statuses import refusal
from genba.domain.tasks.task import Actor, ActorKind, Blocker, BlockerKind, Phase, StatusChange, Task, TaskStatus
from genba.domain.text_limits import cut

_UPDATE = Statement("""
UPDATE tasks SET status = :status, blocker_kind = :kind, blocker_reason = :reason, blocker_task_id = :blocker,
  version = :version, updated_at = :at WHERE id = :id
""")

_PHASES = Statement("UPDATE tasks SET phases = :phases WHERE id = :id")

_STARTED = (TaskStatus.OPEN, TaskStatus.IN_PROGRESS)


def change_status(tx: Transaction, number: int, change: StatusChange) -> Task:
    """Change a status, and that of the tasks below it that follow."""
    named(change.actor)
    _check_texts(change)
    change = _bounded(change)
    if change.blocker is not None and change.blocker.task is not None:
        hold_relations(tx)
    if change.to in _STARTED:
        hold_line(tx, number, with_itself=False)
    seen = hold(tx, number)
    task = seen.task
    if change.version is not None and change.version != task.version:
        raise StateConflictError(
            f"task #{number} was changed meanwhile: it is at version {task.version}, not {change.version}",
            unchanged="nothing was changed.",
            hint=f"look at it, then try again: genba task show {number}",
        )
    if task.status is change.to:
        raise refused(number, f"it is {change.to} already")
    why = refusal(task.status, change.to, change.actor.kind)
    if why:
        raise refused(number, why)
    check(tx, seen, change)
    if change.actor.kind is ActorKind.TRACKER and change.to is TaskStatus.OPEN:
        change = _blocked_together(tx, seen, change)
    return _carry_out(tx, seen, change)


def _blocked_together(tx: Transaction, seen: TaskWithRows, change: StatusChange) -> StatusChange:
    """What is reopened on its tracker below a blocked task is blocked together with that, like a new one."""
    root = None if seen.parent_id is None else blocked_above(line_of(tx, seen.task.number)[1:])
    if root is None:
        return change
    blocker = Blocker(BlockerKind.DEPENDENCY, f"#{root.number} is blocked", root.number)
    return msgspec.structs.replace(change, to=TaskStatus.BLOCKED, blocker=blocker)


def approve(tx: Transaction, number: int, commit: str, actor: Actor) -> Task:
    """Record that a permitted reviewer approves exactly this commit."""
    named(actor)
    storable(commit, "the commit", empty=False)
    task = hold(tx, number).task
    if task.status is not TaskStatus.REVIEW:
        raise refused(number, f"it is {task.status}, and only a task in review is approved")
    allowed = (ActorKind.HUMAN,) if task.reviewer_type == "human" else (ActorKind.HUMAN, ActorKind.REVIEWER)
    if actor.kind not in allowed:
        raise refused(number, f"the actor {actor.kind} may not approve it; allowed: {', '.join(allowed)}")
    line = NewEvent(task=task.id, version=task.version, kind=APPROVED, data={"commit": commit})
    tell(tx, actor, now(), [line])
    return task


def _check_texts(change: StatusChange) -> None:
    for text, what in (
        (change.reason, "the reason"),
        (change.commit, "the commit"),
        (change.finalized, "how it was finalized"),
        (change.session, "the session"),
        (change.phase, "the phase"),
        (change.blocker.reason if change.blocker else "", "the blocker's reason"),
    ):
        if text:
            storable(text, what)


def _bounded(change: StatusChange) -> StatusChange:
    """What an agent gives as its reason may be any length; what is kept is not."""
    blocker = change.blocker
    if blocker is not None:
        blocker = msgspec.structs.replace(blocker, reason=cut(blocker.reason))
    return msgspec.structs.replace(change, reason=cut(change.reason), blocker=blocker)


def _carry_out(tx: Transaction, seen: TaskWithRows, change: StatusChange) -> Task:
    task, at = seen.task, now()
    blocker = change.blocker if change.to is TaskStatus.BLOCKED else None
    changed = msgspec.structs.replace(task, status=change.to, blocker=blocker, version=task.version + 1, updated_at=at)
    tx.do(_UPDATE, **_row(tx, task.id, changed.version, change.to, blocker, at))
    changed = _with_phases(tx, changed, task.status, change)
    line = NewEvent(
        task=task.id, version=changed.version, kind=STATUS_CHANGED, data=_event_data(task.status, change, blocker)
    )
    let_go(tx, task.id, task.status, change.to, change.actor, at)
    followers = _followers(tx, seen, change)
    if not followers:
        tell(tx, change.actor, at, [line], change.session)
        return changed
    lines = [line]
    inherited = Blocker(BlockerKind.DEPENDENCY, f"#{task.number} is blocked", task.number)
    for follower, to in followers:
        its_blocker = inherited if to is TaskStatus.BLOCKED else None
        tx.do(_UPDATE, **_row(tx, follower.id, follower.version + 1, to, its_blocker, at, task.id))
        let_go(tx, follower.id, follower.status, to, change.actor, at)
        result = _event_data(follower.status, msgspec.structs.replace(change, to=to), its_blocker) | {
            "because": task.number
        }
        lines.append(NewEvent(task=follower.id, version=follower.version + 1, kind=STATUS_CHANGED, data=result))
    tell(tx, change.actor, at, lines, change.session)
    return changed


def _with_phases(tx: Transaction, task: Task, start: TaskStatus, change: StatusChange) -> Task:
    """The task with one more complete phase, or with none when it begins again."""
    if change.to is not TaskStatus.OPEN or not (start is TaskStatus.REVIEW or (start.ended and task.phases)):
        return task
    phases = () if start.ended else (*task.phases, _phase(tx, task.id, change))
    tx.do(_PHASES, id=task.id, phases=as_json(phases))
    return msgspec.structs.replace(task, phases=phases)


def _phase(tx: Transaction, task: int, change: StatusChange) -> Phase:
    """What an agent completed, with what its verification showed of its changes."""
    found = verification_of(tx, task, change.commit)
    kinds = [str(type(one).__struct_config__.tag) for one in found.artifacts] if found is not None else []
    passed = [one.goal.goal for one in found.results if one.result.passed] if found is not None else []
    return Phase(
        agent=change.phase,
        commit=change.commit,
        session=change.session,
        artifacts=tuple(dict.fromkeys(kinds)),
        shown=tuple(goal for goal in passed if isinstance(goal, OF_CHANGES)),
    )


def _followers(tx: Transaction, seen: TaskWithRows, change: StatusChange) -> list[tuple[Relative, TaskStatus]]:
    """The tasks below that change together with it, and what they become."""
    task, to = seen.task, change.to
    if not task.children:
        return []
    if change.actor.kind is ActorKind.TRACKER and to.ended:
        return _followers_of_an_issue(tx, task)
    if to is TaskStatus.BLOCKED:
        return [(below, to) for below in descendants(tx, task.id) if below.status in _STARTED]
    if to is TaskStatus.CANCELLED:
        return [(below, to) for below in descendants(tx, task.id) if not below.status.ended]
    if task.status is TaskStatus.BLOCKED and to is TaskStatus.OPEN:
        return [(below, to) for below in descendants(tx, task.id) if below.blocker_id == task.id]
    left = abandoned_steps(tx, task.id, change.session) if to in (TaskStatus.REVIEW, TaskStatus.DONE) else []
    reviews = open_reviews(tx, task.id) if task.status is TaskStatus.REVIEW else []
    return [(below, TaskStatus.CANCELLED) for below in (*left, *reviews)]


def _followers_of_an_issue(tx: Transaction, task: Task) -> list[tuple[Relative, TaskStatus]]:
    """Genba's own parts of an issue end with it; issues below it go on, also where only it stood in their way."""
    own = {below.id: below for below in local_descendants(tx, task.id)}
    given_up = [(below, TaskStatus.CANCELLED) for below in own.values() if not below.status.ended]
    others = [below for below in descendants(tx, task.id) if below.id not in own]
    return given_up + [(below, TaskStatus.OPEN) for below in others if below.blocker_id == task.id]


def _row(
    tx: Transaction,
    task: int,
    version: int,
    status: TaskStatus,
    blocker: Blocker | None,
    at: str,
    blocker_id: int | None = None,
) -> dict[str, Any]:
    in_the_way = blocker.task if blocker else None
    return {
        "id": task,
        "version": version,
        "status": str(status),
        "kind": str(blocker.kind) if blocker else None,
        "reason": blocker.reason if blocker else "",
        "blocker": None if in_the_way is None else (blocker_id or id_of(tx, in_the_way)),
        "at": at,
    }


def _event_data(start: TaskStatus, change: StatusChange, blocker: Blocker | None) -> dict[str, Any]:
    values: dict[str, Any] = {"from": start, "to": change.to, "reason": change.reason, "commit": change.commit}
    if change.finalized:
        values["finalized"] = change.finalized
    if change.phase:
        values["phase"] = change.phase
    if blocker:
        values["blocker"] = blocker
    return values
