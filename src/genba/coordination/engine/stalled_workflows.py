"""What ended in this process and could not be written down: the disk was full, or the database out of reach.

The engine believes that it runs here, and nothing runs it. So it begins again, as after a death: its
steps that were written down are not done again, and the others are safe to repeat. The same holds for what was taken
out of a queue and never began, as when a connection is cut between the two.
"""

from collections.abc import Collection

_WRITING_SECONDS = 3.0
"""How long the outcome of something may take to be written down."""
_BEGINNING_SECONDS = 10.0
"""How long something that was taken may take to begin."""


class StalledWorkflows:
    """Workflows that do not run here any more, or not yet, until the database shows that too."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, float]] = {}
        """By name: since when, and how long that may be so."""

    def __bool__(self) -> bool:
        return bool(self._since)

    def ended(self, name: str, now: float) -> None:
        """Its handler has ended, with whatever it came to."""
        self._since[name] = (now, _WRITING_SECONDS)

    def not_begun(self, names: Collection[str], now: float) -> None:
        """They are held for being carried out here, and have no handler."""
        for name in names:
            self._since.setdefault(name, (now, _BEGINNING_SECONDS))

    def begun_again(self, names: Collection[str], now: float) -> None:
        """They were enqueued again and may take a while to start: they are not enqueued twice."""
        for name in names:
            self._since[name] = (now, _BEGINNING_SECONDS)

    def due(self, pending: Collection[str], running: Collection[str], asked: float, now: float) -> list[str]:
        """Those that have to begin again: they have no handler, and have long been held for being carried out here.

        `pending` is what was held at the moment `asked`, and `running` what has a handler now. Of what has ended since
        it was asked, the answer says nothing.
        """
        for name, (since, _) in list(self._since.items()):
            if name in running or (since < asked and name not in pending):
                del self._since[name]
        return [name for name, (since, most) in self._since.items() if since < asked and now - since > most]
