"""Folders of Genba's own, which only their owner can enter, whichever command makes the first of them."""

import os
from pathlib import Path


def close_folder(path: str | Path) -> None:
    """Make a folder that no other user can enter; one of ours that is open is closed. A link is left to its owner."""
    folder = Path(path)
    if folder.is_symlink():
        return
    make_private_folder(folder)
    seen = folder.stat()
    if seen.st_uid == os.getuid() and seen.st_mode & 0o077:
        folder.chmod(0o700)


def make_private_folder(path: str | Path) -> None:
    """Make a folder and all that are missing above it, each with mode 0700. One that is there stays as it is."""
    missing, folder = [], Path(path)
    while not folder.is_dir():
        missing.append(folder)
        if folder == folder.parent:
            break
        folder = folder.parent
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)  # noqa: PTH102  (of Path.mkdir only the last folder gets the mode)
        except FileExistsError:
            if not each.is_dir():
                raise
