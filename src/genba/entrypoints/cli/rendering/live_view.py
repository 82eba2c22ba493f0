"""A session at a terminal: settled lines above, the current iteration live below."""

import time
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from genba.domain.events import (
    AgentOutput,
    AskRetried,
    CheckFinished,
    Event,
    IterationFinished,
    IterationStarted,
    LoopEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolUsed,
)
from genba.domain.sessions.replies import Usage
from genba.entrypoints.cli.rendering.event_lines import duration, tokens
from genba.entrypoints.cli.rendering.plain_view import PlainView
from genba.entrypoints.cli.rendering.printable import in_one_line

_STYLES = {"✓": "green", "✗": "red", "■": "yellow", "●": "bold green"}
_DOING_WIDTH = 60
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class LiveView:
    """Listens to a run and draws it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.plain = PlainView(self._print)
        self.current: IterationStarted | None = None
        self.doing = ""
        self.began = time.monotonic()
        self.iteration_began = time.monotonic()
        self.limits: dict[str, object] = {}
        self.usage = Usage()
        self.live = Live(console=console, get_renderable=self._draw, refresh_per_second=8, transient=True)

    def __enter__(self) -> "LiveView":
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.stop()

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.limits = event.limits
            case RunResumed(started=RunStarted() as started):
                self.limits = started.limits
            case IterationStarted():
                self.current, self.doing = event, ""
                self.iteration_began = time.monotonic()
            case ToolUsed(tool=tool, target=target):
                self.doing = in_one_line(f"{tool} {target}").strip()[:_DOING_WIDTH]
            case AgentOutput() if not event.text.startswith("{"):  # what adapters understand comes as a tool
                self.doing = in_one_line(event.text.strip().rpartition("\n")[2]).strip()[:_DOING_WIDTH]
            case CheckFinished():
                self.doing = f"checked {event.result.name}"
            case AskRetried():
                self.doing = in_one_line(f"waits {duration(event.wait_seconds)}: {event.reason}")[:_DOING_WIDTH]
            case IterationFinished():
                self.current = None
                self.usage = self.usage.plus(event.usage)
            case LoopEnded() | RunEnded():
                self.current = None
        self.plain(event)

    def _print(self, line: str) -> None:
        text = Text(line)
        stripped = line.strip()
        if stripped[:1] in _STYLES:
            at = line.index(stripped[0])
            text.stylize(_STYLES[stripped[0]], at, at + 1)
        settled = stripped[:1] in ("✓", "✗")
        self.console.print(
            text,
            highlight=False,
            no_wrap=settled or None,
            overflow="ellipsis" if settled else None,
            soft_wrap=not settled,
        )

    def _draw(self) -> RenderableType:
        if self.current is None:
            return Text("")
        spent = duration(time.monotonic() - self.iteration_began)
        line = f"{self.current.step or '':<12} {self.current.iteration:>3}           {spent:>7}   {self.doing}"
        now = Text.assemble(" ", (self._frame(), "cyan"), f" {line}", no_wrap=True, overflow="ellipsis")
        return Group(now, Text(self._budget(), style="dim", no_wrap=True, overflow="ellipsis"))

    def _frame(self) -> str:
        return _FRAMES[int(time.monotonic() * 10) % len(_FRAMES)]

    def _budget(self) -> str:
        most, wall = self.limits.get("maxIterations"), self.limits.get("wallTimeSeconds")
        iteration = self.current.iteration if self.current else 0
        parts = [f"{iteration} of {most} iterations"]
        if isinstance(wall, int | float):
            parts.append(f"{duration(time.monotonic() - self.began)} of {duration(wall)}")
        most_tokens, most_cost = self.limits.get("tokens"), self.limits.get("costUsd")
        if self.usage.tokens:
            parts.append(tokens(self.usage) + (f" of {most_tokens}" if most_tokens else ""))
        if self.usage.cost_usd:
            parts.append(f"${self.usage.cost_usd:.2f}" + (f" of ${most_cost:.2f}" if most_cost else ""))
        return f"   budget  {' · '.join(parts)}             ctrl-c suspends it"
