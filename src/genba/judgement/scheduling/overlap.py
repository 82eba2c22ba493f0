"""What it costs to begin a task while others write: paths that both would change are conflicts to come.

A price of 0 is free. Paths that another session has changed already cost 1, declared scopes that can meet cost 0.6,
and an undeclared scope costs 0.1. A session in the merge queue counts half, and one that
waits for a person counts a quarter: its work comes later.
"""

import functools
from collections.abc import Iterable

import msgspec

from genba.judgement.verification.paths import is_glob, matches, matches_any, pieces, shown

CHANGED, DECLARED, UNKNOWN = 1.0, 0.6, 0.1
TOO_MUCH = 0.5
"""From this price on a task waits, where the project says `overlap: wait`."""
_LARGEST = 40_000
"""Patterns whose product of lengths is larger are not compared: they are taken to meet."""
_KINDS = (":code", ":tests", ":docs")


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """A session that changes files, or will."""

    task: int
    scope: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    weight: float = 1.0


class Price(msgspec.Struct, frozen=True, kw_only=True):
    known: float = 0.0
    """For paths that are known to meet, over all neighbours."""
    unknown: float = 0.0
    """For undeclared scopes. It does not grow with the number of neighbours."""
    worst: float = 0.0
    reason: str = ""
    """The most expensive neighbour, and where they meet."""

    @property
    def value(self) -> float:
        return round(self.known + self.unknown, 3)

    @property
    def too_much(self) -> bool:
        return self.known >= TOO_MUCH

    def plus(self, other: "Price") -> "Price":
        first = self if self.worst >= other.worst else other
        return Price(
            known=self.known + other.known,
            unknown=max(self.unknown, other.unknown),
            worst=first.worst,
            reason=first.reason,
        )


FREE = Price()


def price(task: int, scope: tuple[str, ...], writers: Iterable[Writer]) -> Price:
    """What it costs to begin a task with this scope beside these writers."""
    total = FREE
    for writer in writers:
        if writer.task != task:
            total = total.plus(_beside(scope, writer))
    return total


def _beside(scope: tuple[str, ...], writer: Writer) -> Price:
    if not scope:
        return _unknown(writer, f"its scope is unknown, and #{writer.task} writes too")
    for path in writer.changed:
        if matches_any(path, scope):
            return _known(writer, CHANGED, f"#{writer.task} has changed {shown(path)}")
    if not writer.scope:
        return FREE if writer.changed else _unknown(writer, f"the scope of #{writer.task} is unknown")
    for theirs in writer.scope:
        for mine in scope:
            if globs_meet(mine, theirs):
                where = shown(mine) if mine == theirs else f"{shown(theirs)}, which can be {shown(mine)}"
                return _known(writer, DECLARED, f"#{writer.task} writes {where}")
    return FREE


def _known(writer: Writer, cost: float, reason: str) -> Price:
    return Price(known=cost * writer.weight, worst=cost * writer.weight, reason=reason)


def _unknown(writer: Writer, reason: str) -> Price:
    return Price(unknown=UNKNOWN * writer.weight, worst=UNKNOWN * writer.weight, reason=reason)


@functools.lru_cache(maxsize=65_536)
def globs_meet(first: str, second: str) -> bool:
    """Whether a path can exist that fits both globs. When that is too long to find out, it can."""
    if first == second:
        return True
    if first in _KINDS or second in _KINDS:
        return _kinds_meet(first, second)
    if not is_glob(first) and "/" in first.strip("/") and not first.endswith("/"):
        return matches(first.lstrip("/").removeprefix("./"), second)
    if not is_glob(second) and "/" in second.strip("/") and not second.endswith("/"):
        return matches(second.lstrip("/").removeprefix("./"), first)
    if not _beginnings_fit(first, second):
        return False
    if len(first) * len(second) > _LARGEST:
        return True
    return _Machine(first).meets(_Machine(second))


def _kinds_meet(first: str, second: str) -> bool:
    if first in _KINDS and second in _KINDS:
        return False
    kind, glob = (first, second) if first in _KINDS else (second, first)
    return is_glob(glob) or glob.endswith("/") or matches(glob.lstrip("/"), kind)


def _beginnings_fit(first: str, second: str) -> bool:
    """A cheap look: two globs that begin at the root with different texts never meet."""
    mine, theirs = _beginning(first), _beginning(second)
    return mine.startswith(theirs) or theirs.startswith(mine)


def _beginning(pattern: str) -> str:
    parts, anywhere = pieces(pattern)
    return "" if anywhere or not parts or is_glob(parts[0]) else parts[0]


_ANY, _ALL = "any", "all"
"""Labels of a step: a character that is no slash, and any character. Every other label is one character."""


class _Machine:
    """A glob as states and steps: it stands at state 0, and has read a path that fits when it stands at `end`."""

    def __init__(self, pattern: str) -> None:
        self.steps: list[list[tuple[str, int]]] = [[]]
        self.free: list[list[int]] = [[]]
        self.end = 0
        parts, anywhere = pieces(pattern)
        if anywhere:
            self._anywhere()
        for part in parts:
            self._part(part)

    def meets(self, other: "_Machine") -> bool:
        seen = {(0, 0)}
        waiting = [(0, 0)]
        while waiting:
            mine, theirs = waiting.pop()
            if mine == self.end and theirs == other.end:
                return True
            following = [(state, theirs) for state in self.free[mine]] + [(mine, state) for state in other.free[theirs]]
            for label, to in self.steps[mine]:
                following += [(to, end) for name, end in other.steps[theirs] if _both(label, name)]
            for pair in following:
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)
        return False

    def _state(self) -> int:
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def _anywhere(self) -> None:
        """Any folders in front, or none."""
        start, folders = self.end, self._state()
        self.end = self._state()
        self.free[start] += [folders, self.end]
        self.steps[folders] += [(_ALL, folders), ("/", self.end)]

    def _part(self, part: str) -> None:
        if part.startswith("**/"):
            inside = self._state()
            self.steps[self.end].append((_ANY, inside))
            self.steps[inside] += [(_ANY, inside), ("/", self.end)]
            self._onward()
        elif part in ("**", "*"):
            self.steps[self.end].append((_ALL if part == "**" else _ANY, self.end))
            self._onward()
        elif part == "?":
            self._read([_ANY])
        elif part.startswith("{") and is_glob(part):
            self._choices(part[1:-1].split(","))
        else:
            self._read(list(part))

    def _onward(self) -> None:
        """Leave a loop: what comes after it must not lead back into it."""
        before, self.end = self.end, self._state()
        self.free[before].append(self.end)

    def _read(self, labels: list[str]) -> None:
        for label in labels:
            before, self.end = self.end, self._state()
            self.steps[before].append((label, self.end))

    def _choices(self, choices: list[str]) -> None:
        start, ends = self.end, []
        for choice in choices:
            self.end = self._state()
            self.free[start].append(self.end)
            self._read(list(choice))
            ends.append(self.end)
        self.end = self._state()
        for end in ends:
            self.free[end].append(self.end)


def _both(first: str, second: str) -> bool:
    """Whether one character fits both labels."""
    if _ALL in (first, second) or first == second:
        return True
    if _ANY in (first, second):
        return "/" not in (first, second)
    return False
