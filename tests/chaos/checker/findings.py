"""The laws, and what it is to break one."""

from enum import StrEnum

import msgspec


class Law(StrEnum):
    """What must hold after a round, whatever happened in it."""

    RIGHT_END = "right end"
    MERGED_ONCE = "merged once"
    NOTHING_LOST = "nothing lost"
    NO_FALSE_DONE = "no false done"
    GREEN = "green target"
    DEPENDENCIES = "dependencies first"
    HISTORY = "history fits the state"
    SESSIONS = "one session at a time"
    QUEUE = "settled once"
    NOTHING_LEFT = "nothing left"
    WHOLE = "whole"


class Finding(msgspec.Struct, frozen=True):
    """A law that does not hold, and what shows it."""

    law: str
    what: str
