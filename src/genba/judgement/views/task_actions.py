"""What a person can do with a task as it stands. Pure: a task and what is known of it in, actions out."""

import msgspec

from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.views.task import TaskAction

_WAYS: dict[EscalationKind, tuple[str, ...]] = {
    EscalationKind.QUESTION: ("answer",),
    EscalationKind.ATTEMPTS: ("approve", "answer"),
    EscalationKind.CONFLICT: ("approve", "answer"),
    EscalationKind.FAILED: ("approve", "answer"),
    EscalationKind.REVIEW: ("approve", "reject"),
    EscalationKind.BUDGET: ("approve",),
    EscalationKind.PLAN: ("approve", "reject"),
    EscalationKind.STOPPED: ("resume",),
}


class TaskFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a task itself does not say."""

    ready: bool = False
    """Nothing is in the way of its beginning."""
    alive: bool = False
    """A session runs."""
    waiting: bool = False
    """A session of it holds no worker, and goes on by itself when it can."""
    held: bool = False
    verified: bool = False
    """Its newest verdict is that it is done."""
    asked: tuple[Escalation, ...] = ()


def ways_of(kind: EscalationKind) -> tuple[str, ...]:
    """How something that waits for a person can be decided, the likeliest first."""
    return _WAYS[kind]


def task_actions(task: Task, known: TaskFacts) -> tuple[TaskAction, ...]:
    """In the order in which they are offered."""
    stopped = any(each.kind is EscalationKind.STOPPED for each in known.asked)
    actions = {
        TaskAction.RUN: _can_run(task, known),
        TaskAction.STOP: known.alive and not stopped,
        TaskAction.APPROVE: task.status is TaskStatus.REVIEW
        and task.requires_review
        and not task.approved
        and known.verified
        and not known.asked,
        TaskAction.UNBLOCK: task.status is TaskStatus.BLOCKED and not known.asked,
        TaskAction.RESUME: not task.status.ended and (known.held or stopped),
        TaskAction.PAUSE: not task.status.ended and not known.held and not stopped,
        TaskAction.REOPEN: task.status.ended,
        TaskAction.CANCEL: not task.status.ended,
    }
    return tuple(action for action, is_there in actions.items() if is_there)


def _can_run(task: Task, known: TaskFacts) -> bool:
    """No session runs or will start by itself, and nothing blocks it."""
    if known.alive or known.waiting or known.asked or task.in_plan or task.review_of is not None:
        return False
    return task.status is TaskStatus.IN_PROGRESS or (task.status is TaskStatus.OPEN and known.ready)
