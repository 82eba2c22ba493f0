"""The merge queue on the dashboard: next entries, verifications and merged work of each target."""

import msgspec

from genba.domain.fleet.records import MergeEntry


class QueueGoal(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one goal on the tree that would land."""

    name: str
    level: str
    status: str
    """passed | failed | error"""
    required: bool = True
    detail: str = ""
    log: str = ""
    """The name of its log; empty where there is none."""
    seconds: float = 0.0


class QueueVerification(msgspec.Struct, frozen=True, kw_only=True):
    """The newest verification since an entry was queued."""

    verdict: str
    """done, rejected: goals_not_met, error"""
    passed: int
    total: int
    commit: str
    """The commit that was verified: what would have landed."""
    goals: tuple[QueueGoal, ...] = ()
    """Those that did not pass; the others are only counted."""
    missing: tuple[str, ...] = ()
    at: str = ""


class QueuedView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry, and its verification."""

    entry: MergeEntry
    position: int | None = None
    """The first to land is 1; nothing for one that does not wait."""
    gate: QueueVerification | None = None


class TargetView(msgspec.Struct, frozen=True, kw_only=True):
    """One branch that work lands on."""

    target: str
    open: tuple[QueuedView, ...] = ()
    """In the order in which they land; what is merged right now comes first."""
    back: tuple[QueuedView, ...] = ()
    """What went back to its author: a conflict, or a goal that fails on what would have landed."""
    landed: tuple[QueuedView, ...] = ()
    """The newest ones first."""


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    targets: tuple[TargetView, ...] = ()
    waiting: int = 0
    back: int = 0
    rounds: int = 0
    """How often work goes back to its author before a person is asked."""
    batch: int = 1
    """How many entries are verified together at most."""
    paused: bool = False
