"""What became of each key of an imported definition.

A key is reported by its place in the original, also where the importer reads it in the layout of another version. What
the conversion says nothing of is reported by `complete`: no key is lost without a row.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec


class KeyOutcome(StrEnum):
    MAPPED = "mapped"
    NO_EFFECT = "no_effect"
    NEEDS_ATTENTION = "needs_attention"


class ImportedKey(msgspec.Struct, frozen=True):
    """One key of the original, what became of it, and where it is now or why it is nowhere."""

    file: str
    key: str
    outcome: KeyOutcome
    detail: str = ""


class ImportReport:
    """Collects at least one row for each key. A row that is `whole` is also about everything below its key."""

    def __init__(self) -> None:
        self._rows: dict[ImportedKey, None] = {}
        self._reported: set[tuple[str, str]] = set()
        self._whole: set[tuple[str, str]] = set()
        self._moved: dict[str, tuple[str, str]] = {}
        self._sections: set[tuple[str, str]] = set()

    @property
    def rows(self) -> tuple[ImportedKey, ...]:
        return tuple(self._rows)

    def moved(self, to: str, file: str, key: str) -> None:
        """From now on, rows about `to` in agent.json are about this key of the original."""
        self._moved[to] = (file, key)

    def mapped(self, file: str, key: str, to: str = "", *, whole: bool = False) -> None:
        self._row(file, key, KeyOutcome.MAPPED, to, whole)

    def no_effect(self, file: str, key: str, why: str, *, whole: bool = True) -> None:
        self._row(file, key, KeyOutcome.NO_EFFECT, why, whole)

    def attention(self, file: str, key: str, what: str, *, whole: bool = False) -> None:
        self._row(file, key, KeyOutcome.NEEDS_ATTENTION, what, whole)

    def sections(self, file: str, *keys: str) -> None:
        """The importer reads these objects and lists, so one that is empty is no key that Genba does not know."""
        self._sections.update(self._original(file, key) for key in keys)

    def complete(self, file: str, value: dict[str, Any]) -> None:
        """Report every key of a file that has no row yet."""
        for key, left in tuple(self._untold(file, value, "")):
            if (file, key) in self._sections and left in ({}, []):
                self.no_effect(file, key, "it is empty")
            else:
                self.attention(file, key, "Genba has no such key, or not with such a value: it was left out")

    def _row(self, file: str, key: str, outcome: KeyOutcome, detail: str, whole: bool) -> None:
        file, key = self._original(file, key)
        self._rows[ImportedKey(file, key, outcome, detail)] = None
        self._reported.add((file, key))
        if whole:
            self._whole.add((file, key))

    def _original(self, file: str, key: str) -> tuple[str, str]:
        above, rest = key, ""
        while file == "agent.json" and above:
            if above in self._moved:
                there, old = self._moved[above]
                return there, f"{old}{rest}"
            above, rest = above.rpartition(".")[0], f".{above.rpartition('.')[2]}{rest}"
        return file, key

    def _untold(self, file: str, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if (file, path) in self._whole:
            return
        below = _below(value, path)
        if not below:
            if path and (file, path) not in self._reported:
                yield path, value
            return
        for inner, each in below:
            yield from self._untold(file, each, inner)


def _below(value: Any, path: str) -> list[tuple[str, Any]]:
    """The keys in a value; those of the objects in a list, too."""
    if isinstance(value, dict):
        return [(f"{path}.{key}" if path else str(key), each) for key, each in value.items()]
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [(f"{path}[{at}]", each) for at, each in enumerate(value)]
    return []
