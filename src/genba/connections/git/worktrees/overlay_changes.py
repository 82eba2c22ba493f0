"""What can differ between an overlay and its template, so that finding three files costs no look at fifty thousand."""

import os
import stat
from pathlib import Path

from genba.domain.sessions.sandbox import Overlay

_MOST = 2000
"""With more than that it is simpler to look at everything."""


def written(overlay: Overlay) -> list[str] | None:
    """The paths that were written, deleted or replaced in the layer; None where there are too many to name.

    A folder stands for all that is in it where the template has no such folder, or where it is hidden.
    """
    upper, lower = os.fsdecode(overlay.upper), os.fsdecode(overlay.lower)
    found: list[str] = []
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(upper, inside)))  # noqa: PTH118  (many, and as they are named)
        except OSError:
            return None
        for entry in entries:
            path = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir(follow_symlinks=False) and _is_merged(entry.path, f"{lower}/{path}"):
                waiting.append(path)
            elif path != ".git":
                found.append(path)
        if len(found) + len(waiting) > _MOST:
            return None
    return found


def _is_merged(upper: str, lower: str) -> bool:
    """Whether a folder of the layer shows what the template has in its place."""
    try:
        if not stat.S_ISDIR(os.lstat(lower).st_mode):
            return False
        return os.getxattr(upper, "user.overlay.opaque", follow_symlinks=False) != b"y"
    except FileNotFoundError:
        return False
    except OSError:
        return True


def template_of(overlay: Overlay) -> str:
    """The commit whose files are in the template."""
    return Path(overlay.lower).parent.name
