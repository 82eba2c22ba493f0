"""Histories of issues, each labelled by hand: what happened, the state it is in, and what shows it."""

from collections.abc import Callable
from typing import NamedTuple

from genba.domain.facilitation import IssueState
from tests.facilitator.stories import Story

Report = Callable[[Story], None]


class Labelled(NamedTuple):
    """A history of issue 12. `shown` stands in its evidence."""

    name: str
    state: IssueState
    shown: str
    tell: Report

    @property
    def row(self) -> str:
        """Its line in the table of the documentation."""
        return f"| {self.name} | `{self.state}` | {self.shown} |"


CORPUS: list[Labelled] = []


def history(state: IssueState, shown: str) -> Callable[[Report], Report]:
    """Label what a function tells. Its first line says what happened."""

    def add(tell: Report) -> Report:
        name = (tell.__doc__ or "").strip().split("\n")[0].rstrip(".")
        CORPUS.append(Labelled(name, state, shown, tell))
        return tell

    return add
