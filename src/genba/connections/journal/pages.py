"""Bounded pieces of journals, and summaries of them, as use cases read them."""

from pathlib import Path

from genba.connections.journal.overview import Overviews
from genba.connections.journal.paging import LINES, last_lines, line_at, lines_after
from genba.domain.views.session import JournalLines, SessionFacts


class JournalPieces:
    """Reads journals piece by piece. The summaries read last are kept; any thread may ask."""

    def __init__(self) -> None:
        self._overviews = Overviews()

    def last_lines(self, path: Path, before: int | None = None, lines: int = LINES) -> JournalLines:
        return last_lines(path, before, lines)

    def lines_after(self, path: Path, after: int) -> JournalLines:
        return lines_after(path, after)

    def line_at(self, path: Path, offset: int) -> bytes:
        return line_at(path, offset)

    def overview(self, path: Path) -> SessionFacts:
        return self._overviews.of(path)
