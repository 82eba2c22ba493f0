"""A channel that remembers its notices, in memory or in a file, and fails as scripted."""

from collections.abc import Callable
from pathlib import Path

from genba.domain.fleet.notifications import Notification


class MemoryChannel:
    """Remembers every notice. `faults` go wrong one after another; None is one that goes well."""

    def __init__(
        self,
        *faults: Exception | None,
        file: Path | None = None,
        at: Callable[[str], None] = lambda _point: None,
    ) -> None:
        self.faults = list(faults)
        self.file = file
        """Survives the process: one key per line."""
        self.at = at
        """Called before and after each notice: a test may end the process there."""
        self.notices: list[Notification] = []

    @property
    def keys(self) -> list[str]:
        if self.file is not None:
            return self.file.read_text("utf-8").split() if self.file.is_file() else []
        return [notice.key for notice in self.notices]

    async def send(self, notice: Notification) -> None:
        self.at("send")
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        self.notices.append(notice)
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{notice.key}\n")
        self.at("is sent")
