"""Removing what was written in a sandbox. The host follows no link there, in whatever state the tree was left.

`tempfile.TemporaryDirectory` of older versions of Python 3.11 does: where it may not remove something, it changes the
mode of what a link leads to. So does `shutil.rmtree` with a handler that calls `chmod`. Use this in place of both for
every tree that an agent or tested code could write.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_ALL_OF_MINE = stat.S_IRWXU


def remove_tree(path: str | Path) -> bool:
    """Remove a file, a link or a whole folder; returns whether it is gone. Safe to repeat, and never raises OSError.

    Each folder is opened from the one above it, so a folder that becomes a link meanwhile is removed as a link. A
    folder that its owner may not read or write is made so through the open folder, never by its path.
    """
    parent, name = os.path.split(os.path.normpath(path))
    try:
        above = os.open(parent or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return not os.path.lexists(path)
    try:
        _remove(above, name)
    finally:
        os.close(above)
    return not os.path.lexists(path)


@contextmanager
def removed_afterwards(folder: str | Path, prefix: str) -> Iterator[Path]:
    """A new folder that only this user may enter; removed in the end, whatever was made of it."""
    import tempfile  # noqa: PLC0415  (importing this module is cheap)

    place = tempfile.mkdtemp(prefix=prefix, dir=folder)
    try:
        yield Path(place)
    finally:
        remove_tree(place)


def _remove(above: int, name: str) -> None:
    """Remove one name of an open folder. Depth is no recursion: an agent can make folders without end."""
    waiting: list[tuple[int, str, list[str]]] = []
    pending: list[tuple[int, str]] = [(above, name)]
    try:
        while pending or waiting:
            if pending:
                at, one = pending.pop()
                if not _unlinked(at, one) and (opened := _opened(at, one)) is not None:
                    waiting.append((opened, one, _names_in(opened)))
            elif waiting[-1][2]:
                pending.append((waiting[-1][0], waiting[-1][2].pop()))
            else:
                opened, one, _ = waiting.pop()
                os.close(opened)
                with contextlib.suppress(OSError):
                    os.rmdir(one, dir_fd=waiting[-1][0] if waiting else above)
            if len(waiting) >= _DEEPEST:
                _flatten(waiting)
    finally:
        for opened, _, _ in waiting:
            os.close(opened)


_DEEPEST = 200
"""So many folders are held open at one time."""


def _flatten(waiting: list[tuple[int, str, list[str]]]) -> None:
    """A folder that is very deep is moved up to the top of the tree, and comes later."""
    opened, one, _ = waiting.pop()
    os.close(opened)
    top, _, names = waiting[0]
    fresh = f".genba-deep-{os.urandom(8).hex()}"
    with contextlib.suppress(OSError):
        os.rename(one, fresh, src_dir_fd=waiting[-1][0], dst_dir_fd=top)
        names.append(fresh)


def _unlinked(at: int, name: str) -> bool:
    """Whether it is gone: everything but a folder."""
    try:
        os.unlink(name, dir_fd=at)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError, OSError):
        return False
    return True


def _opened(at: int, name: str) -> int | None:
    """The open folder, which its owner may then read and write."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=at)
    except PermissionError:
        if not _made_readable(at, name):
            return None
        try:
            opened = os.open(name, _FOLDER, dir_fd=at)
        except OSError:
            return None
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if os.fstat(opened).st_mode & _ALL_OF_MINE != _ALL_OF_MINE:
            os.fchmod(opened, _ALL_OF_MINE)
    return opened


def _made_readable(at: int, name: str) -> bool:
    """Change the mode of a folder that cannot be opened, by a handle that is no link: the kernel resolves no name."""
    try:
        handle = os.open(name, getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    except OSError:
        return False
    try:
        os.chmod(f"/proc/self/fd/{handle}", _ALL_OF_MINE)  # noqa: PTH101  (the folder itself, whatever its name is now)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _names_in(opened: int) -> list[str]:
    try:
        return os.listdir(opened)
    except OSError:
        return []
