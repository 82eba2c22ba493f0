"""What an egress port decided about a connection."""

from collections.abc import Callable
from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    ALLOWED = "allowed"
    DENIED = "denied"
    FAILED = "failed"
    """It was allowed, and could not be done: the other side was not there, or did not speak HTTP."""


class EgressEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A decision of an egress port. It never holds a key, a token or a part of a message."""

    port: str
    verdict: Verdict
    target: str
    """`host:port`."""
    detail: str = ""


EgressListener = Callable[[EgressEvent], None]
