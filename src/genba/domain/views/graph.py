"""Which task needs which other one, laid out so that what comes first stands on the left."""

from enum import StrEnum

import msgspec

from genba.domain.tasks.task import Priority, TaskStatus


class EdgeKind(StrEnum):
    """Why one task needs another one."""

    WAITS_FOR = "waits_for"
    PART_OF = "part_of"
    """The one that is needed is a part of the other."""
    BLOCKED_BY = "blocked_by"


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    title: str
    status: TaskStatus
    priority: Priority = Priority.MEDIUM
    why: str = ""
    """Why it is where it is, in one sentence."""
    alive: bool = False
    needs_you: bool = False
    x: int = 0
    """The column that it stands in."""
    y: int = 0
    """The row that it stands in."""


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    """`later` needs `first`."""

    first: int
    later: int
    kind: EdgeKind


class GraphView(msgspec.Struct, frozen=True, kw_only=True):
    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    total: int = 0
    """How many there are of the chosen kind; more than are shown where it is too many."""
    circles: tuple[tuple[int, ...], ...] = ()
    """Tasks that wait for each other in a circle: none of them can begin."""
