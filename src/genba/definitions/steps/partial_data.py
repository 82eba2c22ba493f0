"""What of some data can be read although a part of it is wrong, so that later checks still see the rest."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, TypeVar

from genba.definitions.agent.layers import Layer, merge
from genba.domain.convert import shape
from genba.domain.problems import Problem

T = TypeVar("T")

MISSING = "is required and missing"
UNKNOWN_KEY = "unknown key"
_SUGGESTED = re.compile(r'did you mean "(.+)"\?')
_ROUNDS = 8
"""A part that is left out can make what is around it wrong, level by level."""


class LeftOut:
    """The paths of the wrong values that the checks do without. What depends on one of these values is not known."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self.paths = frozenset(paths)
        self._around = frozenset(above for path in self.paths for above in _above(path))

    def with_paths(self, paths: Iterable[str]) -> "LeftOut":
        return LeftOut((*self.paths, *paths))

    def lost(self, path: str) -> bool:
        """Whether the value at this path, or something around it, was left out."""
        return bool(self.paths) and (path in self.paths or any(above in self.paths for above in _above(path)))

    def touched(self, *paths: str) -> bool:
        """Whether the value at one of these paths, something around it or a part of it was left out."""
        return any(path in self._around or self.lost(path) for path in paths)

    def position(self, path: str, at: int) -> int:
        """The place in the original list of the item that is now at place `at`."""
        place = 0
        while f"{path}[{place}]" in self.paths or at > 0:
            at -= f"{path}[{place}]" not in self.paths
            place += 1
        return place


NOTHING: Mapping[str, Any] = {}
WHOLE = LeftOut()
"""Nothing was left out."""


def shape_sound_part(
    raw: Any, wanted: type[T], least: Mapping[str, Any] = NOTHING, stand_ins: Mapping[str, Any] = NOTHING
) -> tuple[T | None, LeftOut]:
    """The value without its wrong parts, and the paths of those; None where nothing is left.

    `least` takes the place of what must be there, and `stand_ins`, by key, that of a required value that is wrong:
    what has no stand-in is left out with the object that requires it.
    """
    dropped: list[str] = []
    left = raw
    for _ in range(_ROUNDS):
        if least and isinstance(left, dict):
            left = merge([Layer("", dict(least)), Layer("", left)]).values
        value, problems = shape(left, wanted, "")
        if value is not None:
            return value, LeftOut(dropped)
        missing = {each.path for each in problems if each.message == MISSING}
        filled = {path for path in missing if path.rpartition(".")[2] in stand_ins}
        wrong = {each.path for each in problems if each.path not in missing}
        wrong |= {_parent(path) for path in missing - filled}
        if "" in wrong or not (wrong or filled):
            return None, LeftOut()
        inner = {path for path in wrong if not path.endswith("]")}
        wrong = inner or wrong  # an item goes when nothing in a list is wrong any more: its place is then still known
        dropped += [*wrong, *filled, *(_meant(each) for each in problems if each.path in wrong)]
        left = _repaired(left, wrong, {path: stand_ins[path.rpartition(".")[2]] for path in filled}, "")
    return None, LeftOut()


def _above(path: str) -> Iterator[str]:
    """Each path around a path."""
    for at, letter in enumerate(path):
        if letter in ".[":
            yield path[:at]


def _parent(path: str) -> str:
    cut = max(path.rfind("."), path.rfind("["))
    return path[: max(cut, 0)]


def _meant(problem: Problem) -> str:
    """The path of the known key that the writer of an unknown one probably meant, else the path of the problem."""
    found = _SUGGESTED.fullmatch(problem.hint) if problem.message == UNKNOWN_KEY else None
    around = _parent(problem.path)
    return f"{around}.{found[1]}".lstrip(".") if found else problem.path


def _repaired(value: Any, wrong: Set[str], filled: Mapping[str, Any], path: str) -> Any:
    """The value without what is wrong, and with what is filled in, by path."""
    if isinstance(value, dict):
        inner = {key: f"{path}.{key}" if path else str(key) for key in value}
        kept = {key: each for key, each in value.items() if inner[key] not in wrong}
        made = {key: _repaired(each, wrong, filled, inner[key]) for key, each in kept.items()}
        return made | {at.rpartition(".")[2]: each for at, each in filled.items() if _parent(at) == path}
    if isinstance(value, list):
        items = [(each, f"{path}[{at}]") for at, each in enumerate(value)]
        return [_repaired(each, wrong, filled, at) for each, at in items if at not in wrong]
    return value
