"""What git leaves when it is killed: locks that nobody holds, and that stop every git after it."""

import contextlib
import os
from pathlib import Path

from genba.connections.git.layout import RepositoryLayout
from genba.domain.workspaces import Workspace

_LOCK = ".lock"


def clear_locks(layout: RepositoryLayout, workspace: Workspace) -> tuple[str, ...]:
    """Remove the locks of git that whoever died in a working tree has left; says which.

    Only for whoever has the working tree, while no instance lives in it. The user's own checkout is left alone.
    """
    if not workspace.isolated:
        return ()
    git_dir, head = Path(workspace.git_dir), Path("refs/heads", f"{workspace.branch}{_LOCK}")
    own = layout.cell(git_dir) / "repository"
    places = [(git_dir, None), (layout.common / head.parent, head.name), (own, None), (own / head.parent, head.name)]
    return tuple(path for folder, name in places for path in _cleared(folder, name))


def _cleared(folder: Path, name: str | None) -> list[str]:
    """An instance may write in such a folder, so that nothing in it is followed."""
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    cleared = []
    try:
        for found in [name] if name is not None else os.listdir(place):  # noqa: PTH208  (a folder that is open)
            if found.endswith(_LOCK):
                with contextlib.suppress(OSError):
                    os.unlink(found, dir_fd=place)
                    cleared.append(str(folder / found))
    finally:
        os.close(place)
    return cleared
