"""What of some data can be read although a part of it is wrong, so that later checks still see the rest."""

from typing import Any, TypeVar

from genba.definitions.layers import Layer, merge
from genba.domain.shapes import shape

T = TypeVar("T")

MISSING = "is required and missing"
_ROUNDS = 8
"""A part that is left out can make what is around it wrong, level by level."""


def shape_sound_part(
    raw: Any, wanted: type[T], least: dict[str, Any] | None = None
) -> tuple[T | None, tuple[str, ...]]:
    """The value without its wrong parts, and the paths of those; None where nothing is left.

    `least` takes the place of what must be there.
    """
    dropped: list[str] = []
    left = raw
    for _ in range(_ROUNDS):
        if least is not None and isinstance(left, dict):
            left = merge([Layer("", least), Layer("", left)]).values
        value, problems = shape(left, wanted, "")
        if value is not None:
            return value, tuple(dict.fromkeys(dropped))
        wrong = {_parent(problem.path) if problem.message == MISSING else problem.path for problem in problems}
        if not wrong or "" in wrong:
            return None, ()
        dropped += sorted(wrong)
        left = _without(left, wrong, "")
    return None, ()


def touches(path: str, dropped: tuple[str, ...]) -> bool:
    """Whether what stands at a path may only look wrong because something in or around it was left out."""
    return any(_near(path) == _near(other) for other in dropped)


def _near(path: str) -> str:
    """The thing that a path is about: a step, a validator, a section of the runner."""
    return ".".join(path.split("[", maxsplit=1)[0].split(".")[:2])


def _parent(path: str) -> str:
    cut = max(path.rfind("."), path.rfind("["))
    return path[: max(cut, 0)]


def _without(value: Any, wrong: set[str], path: str) -> Any:
    if isinstance(value, dict):
        inner = {key: f"{path}.{key}" if path else str(key) for key in value}
        return {key: _without(each, wrong, inner[key]) for key, each in value.items() if inner[key] not in wrong}
    if isinstance(value, list):
        items = [(each, f"{path}[{at}]") for at, each in enumerate(value)]
        return [_without(each, wrong, at) for each, at in items if at not in wrong]
    return value
