"""The nouns of the merge queue: work on its way to a target, and what became of it."""

from enum import StrEnum

import msgspec

from genba.domain.fleet.records import EntryStatus, MergeEntry


class MergeHistory(StrEnum):
    """What the history of a target looks like."""

    MERGE = "merge"
    """One merge commit per task, with the commits of its branch behind it."""
    LINEAR = "linear"
    """One commit per task. The commits of its branch stay reachable under `refs/genba/landed/`."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The verified commit of one task, and the words that it lands with."""

    task: int
    commit: str
    subject: str
    trailers: str = ""


class Stacked(msgspec.Struct, frozen=True, kw_only=True):
    """One work on top of the one before it: a commit that nothing points to yet, or why there is none."""

    base: str
    """What it was put on."""
    commit: str = ""
    tree: str = ""
    arrived: bool = False
    """Its base has all of it already."""
    conflict: bool = False
    paths: tuple[str, ...] = ()
    """The paths in conflict."""
    problem: str = ""
    """Why git could not even try."""

    @property
    def tip(self) -> str:
        """What the next one is put on: a work that does not fit is left out."""
        return self.commit or self.base


class UpdatedBranch(msgspec.Struct, frozen=True, kw_only=True):
    """Work that came back, with its target merged into its branch."""

    commit: str
    paths: tuple[str, ...] = ()
    """The paths that have markers of a conflict in them now."""
    rescued: str = ""
    """The ref that keeps what was in the working tree and on no branch."""


class QueuePassOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The input of one queue pass. It is stored by its workflow, so fields are only ever added."""

    target: str
    turn: int = 1
    history: MergeHistory = MergeHistory.MERGE
    batch: int = 1
    """How many entries are verified together at most."""

    @property
    def workflow(self) -> str:
        return f"merge:{self.target}:turn:{self.turn}"


class QueueEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in the merge queue."""

    target: str
    kind: str
    """proving | merged | conflict | failed | stuck | withdrawn | moved"""
    tasks: tuple[int, ...] = ()
    detail: str = ""


class EntryEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What one entry came to in a turn."""

    entry: MergeEntry
    status: EntryStatus
    landed: str = ""
    paths: tuple[str, ...] = ()
    detail: str = ""
    over: str = ""


class QueuePassReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn of the merge queue came to, by the numbers of the tasks."""

    target: str
    merged: tuple[int, ...] = ()
    conflict: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    stuck: tuple[int, ...] = ()
    withdrawn: tuple[int, ...] = ()
    moved: int = 0
    """How often the target was moved from outside in between."""
    more: bool = False
    """Something is left that this turn has not looked at."""
