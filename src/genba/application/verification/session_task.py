"""The task that a session works on. A session that names a task is held to its goals, whichever agent it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.domain.errors import NotFoundError, StateConflictError

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.domain.ports import Inbox
    from genba.execution.run_values import RunPlan

_UNCHANGED = "nothing was started, nothing was changed."
_ADD = 'genba task list   or   genba task add "what is to be done"'


def check_task(context: ProjectContext, plan: RunPlan) -> None:
    """Refuse a session that names an unknown task, or that works on the branch of a task without naming it.

    An issue on GitHub is read when the session opens, and is refused there when it does not exist.
    """
    if plan.issue is not None and context.office() is None:
        _check_known(context, plan.issue)
    if plan.branch is None or plan.workspace is not None or not context.has_board():
        return
    owners = context.board().tasks_of_branch(plan.branch)
    if owners and plan.issue not in owners:
        named = ", ".join(f"#{number}" for number in owners)
        raise StateConflictError(
            f"{plan.branch} is the branch of task {named}, whose goals apply to it",
            unchanged=_UNCHANGED,
            hint=f"genba run {plan.definition.name} --issue {owners[-1]} --branch {plan.branch}",
        )


def inbox_of(context: ProjectContext, issue: int | None) -> Inbox | None:
    """What other agents say about a task of the blackboard."""
    if issue is None or not context.has_board():
        return None
    from genba.blackboard.workflow.inbox import BlackboardInbox  # noqa: PLC0415  (only a session with a task needs a database)

    return BlackboardInbox(context.board())


def _check_known(context: ProjectContext, number: int) -> None:
    if not context.has_board():
        raise NotFoundError(
            f"there is no task #{number}: this project has no tasks yet", unchanged=_UNCHANGED, hint=_ADD
        )
    try:
        context.board().get(number)
    except NotFoundError as error:
        raise NotFoundError(error.message, unchanged=_UNCHANGED, hint=_ADD) from error
