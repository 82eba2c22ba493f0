"""How many connections a server holds, and which one it lets go when one more comes.

Rule: a connection that waits for the other side (for a request, for the rest of one, for an answer to be read) can be
ended at any time, and the one that waits longest goes first; one whose request is being answered stays. So connections
that say nothing, however many, keep no request from being answered.
"""

import resource
from collections import OrderedDict
from typing import Protocol

MOST_CONNECTIONS = 960
MOST_OF_AN_ADDRESS = 256
"""Connections of one address that wait for the other side. One more ends the oldest of them."""
BACKLOG = 128
"""Connections that are accepted at once, and held only to be told that there are too many."""
_HEADROOM = 256
"""Descriptors for everything but connections: the database, files, processes."""
_FEWEST = 32


class Guest(Protocol):
    """A connection."""

    address: str

    def end(self) -> None:
        """Close it now."""


class Crowd:
    """The connections of one server."""

    def __init__(self, most: int = MOST_CONNECTIONS, most_of_an_address: int = MOST_OF_AN_ADDRESS) -> None:
        self.most = most
        self.most_of_an_address = most_of_an_address
        self._all: set[Guest] = set()
        self._waiting: OrderedDict[Guest, None] = OrderedDict()
        self._of: dict[str, OrderedDict[Guest, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, guest: Guest) -> None:
        """One more connection, which has asked for nothing yet; where there are too many, one that waits goes."""
        self._all.add(guest)
        self.waits(guest)
        if len(self._all) > self.most:
            longest = next(iter(self._waiting))
            if longest is not guest or len(self._all) > self.most + BACKLOG:
                self._end(longest)

    def leave(self, guest: Guest) -> None:
        self.works(guest)
        self._all.discard(guest)

    def waits(self, guest: Guest) -> None:
        """It waits for the other side; whoever does so already keeps its place in the line."""
        if guest not in self._all or guest in self._waiting:
            return
        own = self._of.setdefault(guest.address, OrderedDict())
        self._waiting[guest] = own[guest] = None
        if len(own) > self.most_of_an_address:
            self._end(next(iter(own)))

    def works(self, guest: Guest) -> None:
        """Its request is being answered: the other side is not waited for."""
        self._waiting.pop(guest, None)
        own = self._of.get(guest.address)
        if own is not None:
            own.pop(guest, None)
            if not own:
                del self._of[guest.address]

    def _end(self, guest: Guest) -> None:
        self.leave(guest)
        guest.end()


def room_for(most: int = MOST_CONNECTIONS) -> int:
    """How many connections the descriptors of this process allow; their soft limit is raised as far as is needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _HEADROOM
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
        except (OSError, ValueError):
            pass
    return most if soft == resource.RLIM_INFINITY else max(_FEWEST, min(most, soft - _HEADROOM))
