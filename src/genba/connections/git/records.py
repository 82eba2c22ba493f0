"""Which working trees are Genba's: one record per branch, written before the tree is made."""

from pathlib import Path

import msgspec

from genba.connections.git.layout import RepositoryLayout


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
        return msgspec.json.decode(path.read_bytes(), type=TreeRecord)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def write_record(layout: RepositoryLayout, record: TreeRecord) -> None:
    path = layout.tree_record(record.branch)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(record))
    fresh.replace(path)


def assign(layout: RepositoryLayout, branch: str, run: str) -> None:
    """Note that a run works in the tree of a branch now."""
    record = read_record(layout.tree_record(branch))
    if record is not None and record.run != run:
        write_record(layout, msgspec.structs.replace(record, run=run))
