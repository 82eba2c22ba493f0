"""Folders in the private HOME of a session, which the instance writes to as well."""

import contextlib
import stat
from pathlib import Path

from genba.domain.errors import BoundaryViolationError


def private_folder(home: str, below: str) -> Path:
    """A folder of the private HOME, made where it is missing. A link that the instance left there is not followed."""
    path = Path(home)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for part in Path(below).parts:
        path /= part
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise BoundaryViolationError(f"~/{below} leads out of the private HOME of the agent")
    return path
