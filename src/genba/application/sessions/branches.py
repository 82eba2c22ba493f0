"""The branches of the sessions on a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.domain.fleet.records import Purpose
from genba.domain.sessions.branch_naming import generated_branch

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.domain.fleet.records import FleetSnapshot
    from genba.domain.tasks.task import Task

SCRATCH = {Purpose.PLAN: "plan", Purpose.REVIEW: "review", Purpose.MANAGE: "manage"}
"""Sessions that leave no commit, and how their branches are called."""
SCRATCH_BRANCH = "genba/review-"
"""How the branch of a review begins; its number follows."""
_NEVER = "0" * 40


async def base_branch_of(context: ProjectContext, base: str, task: Task, field: FleetSnapshot) -> str:
    """Where the work starts from and lands: a part on the branch of its task, everything else on the base."""
    parent = field.tasks.get(task.parent) if task.parent is not None else None
    if parent is None:
        return base
    branch = branch_of(parent, Purpose.INTEGRATE, field)
    git = context.layout.git
    if await git.commit_of(f"refs/heads/{branch}") is None:
        above = await base_branch_of(context, base, parent, field)
        tip = await git.commit_of(f"refs/heads/{above}")
        await git.run("update-ref", f"refs/heads/{branch}", tip or "", _NEVER, allow=(0, 128))
    return branch


def branch_of(task: Task, purpose: Purpose, field: FleetSnapshot) -> str:
    """The branch of a session. A new attempt goes on where the last one stopped."""
    if purpose in SCRATCH:
        return f"genba/{SCRATCH[purpose]}-{task.number}"
    known = [
        session.branch
        for session in (*field.failures.get(task.number, ()), *field.sessions)
        if session.task == task.number and session.purpose in (Purpose.WORK, Purpose.INTEGRATE) and session.branch
    ]
    return known[-1] if known else generated_branch("", "", task.number, task.title)
