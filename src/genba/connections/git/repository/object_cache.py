"""Git's answers about objects, so that it is not asked again: an object with a hash never changes.

Only answers about objects that are named by their whole hash are kept, and only so many of them.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from genba.domain.hashes import is_hash

Key = TypeVar("Key")
Value = TypeVar("Value")

_MOST_TEXT = 16 * 1024 * 1024
_MOST_PATHS = 400_000
_MOST_COMMITS = 20_000
_MOST_STEPS = 1000

Listing = Mapping[str, tuple[str, str]]
"""By path: the mode and the object."""


class _Kept(Generic[Key, Value]):
    """The newest answers, as long as they weigh no more than they may."""

    def __init__(self, most: int, weigh: Callable[[Value], int]) -> None:
        self.most = most
        self.weigh = weigh
        self._known: OrderedDict[Key, Value] = OrderedDict()
        self._weight = 0

    def get(self, key: Key) -> Value | None:
        value = self._known.get(key)
        if value is not None:
            self._known.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> None:
        weight = self.weigh(value)
        if key in self._known or weight > self.most // 4:
            return
        self._known[key] = value
        self._weight += weight
        while self._weight > self.most:
            _, dropped = self._known.popitem(last=False)
            self._weight -= self.weigh(dropped)


class Memory:
    """What is known of the objects of one repository. Used on the loop alone."""

    def __init__(self) -> None:
        self.answers: _Kept[tuple[str, ...], str] = _Kept(_MOST_TEXT, lambda text: len(text) + 200)
        """By command: what git printed."""
        self.blobs: _Kept[str, bytes] = _Kept(_MOST_TEXT, lambda content: len(content) + 100)
        self.listings: _Kept[str, Listing] = _Kept(_MOST_PATHS, lambda listing: len(listing) + 10)
        """By commit: all of its files."""
        self.trees: _Kept[str, str] = _Kept(_MOST_COMMITS, lambda _tree: 1)
        """By commit: its tree."""
        self.parents: _Kept[str, tuple[str, ...]] = _Kept(_MOST_COMMITS, len)

    def know(self, commit: str, tree: str, parents: tuple[str, ...]) -> None:
        if is_hash(commit) and is_hash(tree) and all(map(is_hash, parents)):
            self.trees.put(commit, tree)
            self.parents.put(commit, parents)

    def is_known_ancestor(self, commit: str, of: str) -> bool:
        """Whether a commit is known to lead to another one; False says nothing."""
        return commit in self.known_ancestors(of, until=commit)

    def known_ancestors(self, of: str, until: str = "") -> set[str]:
        """A commit and what is known to lead to it, or as much of that as it takes to find another one."""
        seen, left = {of}, [of]
        while left and len(seen) < _MOST_STEPS and until not in seen:
            for parent in self.parents.get(left.pop()) or ():
                if parent not in seen:
                    seen.add(parent)
                    left.append(parent)
        return seen
