"""Files in a folder that an instance writes to as well: what it planted there is neither followed nor waited for."""

import hashlib
from pathlib import Path

from genba.connections.atomic_write import put
from genba.connections.private_folders import make_private_folder
from genba.connections.removal import remove_tree
from genba.connections.untrusted_files import read_file
from genba.domain.errors import BoundaryViolationError, is_disk_full

_LONGEST = 16 * 1024 * 1024


def write_shared(path: Path, content: bytes) -> None:
    """Put a whole new file there. A link or a folder that stands in its place is replaced, and never followed.

    Raises BoundaryViolationError where the instance left something in the way.
    """
    try:
        make_private_folder(path.parent)
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        put(path, content, mode=0o600)
    except OSError as error:
        if is_disk_full(error):
            raise
        raise BoundaryViolationError(f"{path} cannot be written: {error.strerror}") from error


def read_shared(path: Path) -> bytes | None:
    """What a plain file holds; None for a link, a pipe, a folder, something huge, or nothing."""
    return read_file(path, _LONGEST)


def digest(text: str) -> str:
    """The SHA-256 of a text, which may have bytes that are no text."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogateescape")).hexdigest()
