"""Wake a stopped manager, but only when its next action would not be to wait."""

from genba.domain.sessions.loop_state import Feedback
from genba.domain.tasks.task import Task
from genba.domain.workflow.actions import ActionKind, Hierarchy, Phase, Snapshot, SubtaskView
from genba.judgement.scheduling.scheduler_view import SchedulerView
from genba.judgement.workflow.next_action import decide

_REASONS = {
    ActionKind.HANDLE_BLOCKED: "a part of its task cannot go on",
    ActionKind.DELEGATE: "a subtask has no agent",
    ActionKind.REPORT_COMPLETION: "the parts of its task have ended",
}
PARTS = "its parts"
"""The check of a gap that is no failure: something happened to a part."""


def wake_reason(at: SchedulerView, task: Task, agent: str) -> str:
    """Why the manager of a task is needed; empty while it would only wait."""
    action = decide(snapshot_of(at, task, agent)).action
    return "" if action is ActionKind.WAIT else _REASONS.get(action, "something happened to a part of its task")


def wake_feedback(why: str) -> Feedback:
    """What its next prompt must know. With it, its iterations and its time start over."""
    return Feedback(check=PARTS, detail=why, output="", claim="", attempt=1, max_attempts=1)


def snapshot_of(at: SchedulerView, task: Task, agent: str) -> Snapshot:
    """The task as its manager would see it now, if it were here and could wait for ever."""
    parts = [at.field.tasks[number] for number in at.parts(task) if number in at.field.tasks]
    return Snapshot(
        agent=agent,
        hierarchy=Hierarchy.MANAGER,
        spawned=False,
        task=_subtask_view(at, task),
        phase=Phase.EXECUTING,
        pieces=tuple(_subtask_view(at, part) for part in parts),
    )


def _subtask_view(at: SchedulerView, task: Task) -> SubtaskView:
    return SubtaskView(
        number=task.number,
        title=task.title,
        status=task.status,
        assignee=task.assignee,
        dependencies=task.dependencies,
        blocker=task.blocker,
        attempts=len(at.field.failures.get(task.number, ())),
        with_human=at.is_with_person(task.number),
    )
