"""What becomes of subtasks: a worker begins and ends its steps, a manager gives its parts away or gives them up.

Law: every status goes through the gateway. Who asks for what is so already changes nothing.
"""

from typing import Any

from genba.blackboard.database.sanitize import as_json, bounded, named, now, seen, storable
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.fleet import escalations
from genba.blackboard.tasks.history import ESCALATED, NewEvent, tell
from genba.blackboard.tasks.status_gateway import change_status
from genba.blackboard.tasks.task_records import edit
from genba.blackboard.tasks.task_rows import hold, missing, task_with_rows
from genba.blackboard.tasks.task_tree import hold_line
from genba.blackboard.tasks.transition_rules import refused
from genba.blackboard.workflow import messages
from genba.blackboard.workflow.subtask_views import subtask_view
from genba.domain.decoding import reader
from genba.domain.errors import StateConflictError
from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import Actor, Blocker, BlockerKind, StatusChange, Task, TaskEdit, TaskStatus
from genba.domain.workflow.actions import SubtaskView

_SESSION = Statement("SELECT task_id, status FROM sessions WHERE run = :run")
_OTHER_STEP = Statement("""
SELECT number FROM tasks WHERE parent_task_id = :parent AND in_plan AND status = 'in_progress' AND number <> :number
""")
_OPEN = Statement("""
SELECT id, kind, evidence FROM escalations WHERE task_id = :task AND status = 'open' AND kind NOT IN ('review', 'plan')
ORDER BY id DESC LIMIT 1
""")
_ANSWER = Statement("""
UPDATE escalations SET status = 'answered', answer = :answer, answered_by = :by, answered_at = :at
WHERE id = :id AND status = 'open'
""")
_EVIDENCE = Statement("UPDATE escalations SET evidence = :evidence WHERE id = :id")
_END_OTHERS = Statement("""
UPDATE sessions SET status = 'ended', waits_for = '', outcome = :outcome, reason = :reason, ended_at = :at
WHERE task_id = :task AND status = 'waiting' AND agent_id NOT IN (SELECT id FROM agents WHERE name = :agent)
""")

_evidence = reader(dict[str, Any])


def start_step(tx: Transaction, parent: int, number: int, run: str, actor: Actor, version: int | None) -> SubtaskView:
    """Begin a step of a plan. One is in progress at a time."""
    above, step = _step(tx, parent, number, run)
    if step.status is TaskStatus.IN_PROGRESS:
        return subtask_view(tx, number)
    if above.status is not TaskStatus.IN_PROGRESS:
        raise refused(number, f"it cannot begin: #{parent} is {above.status}")
    other = tx.one(_OTHER_STEP, parent=above.id, number=number)
    if other is not None:
        raise refused(number, f"it cannot begin: #{other[0]} is in progress, and one step is made at a time")
    change_status(tx, number, StatusChange(to=TaskStatus.IN_PROGRESS, actor=actor, version=version, session=seen(run)))
    return subtask_view(tx, number)


def finish_step(
    tx: Transaction, parent: int, number: int, run: str, actor: Actor, commit: str, version: int | None
) -> SubtaskView:
    """End a step of a plan. One with goals of its own needs the commit that was verified for it."""
    _, step = _step(tx, parent, number, run)
    if step.status is TaskStatus.DONE:
        return subtask_view(tx, number)
    change = StatusChange(to=TaskStatus.DONE, actor=actor, commit=commit, version=version, session=seen(run))
    change_status(tx, number, change)
    return subtask_view(tx, number)


def assign(
    tx: Transaction, number: int, agent: str, actor: Actor, note: str, run: str, version: int | None
) -> SubtaskView:
    """Give a part to an agent: out of the backlog, before anybody has begun, or once more when it was blocked.

    The same agent continues with the note as an answer; another agent starts over.
    """
    named(actor)
    storable(agent, "the agent", empty=False)
    hold_line(tx, number, with_itself=False)
    task = hold(tx, number).task
    if task.in_plan:
        raise refused(number, "it is a step of a plan: the agent that made the plan carries it out")
    if task.status not in (TaskStatus.BACKLOG, TaskStatus.OPEN, TaskStatus.BLOCKED):
        raise refused(number, f"it is {task.status}, and cannot be given to anybody now")
    edit(tx, number, TaskEdit(assignee=agent), actor, version)
    if note.strip():
        messages.note(tx, number, run, note, actor)
    _settle(tx, task, agent, actor, note)
    if task.status is not TaskStatus.OPEN:
        reason = f"it was given to {agent}"
        change_status(tx, number, StatusChange(to=TaskStatus.OPEN, actor=actor, reason=reason, session=seen(run)))
    return subtask_view(tx, number)


def cancel(tx: Transaction, number: int, actor: Actor, reason: str, run: str, version: int | None) -> SubtaskView:
    if hold(tx, number).task.status is not TaskStatus.CANCELLED:
        change = StatusChange(to=TaskStatus.CANCELLED, actor=actor, reason=reason, version=version, session=seen(run))
        change_status(tx, number, change)
    return subtask_view(tx, number)


def ask_human(tx: Transaction, number: int, reason: str, run: str, actor: Actor) -> Escalation:
    """A manager gives the matter of a part to a person: what is open about it already, or a question of its own."""
    named(actor)
    storable(reason, "the reason", empty=False)
    hold_line(tx, number, with_itself=False)
    task, by = hold(tx, number).task, seen(run).strip() or actor.name
    row = tx.one(_OPEN, task=task.id)
    if row is not None:
        known = _evidence.decode(row[2])
        if known.get("by") != by:
            at = now()
            tx.do(_EVIDENCE, id=row[0], evidence=as_json(known | {"by": by, "manager": bounded(reason)}))
            values = {"kind": row[1], "by": by, "question": bounded(reason)}
            line = NewEvent(task=task.id, version=task.version, kind=ESCALATED, data=values)
            tell(tx, actor, at, [line], seen(run))
        return escalations.open_one(tx, task, EscalationKind(row[1]))
    question = Escalation(task=number, kind=EscalationKind.QUESTION, question=reason, evidence={"by": by})
    can_wait = task.status in (TaskStatus.OPEN, TaskStatus.IN_PROGRESS)
    return escalations.escalate(tx, question, Blocker(BlockerKind.NEEDS_INPUT, reason) if can_wait else None)


def _settle(tx: Transaction, task: Task, agent: str, actor: Actor, note: str) -> None:
    """What the part waited for is settled: a note answers it, and a session of another agent is over."""
    at = now()
    asked = tx.one(_OPEN, task=task.id)
    if asked is not None and note.strip():
        tx.do(_ANSWER, id=asked[0], answer=bounded(note), by=actor.name, at=at)
    reason = f"it was given to {agent}"
    tx.do(_END_OTHERS, task=task.id, agent=agent, outcome=str(Outcome.ABORTED), reason=reason, at=at)


def _step(tx: Transaction, parent: int, number: int, run: str) -> tuple[Task, Task]:
    """A task that is held, and a step of its plan, for the run that works on it."""
    hold_line(tx, parent, with_itself=False)
    above, step = hold(tx, parent).task, task_with_rows(tx, number)
    if step.parent_id != above.id or not step.task.in_plan:
        raise missing(number)
    row = tx.one(_SESSION, run=seen(run))
    if row is None or row[0] != above.id or row[1] == SessionStatus.ENDED:
        raise StateConflictError(
            f"run {run!r} does not work on task #{parent}",
            unchanged="nothing was changed.",
            hint=f"genba task show {parent}",
        )
    return above, step.task
