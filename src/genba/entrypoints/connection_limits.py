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
"""Connections that are accepted at once, and answered only with the refusal."""
_HEADROOM = 256
"""Descriptors for everything but connections: the database, files, processes."""
_FEWEST = 32


class Client(Protocol):
    """A connection."""

    address: str

    def end(self) -> None:
        """Close it now."""


class Crowd:
    """The connections of one server."""

    def __init__(self, most: int = MOST_CONNECTIONS, most_of_an_address: int = MOST_OF_AN_ADDRESS) -> None:
        self.most = most
        self.most_of_an_address = most_of_an_address
        self._all: set[Client] = set()
        self._waiting: OrderedDict[Client, None] = OrderedDict()
        self._of: dict[str, OrderedDict[Client, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, client: Client) -> None:
        """One more connection, which has asked for nothing yet; where there are too many, one that waits goes."""
        self._all.add(client)
        self.waits(client)
        if len(self._all) > self.most:
            longest = next(iter(self._waiting))
            if longest is not client or len(self._all) > self.most + BACKLOG:
                self._end(longest)

    def leave(self, client: Client) -> None:
        self.works(client)
        self._all.discard(client)

    def waits(self, client: Client) -> None:
        """Mark a connection as waiting for its client; one that waits already keeps its place."""
        if client not in self._all or client in self._waiting:
            return
        own = self._of.setdefault(client.address, OrderedDict())
        self._waiting[client] = own[client] = None
        if len(own) > self.most_of_an_address:
            self._end(next(iter(own)))

    def works(self, client: Client) -> None:
        """Its request is being answered: the other side is not waited for."""
        self._waiting.pop(client, None)
        own = self._of.get(client.address)
        if own is not None:
            own.pop(client, None)
            if not own:
                del self._of[client.address]

    def _end(self, client: Client) -> None:
        self.leave(client)
        client.end()


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
