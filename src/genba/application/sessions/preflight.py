"""What must hold of a repository and its disk before a fleet or an external agent begins work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.application.project.base_branch import landing_branch
from genba.domain.errors import DiskFullError, NotFoundError, StateConflictError

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext

_UNCHANGED = "nothing was started, nothing was changed."


async def preflight(context: ProjectContext) -> str:
    """The branch that work lands on. Raises where nothing could land there."""
    layout = context.layout
    context.check_writable()
    busy = [name for name in ("rebase-merge", "rebase-apply") if (layout.git_dir / name).exists()]
    if busy:
        raise StateConflictError(
            f"the repository is in the middle of a rebase ({busy[0]})",
            unchanged=_UNCHANGED,
            hint="git rebase --continue   or   git rebase --abort",
        )
    branch = await landing_branch(context)
    if await layout.git.commit_of(f"refs/heads/{branch}") is None:
        raise NotFoundError(
            f'there is no branch "{branch}" with a commit',
            unchanged=_UNCHANGED,
            hint="git commit --allow-empty -m start   or, in .genba/config.yaml:  merge: {base_branch: NAME}",
        )
    import shutil  # noqa: PLC0415  (slow to import)

    free, least = shutil.disk_usage(layout.common).free >> 20, context.project.fleet.work.min_free_disk_mb
    if free < least:
        raise DiskFullError(
            f"the disk is nearly full: {free} MB are free, {least} are needed to begin",
            unchanged=_UNCHANGED,
            hint="free some space: genba gc   or lower work.min_free_disk_mb",
        )
    return branch
