"""How large a commit would be as files, without writing them.

Trees are named by their content, so ten of them can say a hundred million files, and a file of zeros that takes a
gigabyte is packed into a thousandth of it. A git that writes the files of such a commit runs for ever, or until the
memory or the disk is full. Here each tree is read once, whatever the number of places that it stands in.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

_FOLDER = b"40000 "
_SUBMODULE = b"160000 "
_FEW = 16
"""A file of the user's that stands in so many places is not asked for its size."""


class Breadth(NamedTuple):
    """So many files, of so many bytes together; and the longest path among them, as far as it is new."""

    files: int
    bytes: int
    path: int = 0

    def within(self, other: "Breadth") -> bool:
        return all(mine <= allowed for mine, allowed in zip(self, other, strict=True))

    def beside(self, other: "Breadth") -> "Breadth":
        """The most of both in each way."""
        return Breadth(*(max(pair) for pair in zip(self, other, strict=True)))


MOST = Breadth(1_000_000, 16 * 1024**3, 3500)
"""What any commit may be. One on a base that is large already may be twice as large as that. No system takes a path
that is much longer."""
_LONGEST_NAME = 255
"""The longest name of a file that a disk takes."""

Objects = Mapping[str, tuple[bytes, bytes | int]]
"""New objects by their names: the kind of each, and its content; of a file its size will do."""
Reader = Callable[[list[str]], Objects]
"""Reads objects that were there before: the content of trees, and the sizes of files."""


class _Old:
    """What was there before. Read on demand, and remembered: it does not change."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._known: dict[str, tuple[bytes, bytes | int]] = {}
        self._breadths: dict[str, Breadth] = {}

    def need(self, names: Iterable[str]) -> None:
        """Read these, and all trees below them, level by level."""
        waiting = sorted({name for name in names if name not in self._known})
        while waiting:
            found = self._read(waiting)
            self._known.update(found)
            below = {child for kind, body in found.values() if isinstance(body, bytes) and kind == b"tree"
                     for _, child, _ in entries(body, len(waiting[0]) // 2)}  # fmt: skip
            waiting = sorted(below - self._known.keys())

    def breadth(self, name: str) -> Breadth:
        for each in ordered([name], self._children):
            kind, body = self._known.get(each, (b"blob", 0))
            if kind == b"tree":
                parts = [self._breadths[child] for child in self._children(each)]
                self._breadths[each] = Breadth(sum(part.files for part in parts), sum(part.bytes for part in parts))
            else:
                self._breadths[each] = Breadth(1, body if isinstance(body, int) else len(body))
        return self._breadths[name]

    def _children(self, name: str) -> list[str]:
        kind, body = self._known.get(name, (b"blob", 0))
        return children(body, name) if kind == b"tree" and isinstance(body, bytes) else []


def widest(roots: Iterable[str], new: Objects, read: Reader) -> Breadth:
    """The most that any of these trees is. Of what was there before, what stands in one place counts as one file."""
    old = _Old(read)
    most = Breadth(0, 0)
    for root in dict.fromkeys(roots):
        most = most.beside(_breadth(root, new, old))
    return most


def whole(root: str, read: Reader) -> Breadth:
    """All that a tree is that was there before."""
    old = _Old(read)
    old.need([root])
    return old.breadth(root)


def _breadth(root: str, new: Objects, old: _Old) -> Breadth:
    def below(name: str) -> list[str]:
        kind, body = new.get(name, (b"", b""))
        return children(body, name) if kind == b"tree" and isinstance(body, bytes) else []

    places, paths = {root: 1}, {root: 0}
    folders: set[str] = set()
    for name in reversed(list(ordered([root], below))):
        kind, body = new.get(name, (b"", b""))
        if kind == b"tree" and isinstance(body, bytes):
            for is_folder, child, letters in entries(body, len(name) // 2):
                places[child] = places.get(child, 0) + places[name]
                long = letters if letters <= _LONGEST_NAME else MOST.path + letters
                paths[child] = max(paths.get(child, 0), paths[name] + long + 1)
                if is_folder:
                    folders.add(child)
    often = [name for name, count in places.items() if name not in new and count > (1 if name in folders else _FEW)]
    old.need(often)
    asked = {name: old.breadth(name) for name in often}
    files, size = 0, 0
    for name, count in places.items():
        kind, body = new.get(name, (b"", b""))
        if name in asked:
            files, size = files + count * asked[name].files, size + count * asked[name].bytes
        elif kind != b"tree":
            files += count
            size += count * (body if isinstance(body, int) else len(body))
    return Breadth(files, size, max(paths.values()))


def ordered(roots: Iterable[str], below: Callable[[str], list[str]]) -> Iterator[str]:
    """Each name once, after all that is below it. Not by recursion: a tree can be deeper than a stack."""
    done: set[str] = set()
    waiting = [(root, False) for root in roots]
    while waiting:
        name, is_ready = waiting.pop()
        if is_ready:
            yield name
        elif name not in done:
            done.add(name)
            waiting.append((name, True))
            waiting += [(child, False) for child in below(name) if child not in done]


def children(body: bytes, name: str) -> list[str]:
    """What the content of a tree of this name leads to, each as often as it stands there."""
    return [child for _, child, _ in entries(body, len(name) // 2)]


def named(body: bytes, name: str, files: Collection[bytes]) -> list[str]:
    """The objects that a tree of this name has under the names of some files."""
    width = len(name) // 2
    ends = ((body.find(b" %s\0" % file), len(file) + 2) for file in files)
    return [body[at + length : at + length + width].hex() for at, length in ends if at >= 0]


def entries(content: bytes, width: int) -> Iterator[tuple[bool, str, int]]:
    """For each entry of a tree whether it is a folder, its object, and how long the name of its file is.

    A submodule is in no repository of ours.
    """
    at = 0
    while at < len(content):
        end = content.find(b"\0", at) + 1
        if end == 0:
            return
        if not content.startswith(_SUBMODULE, at):
            letters = end - 1 - content.index(b" ", at) - 1
            yield content.startswith(_FOLDER, at), content[end : end + width].hex(), letters
        at = end + width
