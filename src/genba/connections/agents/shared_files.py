"""Files in a folder that an instance writes to as well: what it planted there is neither followed nor waited for."""

import os
import stat
from pathlib import Path

from genba.connections.drafts import put

_LONGEST = 16 * 1024 * 1024


def write_shared(path: Path, content: bytes) -> None:
    """Put a whole new file there. A link that stands in its place is replaced, and never followed."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    put(path, content, mode=0o600)


def read_shared(path: Path) -> bytes | None:
    """What a plain file holds; None for a link, a pipe, something huge, or nothing."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(opened, "rb") as file:
        about = os.fstat(file.fileno())
        return file.read() if stat.S_ISREG(about.st_mode) and about.st_size <= _LONGEST else None
