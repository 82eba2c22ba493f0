"""Free ports in a row, one range for each working tree: two trees on one machine never get the same."""

import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_FIRST, _LAST = 20_000, 32_000
"""Below the ports that systems give out by themselves."""
_BLOCK = 20
"""Ports that are taken together, so that a lock has one name however many are asked for."""


@contextmanager
def reserved_ports(count: int) -> Iterator[range]:
    """So many ports without a listener, kept from other runs of this machine until the end."""
    folder = Path(tempfile.gettempdir()) / f"genba-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if not stat.S_ISDIR(folder.lstat().st_mode) or folder.lstat().st_uid != os.getuid():
        raise OSError(f"{folder} belongs to another user")
    blocks = -(-count // _BLOCK)
    for first in range(_FIRST, _LAST - blocks * _BLOCK, _BLOCK):
        with ExitStack() as held:
            ports = range(first, first + count)
            taken = all(_lock(held, folder / str(first + number * _BLOCK)) for number in range(blocks))
            if taken and _are_free(ports):
                yield ports
                return
    raise OSError(f"no {count} free ports in a row between {_FIRST} and {_LAST}")


def _lock(held: ExitStack, path: Path) -> bool:
    """Take a block of ports until the end; False where another run has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _are_free(ports: range) -> bool:
    for port in ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True
