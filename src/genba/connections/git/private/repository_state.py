"""What is written down of a private repository, beside it and out of reach of its agent."""

from pathlib import Path

import msgspec

from genba.connections.atomic_write import put
from genba.domain.decoding import reader
from genba.domain.sessions.workspaces import Workspace


class PrivateState(msgspec.Struct, frozen=True, kw_only=True):
    """What the private repository and the user's had in common when they were last brought together."""

    workspace: Workspace
    tip: str
    head: str = ""
    """The commit that the tree is on, where that is not the branch."""
    strayed: str = ""
    """What the instance calls the place where it is instead."""
    refs: str = ""
    """What the refs of the private repository looked like."""
    ready: bool = True
    """False while it is being replaced: everything in it has been brought back by then."""
    borrowed: str = ""
    """The commit whose pack it borrows; empty where it was made by an older version, which borrowed everything."""


def read_state(private_dir: Path) -> PrivateState | None:
    try:
        return reader(PrivateState).decode((private_dir / "state.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def write_state(private_dir: Path, state: PrivateState) -> None:
    put(private_dir / "state.json", msgspec.json.encode(state))
