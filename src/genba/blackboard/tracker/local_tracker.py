"""The blackboard as a tracker: each task is an issue."""

import asyncio

import msgspec

from genba.blackboard.database.store import Transaction
from genba.blackboard.tasks import task_records, verifications
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tasks.status_gateway import change_status
from genba.blackboard.tasks.task_rows import hold
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskEdit, TaskStatus
from genba.domain.tracker.issues import Issue, IssueChange

_ORCHESTRATOR = Actor(ActorKind.ORCHESTRATOR, "genba")


class BlackboardTracker:
    """Reads tasks as issues. Closing one is the way from review to done, with all that the gateway asks for."""

    def __init__(self, board: Blackboard) -> None:
        self.board = board

    async def read(self, number: int) -> Issue:
        return await asyncio.to_thread(self._read, number)

    async def labelled(self, label: str) -> tuple[Issue, ...]:
        found = await asyncio.to_thread(lambda: self.board.find(label=label))
        return tuple(_issue(task) for task in found)

    def _read(self, number: int) -> Issue:
        """The task with its comments."""
        issue = _issue(self.board.get(number))
        others = (
            message for message in self.board.comments(number) if message.author != "facilitator"
        )  # no word of the task
        lines = [f"{message.author} wrote:\n\n{message.body}" for message in others]
        return msgspec.structs.replace(issue, body="\n\n".join([issue.body, *lines]).strip()) if lines else issue

    async def change(self, number: int, change: IssueChange) -> None:
        await asyncio.to_thread(self.board.store.write, lambda tx: carry_out(tx, number, change))


def _issue(task: Task) -> Issue:
    return Issue(
        number=task.number,
        title=task.title,
        body=task.body,
        state="closed" if task.status.ended else "open",
        labels=task.labels,
    )


def carry_out(tx: Transaction, number: int, change: IssueChange) -> None:
    """All of it, or nothing. What is so already stays as it is."""
    task = hold(tx, number).task
    if change.add_labels or change.remove_labels:
        relabel = TaskEdit(add_labels=change.add_labels, remove_labels=change.remove_labels)
        task = task_records.edit(tx, number, relabel, _ORCHESTRATOR, None)
    if change.comment and all(message.body != change.comment for message in task_records.comments(tx, number)):
        task_records.comment(tx, number, change.comment, _ORCHESTRATOR)
    if change.close and not task.status.ended:
        verified = verifications.last_verification(tx, number)
        closing = StatusChange(
            to=TaskStatus.DONE,
            actor=_ORCHESTRATOR,
            reason="its issue was closed",
            commit=verified.subject.commit if verified else "",
            finalized="closed by its run",
        )
        change_status(tx, number, closing)
