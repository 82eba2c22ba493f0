"""The branch that the work of a project starts from and lands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.domain.errors import StateConflictError
from genba.domain.sessions.branch_naming import OWN_BRANCHES

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext

_MAIN_BRANCHES = ("main", "master", "trunk", "develop")


async def checkout_branch(context: ProjectContext) -> str:
    """The branch of the user's checkout; empty where its HEAD is detached."""
    git_dir = context.layout.git_dir
    output = await context.layout.git.run("symbolic-ref", "--quiet", "--short", "HEAD", git_dir=git_dir, allow=(0, 1))
    return output.stdout.strip()


async def landing_branch(context: ProjectContext) -> str:
    """The branch that commits land on: of the settings, else of the checkout. Raises StateConflictError."""
    branch = context.project.fleet.merge.base_branch or await checkout_branch(context)
    if not branch:
        raise StateConflictError(
            "your checkout is on no branch, and merge.base_branch names none",
            unchanged="nothing was started, nothing was changed.",
            hint="git switch main   or, in .genba/config.yaml:  merge: {base_branch: main}",
        )
    return branch


async def base_branch(context: ProjectContext, besides: str = "") -> str:
    """The branch to compare work with: of the settings, of the checkout, or a main branch; empty where none is known.

    Neither `besides` nor, as the branch of the checkout, a branch of Genba's own is taken.
    """
    named = context.project.fleet.merge.base_branch
    if named and named != besides:
        return named
    current = await checkout_branch(context)
    if current and current != besides and not current.startswith(OWN_BRANCHES):
        return current
    for name in _MAIN_BRANCHES:
        if name != besides and await context.layout.git.commit_of(f"refs/heads/{name}") is not None:
            return name
    listed = await context.layout.git.text("for-each-ref", "--count=2", "--format=%(refname:short)", "refs/heads/")
    only = listed.split()
    return only[0] if len(only) == 1 else current
