"""Names of commits that a user types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.domain.errors import NotFoundError

if TYPE_CHECKING:
    from genba.domain.ports import History


async def known_commit(history: History, name: str) -> str:
    """The commit of a name that must be one. A branch comes first: a tag of the same name does not stand for it."""
    found = await history.commit_of(f"refs/heads/{name}") or await history.commit_of(name)
    if found is None:
        raise NotFoundError(f'"{name}" is no task, no branch and no commit', hint="genba task list   git branch --all")
    return found
