"""What a person is offered to do with a task, as it stands."""

import pytest

from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import Actor, ActorKind, Task, TaskEvent, TaskStatus
from genba.domain.views.task import TaskAction
from genba.judgement.views.event_text import event_sentence
from genba.judgement.views.task_actions import TaskFacts, task_actions, ways_of

RUN, STOP, PAUSE, RESUME = TaskAction.RUN, TaskAction.STOP, TaskAction.PAUSE, TaskAction.RESUME
APPROVE, UNBLOCK, REOPEN, CANCEL = TaskAction.APPROVE, TaskAction.UNBLOCK, TaskAction.REOPEN, TaskAction.CANCEL
STOPPED = Escalation(task=1, kind=EscalationKind.STOPPED, question="")
ASKED = Escalation(task=1, kind=EscalationKind.QUESTION, question="")


@pytest.mark.parametrize(
    ("status", "known", "actions"),
    [
        (TaskStatus.OPEN, TaskFacts(ready=True), {RUN, PAUSE, CANCEL}),
        (TaskStatus.OPEN, TaskFacts(), {PAUSE, CANCEL}),
        (TaskStatus.BACKLOG, TaskFacts(), {PAUSE, CANCEL}),
        (TaskStatus.IN_PROGRESS, TaskFacts(alive=True), {STOP, PAUSE, CANCEL}),
        (TaskStatus.IN_PROGRESS, TaskFacts(), {RUN, PAUSE, CANCEL}),
        (TaskStatus.IN_PROGRESS, TaskFacts(waiting=True), {PAUSE, CANCEL}),
        (TaskStatus.OPEN, TaskFacts(ready=True, held=True), {RUN, RESUME, CANCEL}),
        (TaskStatus.IN_PROGRESS, TaskFacts(alive=True, held=True, asked=(STOPPED,)), {RESUME, CANCEL}),
        (TaskStatus.BLOCKED, TaskFacts(), {UNBLOCK, PAUSE, CANCEL}),
        (TaskStatus.BLOCKED, TaskFacts(asked=(ASKED,)), {PAUSE, CANCEL}),
        (TaskStatus.REVIEW, TaskFacts(verified=True), {APPROVE, PAUSE, CANCEL}),
        (TaskStatus.REVIEW, TaskFacts(), {PAUSE, CANCEL}),
        (TaskStatus.DONE, TaskFacts(), {REOPEN}),
        (TaskStatus.CANCELLED, TaskFacts(held=True), {REOPEN}),
    ],
)
def test_what_is_offered_fits_how_a_task_stands(status: TaskStatus, known: TaskFacts, actions: set[TaskAction]) -> None:
    task = Task(id=1, number=1, title="Make tea", status=status, requires_review=True)
    assert set(task_actions(task, known)) == actions


def test_steps_of_a_plan_and_reviews_are_not_started_by_hand() -> None:
    for task in (Task(id=1, number=1, title="x", in_plan=True), Task(id=1, number=1, title="x", review_of=2)):
        assert RUN not in task_actions(task, TaskFacts(ready=True))


@pytest.mark.parametrize("kind", list(EscalationKind))
def test_everything_that_waits_for_a_person_can_be_decided(kind: EscalationKind) -> None:
    assert ways_of(kind)


@pytest.mark.parametrize("kind", ["status_changed", "verified", "escalated", "part_ended", "something_new"])
def test_an_event_without_its_facts_is_reported_all_the_same(kind: str) -> None:
    event = TaskEvent(kind=kind, actor=Actor(ActorKind.HUMAN, "tester"), at="", version=1)
    assert event_sentence(event).strip()
