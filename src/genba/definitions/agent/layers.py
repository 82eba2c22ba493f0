"""Precedence: several partial files become one, and each value knows where it came from.

Objects merge, arrays and everything else replace. The lowest layer comes first.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from genba.domain.problems import Problem

CHOSEN_BY_TYPE = ("runner.adapter", "runner.completion")
"""Objects whose type decides what else they take: one of another type replaces what lies below it."""


class Layer(msgspec.Struct, frozen=True):
    source: str
    values: dict[str, Any]


class Layered(msgspec.Struct, frozen=True):
    """The merged values, and for each leaf the source that set it."""

    values: dict[str, Any]
    sources: dict[str, str]

    def source_of(self, path: str) -> str:
        """The source of a value or, for what no layer set, of the nearest thing around it."""
        bare = path.split("[", maxsplit=1)[0]
        while bare:
            if bare in self.sources:
                return self.sources[bare]
            below = sorted(at for at in self.sources if at.startswith(f"{bare}."))
            if below:
                return self.sources[below[0]]
            bare = bare.rpartition(".")[0]
        return ""

    def attribute(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """The same problems, each with the file that the wrong value came from."""
        return tuple(
            msgspec.structs.replace(problem, file=self.source_of(problem.path) or problem.file) for problem in problems
        )


def merge(layers: list[Layer]) -> Layered:
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        _merge_into(values, layer.values, layer.source, "", sources)
    return Layered(values, sources)


def _merge_into(
    target: dict[str, Any], update: dict[str, Any], source: str, path: str, sources: dict[str, str]
) -> None:
    for key, value in update.items():
        at = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            if key not in target:
                target[key] = {}
            elif not isinstance(target[key], dict) or _other_type(at, target[key], value):
                _forget(sources, at, target[key])
                target[key] = {}
            if not value:
                sources.setdefault(at, source)
            _merge_into(target[key], value, source, at, sources)
        else:
            if key in target:
                _forget(sources, at, target[key])
            target[key] = value
            sources[at] = source


def _other_type(path: str, below: dict[str, Any], above: dict[str, Any]) -> bool:
    return path in CHOSEN_BY_TYPE and "type" in below and above.get("type", below["type"]) != below["type"]


def _forget(sources: dict[str, str], path: str, value: Any) -> None:
    """Who set a value, and all that is in it."""
    sources.pop(path, None)
    if isinstance(value, dict):
        for key, inner in value.items():
            _forget(sources, f"{path}.{key}", inner)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value with its path; an empty object is a leaf."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def at_path(path: str, value: Any) -> dict[str, Any]:
    """A layer that sets one value."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return dict(value)
