"""Reading a little work straight from the files of a private repository, where that is all that there is.

Most instances leave a handful of new objects and a few refs, each in a file of its own. Those are read as bytes that
anybody may have written: nothing is run, no link is followed, and everything is bounded. What comes of it is a pack
like the one in a bundle, and trusted no more. Whatever is large or out of the ordinary is left to a bundle.
"""

import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

_MOST_OBJECTS = 99
_MOST_REFS = 50
_MOST_BYTES = 4 * 1024 * 1024
_DEEPEST_REF = 8
_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3, b"tag": 4}
_SUBMODULE = b"160000"
_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PART = re.compile(r"(?!.*\.\.)(?!.*\.lock$)[A-Za-z0-9_][A-Za-z0-9_.-]*(?<!\.)")
_PLAINLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LooseWork(msgspec.Struct, frozen=True):
    """What the files say: each ref with its object, and a pack of what is new; empty when nothing is."""

    refs: dict[str, str]
    pack: bytes
    new: dict[str, tuple[bytes, bytes]]
    """The kind and the content of each object of the pack, under the name that its content has."""

    @property
    def count(self) -> int:
        return len(self.new)

    @property
    def roots(self) -> tuple[str, ...]:
        """The trees of its commits."""
        return tuple(_links(kind, content, 0)[0] for kind, content in self.new.values() if kind == b"commit")


class _OutOfTheOrdinary(Exception):
    """Not for here."""


def read_loose(
    repository: Path, ordinary: dict[str, bytes], known: tuple[str, ...], also: tuple[str, ...]
) -> LooseWork | None:
    """The work in a private repository; None where it takes git to read it.

    It does where the files that tell how to read the others are not the `ordinary` ones. An object that has no file is
    taken for one that was there before: the import of the pack finds out.
    """
    try:
        with _folder(os.fspath(repository)) as inside:
            if not all(_is_ordinary(name, content, inside) for name, content in ordinary.items()):
                return None
            refs = _packed(inside) | dict(_loose_refs(inside, "refs", 0))
            refs = {name: commit for name, commit in refs.items() if not name.startswith("refs/remotes/")}
            if len(refs) > _MOST_REFS:
                return None
            with _folder("objects", inside) as objects:
                found = _reached(objects, [*refs.values(), *also], set(known))
            sha256 = len(known[0]) == 64  # noqa: PLR2004  (the length of the other kind of name)
            if any(_true_name(*loaded, sha256) != name for name, loaded in found.items()):
                return None
    except (OSError, ValueError, zlib.error, _OutOfTheOrdinary):
        return None
    return LooseWork(refs, _pack(list(found.values()), sha256) if found else b"", found)


@contextmanager
def _folder(name: str, within: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, _PLAINLY | os.O_DIRECTORY, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _content(name: str, within: int) -> bytes | None:
    """A plain file that is not too long; None where there is nothing of that name."""
    try:
        descriptor = os.open(name, _PLAINLY, dir_fd=within)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_MOST_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if content is None or len(content) > _MOST_BYTES:
        raise _OutOfTheOrdinary
    return content


def _is_ordinary(path: str, expected: bytes, within: int) -> bool:
    first, slash, rest = path.partition("/")
    if not slash:
        return _content(path, within) == expected
    with _folder(first, within) as folder:
        return _is_ordinary(rest, expected, folder)


def _packed(inside: int) -> dict[str, str]:
    """The refs that are listed in one file."""
    found = {}
    for line in (_content("packed-refs", inside) or b"").decode("ascii").splitlines():
        if not line.startswith(("#", "^")):
            commit, _, name = line.partition(" ")
            found[_checked("refs", name.removeprefix("refs/"))] = _named(commit)
    return found


def _loose_refs(within: int, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """The refs that have a file each, which counts more than the list."""
    if depth > _DEEPEST_REF:
        raise _OutOfTheOrdinary
    with _folder(path.rpartition("/")[2], within) as folder:
        names = os.listdir(folder)  # noqa: PTH208  (of an open folder, which cannot be replaced)
        if len(names) > _MOST_REFS:
            raise _OutOfTheOrdinary
        for name in names:
            inner = _checked(path, name)
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                yield from _loose_refs(folder, inner, depth + 1)
            else:
                yield inner, _named((_content(name, folder) or b"").decode("ascii").removesuffix("\n"))


def _checked(path: str, name: str) -> str:
    """A name for a ref beyond doubt: git has more rules than these, and allows more."""
    if not all(_PART.fullmatch(part) for part in name.split("/")):
        raise _OutOfTheOrdinary
    return f"{path}/{name}"


def _named(text: str) -> str:
    if not _NAME.fullmatch(text) or not text.strip("0"):
        raise _OutOfTheOrdinary
    return text


def _reached(objects: int, tips: list[str], known: set[str]) -> dict[str, tuple[bytes, bytes]]:
    """The kind and the content of every object that has a file and that the tips lead to."""
    found: dict[str, tuple[bytes, bytes]] = {}
    waiting, room = tips, _MOST_BYTES
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        loaded = _loaded(objects, name, room)
        if loaded is not None:
            room -= len(loaded[1])
            found[name] = loaded
            waiting += _links(*loaded, len(name) // 2)
        if len(found) > _MOST_OBJECTS:
            raise _OutOfTheOrdinary
    return found


def _loaded(objects: int, name: str, room: int) -> tuple[bytes, bytes] | None:
    try:
        with _folder(name[:2], objects) as folder:
            stored = _content(name[2:], folder)
    except FileNotFoundError:
        return None
    if stored is None:
        return None
    opened = zlib.decompressobj()
    head, nothing, content = opened.decompress(stored, room + 1).partition(b"\0")
    kind, _, size = head.partition(b" ")
    if not opened.eof or not nothing or kind not in _KINDS or size != str(len(content)).encode():
        raise _OutOfTheOrdinary
    return kind, content


def _links(kind: bytes, content: bytes, width: int) -> list[str]:
    """The objects that an object leads to. A submodule's commit is in no repository of ours."""
    if kind == b"blob":
        return []
    if kind == b"tree":
        return list(_entries(content, width))
    head = content.partition(b"\n\n")[0].decode("utf-8", "replace").splitlines()
    pairs = (line.partition(" ") for line in head)
    return [_named(value) for key, _, value in pairs if key in ("tree", "parent", "object")]


def _entries(content: bytes, width: int) -> Iterator[str]:
    at = 0
    while at < len(content):
        end = content.index(b"\0", at) + 1
        if not content.startswith(_SUBMODULE, at):
            yield _named(content[end : end + width].hex())
        at = end + width


def _pack(objects: list[tuple[bytes, bytes]], sha256: bool) -> bytes:
    """A pack without deltas."""
    parts = [b"PACK", (2).to_bytes(4, "big"), len(objects).to_bytes(4, "big")]
    for kind, content in objects:
        size, first = len(content), _KINDS[kind] << 4
        head = [first | (size & 15)]
        size >>= 4
        while size:
            head[-1] |= 128
            head.append(size & 127)
            size >>= 7
        parts += [bytes(head), zlib.compress(content, 1)]
    whole = b"".join(parts)
    return whole + bytes.fromhex(_digest(whole, sha256))


def _true_name(kind: bytes, content: bytes, sha256: bool) -> str:
    """What git calls an object, whatever its file is called."""
    return _digest(b"%b %d\0%b" % (kind, len(content), content), sha256)


def _digest(content: bytes, sha256: bool) -> str:
    return (hashlib.sha256(content) if sha256 else hashlib.sha1(content, usedforsecurity=False)).hexdigest()
