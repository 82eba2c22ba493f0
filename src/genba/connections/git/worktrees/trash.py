"""Removing in two steps: out of the way at once, and deleted in the background.

A little is deleted at once, in less time than starting a process takes. What a killed deletion leaves is swept
by the next run.
"""

import contextlib
import os
import subprocess
from pathlib import Path

from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.private_folders import make_private_folder
from genba.connections.removal import remove_tree

_DELETE = """
    { rm -rf -- "$@" || { chmod -R u+rwX -- "$@"; rm -rf -- "$@"; }; } >/dev/null 2>&1 &
"""
"""In a shell that ends at once: what deletes is then no child of ours. The second try is for folders of an agent,
or of an overlay, that cannot be read: below its arguments `chmod -R` follows no link."""
_BESIDE = ".removed"
_LITTLE = 100
"""So many names are deleted at once."""


def throw_away(layout: RepositoryLayout, path: Path, name: str) -> Path | None:
    """Move something out of the way in one step; returns where it waits for its deletion."""
    if not os.path.lexists(path):
        return None
    place = layout.trash / f"{name}-{os.getpid()}-{os.urandom(4).hex()}"
    make_private_folder(place.parent)
    try:
        path.rename(place)
    except OSError:  # another disk
        place = path.with_name(f".{path.name}-{os.urandom(4).hex()}{_BESIDE}")
        path.rename(place)
    return place


def delete_later(*places: Path | None) -> None:
    """Delete in the background, unless it is little. The caller does not wait, and the deletion outlives it."""
    paths = [str(place) for place in places if place is not None and not _deleted(place)]
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


def _deleted(place: Path) -> bool:
    """Delete a folder in which there is little, and say whether it is gone. No link is followed."""
    return _is_little(place) and remove_tree(place)


def _is_little(place: Path) -> bool:
    waiting, names = [str(place)], 0
    try:
        while waiting:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    names += 1
                    if names > _LITTLE:
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    except FileNotFoundError:  # another process deletes it already
        return True
    except OSError:  # a folder of an agent that cannot be read
        return False
    return True


def sweep(layout: RepositoryLayout, root: Path) -> None:
    """Delete what a killed deletion left: in the trash, and beside the working trees below a root."""
    waiting = list(layout.trash.iterdir()) if layout.trash.is_dir() else []
    delete_later(*waiting, *root.glob(f".*{_BESIDE}"))
