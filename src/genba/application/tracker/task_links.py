"""Where a task is outside of the blackboard: its issue, and the pull requests that bring its work."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.domain.tasks.task import Task
    from genba.domain.tracker.remote import TrackedPullRequest


def outside_of(context: ProjectContext, task: Task) -> tuple[str, tuple[TrackedPullRequest, ...]]:
    """The address of its issue, and its pull requests; nothing for a task that lives here alone."""
    if task.tracker == "local":
        return "", ()
    from genba.blackboard.tracker.issue_copy import TrackerBoard  # noqa: PLC0415  (only with a tracker)

    copy = TrackerBoard(context.board(make=False))
    row = copy.row(task.number)
    return row.issue.url if row else "", tuple(copy.pull_requests(task.number))
