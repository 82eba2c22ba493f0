"""Removing in two steps: out of the way at once, and deleted in the background by nobody who is waited for.

What a killed deletion leaves is swept by the next run.
"""

import contextlib
import os
import subprocess
from pathlib import Path

from genba.connections.git.layout import RepositoryLayout

_DELETE = """
    { rm -rf -- "$@" || { chmod -R u+rwX -- "$@"; rm -rf -- "$@"; }; } >/dev/null 2>&1 &
"""
"""In a shell that ends at once: what deletes is then a child of nobody's. The second try is for folders of an agent,
or of an overlay, that nobody may read."""
_BESIDE = ".removed"


def throw_away(layout: RepositoryLayout, path: Path, name: str) -> Path | None:
    """Move something out of the way in one step; returns where it waits for its deletion."""
    if not os.path.lexists(path):
        return None
    place = layout.trash / f"{name}-{os.getpid()}-{os.urandom(4).hex()}"
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.rename(place)
    except OSError:  # another disk
        place = path.with_name(f".{path.name}-{os.urandom(4).hex()}{_BESIDE}")
        path.rename(place)
    return place


def delete_later(*places: Path | None) -> None:
    """Delete in the background. Nobody waits for it, and it outlives whoever asked."""
    paths = [str(place) for place in places if place is not None]
    if not paths:
        return
    with contextlib.suppress(OSError):  # then the next run sweeps it
        subprocess.run(
            ["nice", "-n", "19", "sh", "-c", _DELETE, "sh", *paths],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )


def sweep(layout: RepositoryLayout, root: Path) -> None:
    """Delete what a killed deletion left: in the trash, and beside the working trees below a root."""
    waiting = list(layout.trash.iterdir()) if layout.trash.is_dir() else []
    delete_later(*waiting, *root.glob(f".*{_BESIDE}"))
