"""What ended in this process and could not be written down: the disk was full, or the database out of reach.

The engine holds it for something that is carried out here, and nobody does. So it begins again, as after a death: its
steps that were written down are not done again, and the others are safe to repeat.
"""

from collections.abc import Collection

_WRITING_SECONDS = 3.0
"""How long the outcome of something may take to be written down."""


class Unwritten:
    """The workflows whose handlers have ended here, until their outcome is seen."""

    def __init__(self) -> None:
        self._ended: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._ended)

    def ended(self, name: str, now: float) -> None:
        """Its handler has ended, with whatever it came to."""
        self._ended[name] = now

    def due(self, pending: Collection[str], running: Collection[str], now: float) -> list[str]:
        """Those that have to begin again: they ended long ago, and are still held for being carried out here."""
        for name in [name for name in self._ended if name not in pending or name in running]:
            del self._ended[name]
        return [name for name, since in self._ended.items() if now - since > _WRITING_SECONDS]
