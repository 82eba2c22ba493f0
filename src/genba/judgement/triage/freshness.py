"""How long ago something last happened to an issue."""

import msgspec

from genba.domain.facilitation import Freshness
from genba.domain.timestamps import later


class Ages(msgspec.Struct, frozen=True, kw_only=True):
    """Until when something is called active, and from when on stale."""

    active_hours: float = 24
    stale_days: float = 7


class Clock:
    """The moments between which things are active, recent or stale. Times in the one form compare as texts."""

    def __init__(self, now: str, ages: Ages) -> None:
        self._active = later(now, -ages.active_hours * 3600)
        self._stale = later(now, -ages.stale_days * 86400)

    def freshness_of(self, last: str) -> Freshness:
        """What never happened, as far as anybody saw, is neither active nor stale."""
        if not last:
            return Freshness.RECENT
        if last >= self._active:
            return Freshness.ACTIVE
        return Freshness.RECENT if last >= self._stale else Freshness.STALE


def freshness_of(last: str, now: str, ages: Ages = Ages()) -> Freshness:  # noqa: B008  (a frozen value)
    return Clock(now, ages).freshness_of(last)
