"""What the page of the graph looks at: tasks, what each needs, and where each stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.blackboard.views import board_views, graph_views
from genba.domain.errors import NotFoundError
from genba.domain.views.graph import EdgeKind, GraphEdge, GraphNode, GraphView
from genba.judgement.triage.dependency_cycles import components
from genba.judgement.views.graph_layout import places

if TYPE_CHECKING:
    from collections.abc import Collection

    from genba.application.dashboard.queries import DashboardQueries
    from genba.domain.tasks.task import Task

MOST_NODES = 500
"""The most tasks that are drawn; a larger graph cannot be read."""
MOST_DEPTH = 6


def graph_picture(
    queries: DashboardQueries, *, ended_too: bool = False, around: int | None = None, depth: int = 2
) -> GraphView:
    """The open tasks and what they need; all of them; or what is tied to one task."""
    standing = queries.standing()
    store = queries.fleet.store
    if around is not None:
        reach = max(1, min(depth, MOST_DEPTH))
        found = store.read(lambda tx: graph_views.around(tx, around, reach, MOST_NODES))
        if not found:
            raise NotFoundError(f"there is no task #{around}", hint="genba task list")
        total = len(found)
    elif ended_too:
        found, counts = store.read(lambda tx: (graph_views.newest(tx, MOST_NODES), board_views.counts(tx)))
        total = sum(counts.values())
    else:
        whole = list(standing.field.tasks.values())
        found, total = _telling(whole), len(whole)
    tasks = {task.number: task for task in sorted(found, key=lambda each: each.number)}
    edges = _edges(tasks.values(), tasks.keys())
    needs: dict[int, list[int]] = {number: [] for number in tasks}
    for edge in edges:
        needs[edge.later].append(edge.first)
    stands = places(tuple(tasks), needs)
    nodes = tuple(
        GraphNode(
            number=task.number,
            title=task.title,
            status=task.status,
            priority=task.priority,
            why=card.why,
            alive=card.alive,
            needs_you=card.needs_you,
            x=stands[task.number][0],
            y=stands[task.number][1],
        )
        for task in tasks.values()
        for card in (standing.card(task),)
    )
    return GraphView(nodes=nodes, edges=edges, total=total, circles=_circles(edges, needs))


def _telling(tasks: list[Task]) -> list[Task]:
    """Those that are tied to others first, where not all can be shown; then by number."""
    if len(tasks) <= MOST_NODES:
        return tasks
    edges = _edges(tasks, {task.number for task in tasks})
    tied = {number for edge in edges for number in (edge.first, edge.later)}
    return sorted(tasks, key=lambda task: (task.number not in tied, task.status.ended, task.number))[:MOST_NODES]


def _edges(tasks: Collection[Task], known: Collection[int]) -> tuple[GraphEdge, ...]:
    found: dict[tuple[int, int], EdgeKind] = {}
    for task in tasks:
        for first in task.dependencies:
            found.setdefault((first, task.number), EdgeKind.WAITS_FOR)
        if task.parent is not None:
            found.setdefault((task.number, task.parent), EdgeKind.PART_OF)
        if task.blocker is not None and task.blocker.task is not None:
            found[task.blocker.task, task.number] = EdgeKind.BLOCKED_BY
    return tuple(
        GraphEdge(first=first, later=later, kind=kind)
        for (first, later), kind in sorted(found.items())
        if first in known and later in known and first != later
    )


def _circles(edges: tuple[GraphEdge, ...], needs: dict[int, list[int]]) -> tuple[tuple[int, ...], ...]:
    if not edges:
        return ()
    waits = {number: tuple(others) for number, others in needs.items()}
    return tuple(sorted(tuple(sorted(each)) for each in components(waits) if len(each) > 1))
