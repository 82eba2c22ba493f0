"""Which working trees are Genba's: one record per branch, written before the tree is made."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from genba.connections.atomic_write import put
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.private_folders import make_private_folder
from genba.domain.decoding import reader

_MOST_REMEMBERED = 10_000
_ready: dict[str, tuple[int, int]] = {}
"""By its path: the file of a record of a ready tree. A record is never changed, only replaced."""


class TreeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One working tree of Genba's. Until it is ready, no agent has seen it."""

    branch: str
    path: str
    base: str
    new_branch: bool
    ready: bool
    agent: str = ""
    run: str = ""


def read_record(path: Path) -> TreeRecord | None:
    try:
        return reader(TreeRecord).decode(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def unfinished(layout: RepositoryLayout) -> Iterator[TreeRecord]:
    """The records of trees that are not ready. With many trees only those are read that are new."""
    folder = layout.own / "trees"
    try:
        found = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    if len(_ready) > _MOST_REMEMBERED:
        _ready.clear()
    for entry in found:
        if not entry.name.endswith(".json") or (file := _file(entry)) is None or _ready.get(entry.path) == file:
            continue
        record = read_record(Path(entry.path))
        if record is not None and record.ready:
            _ready[entry.path] = file
        elif record is not None:
            yield record


def _file(entry: os.DirEntry[str]) -> tuple[int, int] | None:
    try:
        result = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return result.st_ino, result.st_mtime_ns


def write_record(layout: RepositoryLayout, record: TreeRecord) -> None:
    path = layout.tree_record(record.branch)
    make_private_folder(path.parent)
    put(path, msgspec.json.encode(record))


def assign(layout: RepositoryLayout, branch: str, run: str) -> None:
    """Note that a run works in the tree of a branch now."""
    record = read_record(layout.tree_record(branch))
    if record is not None and record.run != run:
        write_record(layout, msgspec.structs.replace(record, run=run))
