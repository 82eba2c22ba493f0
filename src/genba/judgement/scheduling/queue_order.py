"""The order of a merge queue. No entry starves: a few passes without it raise its priority by one."""

from collections.abc import Collection, Sequence
from typing import TypeVar

from genba.domain.fleet.records import EntryStatus, MergeEntry
from genba.domain.tasks.task import Priority

T = TypeVar("T")

TURNS_PER_RANK = 8
"""So many turns that pass an entry by raise it by one priority."""

_RANKS = {priority: rank for rank, priority in enumerate(Priority)}


def waits(entry: MergeEntry) -> bool:
    """Whether an entry can be taken."""
    return entry.status in (EntryStatus.QUEUED, EntryStatus.STUCK)


def rank(entry: MergeEntry) -> int:
    """The priority of an entry with its age, the lower the sooner. It has no lowest value, so age wins in the end."""
    return _RANKS[entry.priority] - entry.turns // TURNS_PER_RANK


def in_order(entries: Sequence[MergeEntry]) -> tuple[MergeEntry, ...]:
    """Those that wait, the next one first: by priority and age, then first come, first served.

    One that was stuck goes after the others of its rank, so that it does not hold them up.
    """
    waiting = [entry for entry in entries if waits(entry)]
    return tuple(sorted(waiting, key=lambda entry: (rank(entry), entry.status is EntryStatus.STUCK, entry.id)))


def next_batch(entries: Sequence[MergeEntry], size: int, tried: Collection[int] = ()) -> tuple[MergeEntry, ...]:
    """The next ones to take, without those that this turn has tried before."""
    return tuple(entry for entry in in_order(entries) if entry.id not in tried)[: max(size, 1)]


def halves(group: Sequence[T]) -> tuple[tuple[T, ...], ...]:
    """A batch that is red, cut in two. One alone cannot be cut: it is the red one."""
    middle = (len(group) + 1) // 2
    return tuple(tuple(part) for part in (group[:middle], group[middle:]) if part)
