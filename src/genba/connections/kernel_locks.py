"""Taking a lock of the kernel's without being refused because of a process that only looks at it.

A process that looks whether a lock is held shares it for a moment. One that takes it tells such a moment from a holder.
"""

import fcntl
import random
import time

_LOOKING_SECONDS = 2.0
"""Longer than any look takes, however many processes look and however busy the machine is."""


def lock_alone(descriptor: int) -> bool:
    """Take the lock of an open file, and no other process has it then. False when another process holds it."""
    deadline = time.monotonic() + _LOOKING_SECONDS
    while not _try(descriptor, fcntl.LOCK_EX):
        if not _try(descriptor, fcntl.LOCK_SH):
            return False  # it is held by one that has it alone
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        if time.monotonic() > deadline:
            return False  # it is held by some that share it
        time.sleep(random.uniform(0, 0.002))  # noqa: S311  (so that two who wait do not meet each time)
    return True


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
