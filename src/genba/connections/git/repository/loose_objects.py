"""Objects that lie in files of their own, read without a process. What is packed, large or odd is left to git.

What an agent has just committed lies so nearly always. An object is believed because its name is the hash of what it
says, whatever wrote the file. Replaced objects and grafts are ignored, as git is configured to ignore them.
"""

import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from genba.connections.git.repository.object_cache import Memory
from genba.domain.hashes import is_hash

_MOST_BYTES = 256 * 1024
_MOST_COMMITS = 30
_MOST_TREES = 60
_MOST_LOOKED_AT = 300
_PLAINLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = "040000"
_KINDS_OF_FILES = {"100644": "file", "100755": "file", "120000": "link", "160000": "submodule"}
_NOTHING = "000000"

Entries = dict[str, tuple[str, str]]
"""By name: the mode and the object."""


class PlainCommit(NamedTuple):
    tree: str
    parents: tuple[str, ...]
    author: str
    """The address of its author."""
    subject: str


class _LeftToGit(Exception):
    """Not for here."""


def read_blob(git_dir: Path, name: str) -> bytes | None:
    """The content of a file by its hash; None where git must tell."""
    return _read(git_dir, name, b"blob")


def read_raw_commit(git_dir: Path, name: str) -> bytes | None:
    """The content of a commit by its hash; None where git must tell."""
    return _read(git_dir, name, b"commit")


def read_commit(git_dir: Path, name: str) -> PlainCommit | None:
    """What a commit says; None where git must tell."""
    content = _read(git_dir, name, b"commit")
    if content is None:
        return None
    head, _, message = content.partition(b"\n\n")
    lines = head.split(b"\n")
    try:
        tree, parents = _value(lines, b"tree"), tuple(_values(lines, b"parent"))
        author, result = _value(lines, b"author"), message.decode("utf-8")
    except (_LeftToGit, UnicodeDecodeError):
        return None
    odd = "\r" in result or "\0" in result or any(line.startswith(b"encoding ") for line in lines)
    if odd or not all(map(is_hash, (tree, *parents))):
        return None
    return PlainCommit(tree, parents, author.partition("<")[2].partition(">")[0], _subject(result))


def read_span(git_dir: Path, memory: Memory, base: str, commit: str) -> str | None:
    """The commits from a base to a commit, as `spans` asks git for them, where they are one line.

    It may begin where the base once was, and be merged into the base at its end.
    """
    rows: list[str] = []
    begins, below = [base], set[str]()
    at: str | None = commit
    while at is not None and at != base:
        found = read_commit(git_dir, at)
        if found is None or len(rows) >= _MOST_COMMITS:
            return None
        rows.append(f">\0{at}\0{found.tree}\0{' '.join(found.parents)}\0{found.subject}\0")
        if found.parents != (base,) and not below:
            below = memory.known_ancestors(base)
        begins += [parent for parent in found.parents if parent in below]
        going_on = [parent for parent in found.parents if parent not in begins]
        if len(going_on) > 1 or not found.parents:
            return None
        at = going_on[0] if going_on else None
    own = {row.split("\0")[1] for row in rows}
    if not rows or not _is_all(git_dir, memory, base, begins, own):
        return None
    for begin in dict.fromkeys(begins):
        known = _tree_and_parents(git_dir, memory, begin)
        if known is None:
            return None
        rows.append(f"-\0{begin}\0{known[0]}\0{' '.join(known[1])}\0\0")
    return "".join(rows)


def _is_all(git_dir: Path, memory: Memory, base: str, begins: list[str], own: set[str]) -> bool:
    """Whether none of the commits of a line is one of the base: each comes after where the line begins, and all that
    the base has got since then is known."""
    if set(begins) == {base}:
        return True
    before = memory.known_ancestors(begins[-1])
    seen, left = {base}, [base]
    while left:
        at = left.pop()
        if at in before:
            continue
        known = _tree_and_parents(git_dir, memory, at)
        if known is None or at in own or len(seen) > _MOST_LOOKED_AT:
            return False
        memory.know(at, *known)
        for parent in known[1]:
            if parent not in seen:
                seen.add(parent)
                left.append(parent)
    return True


def read_changes(git_dir: Path, memory: Memory, base: str, commit: str) -> str | None:
    """What differs between two commits, as `spans` asks git for it; None where git must tell."""
    old, new = (_tree_and_parents(git_dir, memory, one) for one in (base, commit))
    if old is None or new is None:
        return None
    try:
        found = sorted(_Comparison(git_dir).changes("", old[0], new[0]), key=lambda change: change[0].encode())
    except _LeftToGit:
        return None
    return "".join(f"{message}\0{path}\0" for path, message in found)


class _Comparison:
    """Compares two trees, and looks only into what is not the same in both."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self.looked = 0

    def changes(self, folder: str, old: str, new: str) -> Iterator[tuple[str, str]]:
        """The path of each file that differs, and what git would say of it."""
        if old == new:
            return
        before, after = self._entries(old), self._entries(new)
        for name in before.keys() | after.keys():
            was, now = before.get(name), after.get(name)
            if was != now:
                yield from self._change(folder + name, was, now)

    def _change(self, path: str, was: tuple[str, str] | None, now: tuple[str, str] | None) -> Iterator[tuple[str, str]]:
        inner = tuple(entry[1] if entry is not None and entry[0] == _FOLDER else "" for entry in (was, now))
        if any(inner):
            yield from self.changes(f"{path}/", *inner)
        was, now = (None if entry is None or entry[0] == _FOLDER else entry for entry in (was, now))
        if was is None and now is None:
            return
        width = len((was or now or ("", ""))[1])
        (old_mode, old), (new_mode, new) = (entry or (_NOTHING, "0" * width) for entry in (was, now))
        yield path, f":{old_mode} {new_mode} {old} {new} {_status(old_mode, new_mode)}"

    def _entries(self, name: str) -> Entries:
        """What is in a tree; nothing where there is none."""
        if not name:
            return {}
        self.looked += 1
        content = _read(self.git_dir, name, b"tree") if self.looked <= _MOST_TREES else None
        if content is None:
            raise _LeftToGit
        return dict(_parsed(content, len(name) // 2))


def _parsed(content: bytes, width: int) -> Iterator[tuple[str, tuple[str, str]]]:
    at = 0
    while at < len(content):
        end = content.find(b"\0", at)
        mode, _, name = content[at:end].partition(b" ")
        at = end + 1 + width
        plain = mode.decode("ascii", "replace").zfill(6)
        if end < 0 or at > len(content) or (plain != _FOLDER and plain not in _KINDS_OF_FILES) or b"\r" in name:
            raise _LeftToGit
        try:
            yield name.decode("utf-8"), (plain, content[end + 1 : at].hex())
        except UnicodeDecodeError as error:
            raise _LeftToGit from error


def _status(old: str, new: str) -> str:
    if old == _NOTHING:
        return "A"
    if new == _NOTHING:
        return "D"
    return "M" if _KINDS_OF_FILES[old] == _KINDS_OF_FILES[new] else "T"


def _tree_and_parents(git_dir: Path, memory: Memory, commit: str) -> tuple[str, tuple[str, ...]] | None:
    tree, parents = memory.trees.get(commit), memory.parents.get(commit)
    if tree is not None and parents is not None:
        return tree, parents
    found = read_commit(git_dir, commit)
    return (found.tree, found.parents) if found is not None else None


def _value(lines: list[bytes], key: bytes) -> str:
    found = _values(lines, key)
    if len(found) != 1:
        raise _LeftToGit
    return found[0]


def _values(lines: list[bytes], key: bytes) -> list[str]:
    return [line[len(key) + 1 :].decode("utf-8") for line in lines if line.startswith(key + b" ")]


def _subject(message: str) -> str:
    """The first paragraph in one line."""
    lines: list[str] = []
    for line in message.split("\n"):
        if line.strip(" \t\v\f"):
            lines.append(line.rstrip(" \t\v\f"))
        elif lines:
            break
    return " ".join(lines)


def _read(git_dir: Path, name: str, kind: bytes) -> bytes | None:
    """The content of an object of a kind, if it has a file of its own, is not large, and is what its name says."""
    try:
        descriptor = os.open(f"{git_dir}/objects/{name[:2]}/{name[2:]}", _PLAINLY)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        stored = file.read(_MOST_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    if len(stored) > _MOST_BYTES:
        return None
    opened = zlib.decompressobj()
    try:
        whole = opened.decompress(stored, _MOST_BYTES)
    except zlib.error:
        return None
    make = hashlib.sha256 if len(name) == hashlib.sha256().digest_size * 2 else hashlib.sha1
    head, _, content = whole.partition(b"\0")
    same = opened.eof and make(whole, usedforsecurity=False).hexdigest() == name
    return content if same and head == kind + f" {len(content)}".encode() else None
