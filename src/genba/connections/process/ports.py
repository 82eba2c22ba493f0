"""Free ports in a row, one range for each working tree: two trees on one machine never get the same."""

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FIRST, _LAST = 20_000, 32_000
"""Below the ports that systems give out by themselves."""


@contextmanager
def reserved_ports(count: int) -> Iterator[range]:
    """So many ports that nobody listens on, kept from other runs of this machine until the end."""
    folder = Path(tempfile.gettempdir()) / f"genba-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for first in range(_FIRST, _LAST, count):
        descriptor = os.open(folder / f"{first}-{count}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                ports = range(first, first + count)
                if _are_free(ports):
                    yield ports
                    return
        finally:
            os.close(descriptor)
    raise OSError(f"no {count} free ports in a row between {_FIRST} and {_LAST}")


def _are_free(ports: range) -> bool:
    for port in ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True
