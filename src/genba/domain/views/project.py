"""The field in one picture: is it healthy, what needs you, what runs now, what to do next."""

import msgspec

from genba.domain.facilitation import FieldBlocker, HealthCondition, IssueState, OrphanedWork, Suggestion
from genba.domain.fleet.progress import DecisionView
from genba.domain.views.summary import Card


class IssueLine(msgspec.Struct, frozen=True, kw_only=True):
    """An issue, as the field shows it."""

    number: int
    title: str
    evidence: str = ""
    """The first thing that was seen of it."""
    blocker: FieldBlocker | None = None
    has_task: bool = True
    """Whether it is on the blackboard, and so has a page."""


class StateRow(msgspec.Struct, frozen=True, kw_only=True):
    """The issues of one state; the first of them by name."""

    state: IssueState
    total: int
    issues: tuple[IssueLine, ...] = ()


class ProjectView(msgspec.Struct, frozen=True, kw_only=True):
    looked_at: str
    total: int
    health: tuple[HealthCondition, ...] = ()
    needs: tuple[DecisionView, ...] = ()
    """What only a person can decide."""
    working: tuple[Card, ...] = ()
    """What runs now."""
    suggestions: tuple[Suggestion, ...] = ()
    reason: str = ""
    """Why these come next, or why nothing does."""
    states: tuple[StateRow, ...] = ()
    orphaned: tuple[OrphanedWork, ...] = ()
    notes: tuple[str, ...] = ()
