"""Files below a folder that an agent may write: opened component by component, and no link is ever followed.

An agent can exchange a folder for a link at any moment. Each component is opened relative to the one before, with
`O_NOFOLLOW`, so that a path never leads out of the tree that it was asked for.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator

DEEPEST = 200
"""Folders within folders; git cannot name a file much deeper than this either."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1024 * 1024


@contextlib.contextmanager
def folder_beneath(root: bytes, path: bytes) -> Iterator[int]:
    """The open folder at a path below a root. Raises OSError where a component is a link, or no folder."""
    descriptor = os.open(root, _FOLDER)
    try:
        for name in path.split(b"/") if path else ():
            inner = _opened(descriptor, name)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(within: int, name: bytes) -> int:
    """Open a folder. One that its owner has closed is opened to its owner again."""
    try:
        return os.open(name, _FOLDER, dir_fd=within)
    except PermissionError:
        seen = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
        try:
            mode = os.fstat(seen).st_mode
            if not stat.S_ISDIR(mode):
                raise
            os.chmod(f"/proc/self/fd/{seen}", stat.S_IMODE(mode) | stat.S_IRWXU)  # noqa: PTH101
        finally:
            os.close(seen)
        return os.open(name, _FOLDER, dir_fd=within)


def split(path: bytes) -> tuple[bytes, bytes]:
    """The folder and the name of a path."""
    folder, _, name = path.rpartition(b"/")
    return folder, name


def read_beneath(root: bytes, path: bytes, largest: int) -> bytes | None:
    """The content of a plain file that is not too long; None for everything else."""
    folder, name = split(path)
    try:
        with folder_beneath(root, folder) as within:
            descriptor = os.open(name, _FILE, dir_fd=within)
            with os.fdopen(descriptor, "rb", buffering=0) as file:
                seen = os.fstat(descriptor)
                if not stat.S_ISREG(seen.st_mode) or seen.st_size > largest:
                    return None
                content = b"".join(iter(lambda: file.read(_CHUNK), b""))
    except OSError:
        return None
    return content if len(content) <= largest else None


def copy_beneath(source: bytes, target: bytes, path: bytes, most: int) -> int:
    """Copy a plain file or a link from below one root to the same path below another; returns its size in bytes.

    Raises OSError where it is neither, or where it is longer than `most`.
    """
    folder, name = split(path)
    with folder_beneath(source, folder) as there, made_beneath(target, folder) as here:
        seen = os.stat(name, dir_fd=there, follow_symlinks=False)
        clear(here, name)
        if stat.S_ISLNK(seen.st_mode):
            os.symlink(os.readlink(name, dir_fd=there), name, dir_fd=here)
            return seen.st_size
        given = os.open(name, _FILE, dir_fd=there)
        try:
            seen = os.fstat(given)
            if not stat.S_ISREG(seen.st_mode):
                raise OSError(errno.EINVAL, "not a plain file", os.fsdecode(path))
            if seen.st_size > most:  # a file of holes says at once how long it is, and takes minutes to read
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fsdecode(path))
            mode = 0o777 if seen.st_mode & stat.S_IXUSR else 0o666
            made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=here)
            try:
                return _copied(given, made, most)
            finally:
                os.close(made)
        finally:
            os.close(given)


def _copied(given: int, made: int, most: int) -> int:
    size = 0
    while chunk := os.read(given, _CHUNK):
        size += len(chunk)
        if size > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        view = memoryview(chunk)
        while view:
            view = view[os.write(made, view) :]
    return size


@contextlib.contextmanager
def made_beneath(root: bytes, path: bytes) -> Iterator[int]:
    """As `folder_beneath`; a component that is missing, or is no folder, is made a folder."""
    descriptor = os.open(root, _FOLDER)
    try:
        for name in path.split(b"/") if path else ():
            inner = _made(descriptor, name)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _made(within: int, name: bytes) -> int:
    try:
        return _opened(within, name)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=within)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        os.unlink(name, dir_fd=within)
        os.mkdir(name, dir_fd=within)
    return os.open(name, _FOLDER, dir_fd=within)


def clear(within: int, name: bytes) -> None:
    """Remove whatever has a name in an open folder; a link is removed and never followed."""
    try:
        os.unlink(name, dir_fd=within)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # a folder: Linux says the one, POSIX the other
        shutil.rmtree(name, dir_fd=within)


def remove_beneath(root: bytes, path: bytes) -> None:
    """Remove a file, and the folders above it that are empty then."""
    folder, name = split(path)
    try:
        with folder_beneath(root, folder) as within:
            os.unlink(name, dir_fd=within)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return
    while folder:
        folder, name = split(folder)
        try:
            with folder_beneath(root, folder) as within:
                os.rmdir(name, dir_fd=within)
        except OSError:
            return
