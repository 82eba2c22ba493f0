"""A database that is out of reach for a while, or whose disk is full.

The outage is reported once, retries become less frequent, and the recovery is reported.
"""

from collections.abc import Callable

from genba.domain.errors import DiskFullError, UnavailableError

_FIRST_SECONDS = 0.25
_LONGEST_SECONDS = 10.0


class DatabaseBackoff:
    """Knows since when the database cannot be used, and how long to wait before it is asked again."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._wait = 0.0

    def out_of_reach(self, error: UnavailableError | DiskFullError) -> float:
        """How many seconds to wait now."""
        if not self._wait:
            self._say(f"{error.message}; nothing new begins, trying again")
        self._wait = min(self._wait * 2 or _FIRST_SECONDS, _LONGEST_SECONDS)
        return self._wait

    def answered(self) -> None:
        if self._wait:
            self._wait = 0.0
            self._say("the database answers again")
