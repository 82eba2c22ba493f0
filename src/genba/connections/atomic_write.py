"""Files that come into their place whole: a draft first, then one move. Every connection may write with it.

Law: every reader finds the old file or the new one. A draft's name has the process that writes it, so that the next one
knows one whose writer died, and takes it away.
"""

import contextlib
import os
import re
from pathlib import Path

_NAME = re.compile(r"\.(\d+)-[0-9a-f]{16}\.new")


def put(path: Path, content: bytes, *, mode: int = 0o666, folder: Path | None = None) -> None:
    """Write a whole file. A link that stands in its place is replaced, and never followed.

    `mode`: who may read it, as far as the umask of this process allows. `folder`: where the draft is written, on the
    same disk, if that is not beside the file.
    """
    fresh = (folder or path.parent) / f".{os.getpid()}-{os.urandom(8).hex()}.new"
    try:
        opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(opened, "wb") as file:
            file.write(content)
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


def writer_of(name: str) -> int | None:
    """The process that writes a draft of this name; None for what is no draft."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found is not None else None
