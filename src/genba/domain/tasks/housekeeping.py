"""What ended tasks leave behind, and what becomes of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec


class SessionLeftovers(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run that has left something."""

    run: str
    over: bool
    """Its task has ended, or it had none and ended itself, longer ago than things are kept."""
    why: str
    """Since when it is over."""
    task: int | None = None
    branch: str = ""
    base_branch: str = ""
    recorded: bool = True
    """Whether the blackboard remembers it. Of any other only its own folder tells that its branch is Genba's."""
    listed: bool = False
    """Whether its worktree is named while it stays: no task would ever tell of it."""


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was cleared away, or would be; or one that stays, and why."""

    kind: str
    name: str
    why: str
    size: int = 0
    kept: bool = False
    """It stays, for the reason that is given."""


@dataclass(frozen=True)
class Candidate:
    """One thing that ended work left, and how it is cleared away."""

    found: Collected
    act: Callable[[], Awaitable[str]] | None = None
    """Clears it away; returns why it stays after all. None where it stays."""
