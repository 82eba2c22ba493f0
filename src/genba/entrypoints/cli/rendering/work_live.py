"""`genba work` at a terminal: events above, the current state live below."""

import contextlib
import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from genba.domain.fleet.progress import FleetEvent, FleetView
from genba.entrypoints.cli.rendering.work_view import QUIET, WIDTH, event_line, picture_lines

_STYLES = {
    "✓": "green", "●": "bold green", "✗": "red", "≠": "red", "■": "yellow", "‖": "yellow", "?": "bold magenta",
    "◐": "cyan", "◌": "dim", "·": "dim", "○": "cyan",
}  # fmt: skip
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_SECOND = 4


class LiveFleetView:
    """Draws a fleet. Each line is text that is printed as it is: nothing in a title is a word of markup."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> "LiveFleetView":
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self.live.stop()

    def __call__(self, event: FleetEvent) -> None:
        if event.kind not in QUIET:
            self.say(event_line(event))

    def say(self, line: str) -> None:
        with contextlib.suppress(OSError):
            self.console.print(_coloured(line), highlight=False, soft_wrap=True)

    def show(self, picture: FleetView) -> None:
        beat = _FRAMES[int(time.monotonic() * _FRAMES_PER_SECOND) % len(_FRAMES)]
        columns, rows = min(self.console.width, max(WIDTH, 60)), self.console.height
        lines = picture_lines(picture, columns, beat, rows=max(rows - 1, 1))
        self.live.update(Group(*(_coloured(line, beat) for line in lines)), refresh=True)


def _coloured(line: str, beat: str = "") -> Text:
    text = Text(line, no_wrap=True, overflow="ellipsis")
    first = line.strip()[:1]
    style = "cyan" if beat and first == beat else _STYLES.get(first, "")
    if style:
        at = line.index(first)
        text.stylize(style, at, at + 1)
    at = line.rfind("   genba ")
    if at >= 0:
        text.stylize("bold", at, len(line))
    return text
