"""Files of the user's that a command writes into their place: whole, or not at all."""

from __future__ import annotations

import shlex
from pathlib import Path
from stat import S_IMODE

from genba.application.ports import Files
from genba.domain.errors import StateConflictError


def place(files: Files, path: Path, text: str) -> None:
    """Write a file. One that was there keeps who may read and write it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = S_IMODE(path.stat().st_mode) if path.exists() else None
        files.put(path, text.encode(), mode=0o666 if mode is None else mode)
        if mode is not None:
            path.chmod(mode)  # whatever the umask has left of it
    except OSError as error:
        raise StateConflictError(
            f"{path} cannot be written: {error.strerror}",
            unchanged="nothing was changed.",
            hint=f"see who may write there: ls -ld {shlex.quote(str(_there(path.parent)))}",
        ) from error


def _there(folder: Path) -> Path:
    return folder if folder.exists() else folder.parent
