"""A session without a terminal: settled lines, on stderr."""

from collections.abc import Callable

import msgspec

from genba.domain.events import Event, IterationFinished, MergeFinished, RunEnded, RunResumed, RunStarted
from genba.entrypoints.cli.rendering.event_lines import aside, change_text, ending, header, merged, settled
from genba.entrypoints.cli.rendering.printable import printable


class PlainView:
    """One line per finished thing, in the order in which it happened."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write
        self.commits = 0
        self.base = "the base branch"

    def __call__(self, event: Event) -> None:
        for line in self.lines(event):
            self.write(printable(line))

    def lines(self, event: Event) -> list[str]:
        match event:
            case RunStarted():
                self.base = event.workspace.base_branch
                self.commits = event.commits
                return [header(event), ""]
            case RunResumed(started=RunStarted() as started):
                self.base = started.workspace.base_branch
                self.commits = event.commits
                return [
                    header(msgspec.structs.replace(started, agent=event.agent, issue=event.issue)),
                    "",
                    "   resumed",
                ]
            case IterationFinished():
                changed = change_text(event, self.commits)
                self.commits = len(event.commits)
                return [settled(event, changed)]
            case MergeFinished():
                return ["", merged(event, self.base)]
            case RunEnded():
                return [ending(event)]
        line = aside(event)
        return [line] if line else []
