"""What the dashboard looks at: every picture of the project, each read in one look.

Law: it only looks. What people do there goes through `Decisions`, like what they type.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from genba.application.dashboard.agents import AgentsView
from genba.application.dashboard.cost import cost_picture
from genba.application.dashboard.graph import graph_picture
from genba.application.dashboard.queue import queue_picture
from genba.application.dashboard.workers import WorkersView
from genba.application.sessions.liveness import current_sessions
from genba.application.tracker.task_links import outside_of
from genba.blackboard.database.change_counter import ChangeCounter
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.views import board_views
from genba.blackboard.views.board_views import ColumnQuery
from genba.coordination.engine.worker_liveness import absent
from genba.domain.tasks.task import TaskStatus
from genba.domain.views.summary import BoardView, Card, Column
from genba.judgement.views.status_reasons import TaskStatusReason

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.domain.fleet.records import FleetSession, FleetSnapshot
    from genba.domain.tasks.task import Task
    from genba.domain.tracker.remote import TrackedPullRequest
    from genba.domain.views.agents import AgentListView, AgentView
    from genba.domain.views.cost import CostView
    from genba.domain.views.graph import GraphView
    from genba.domain.views.queue import QueueView
    from genba.domain.views.workers import WorkerListView

SHOWN = 50
"""So many cards of a column are drawn at first; the rest is loaded on request."""
NOTHING: Mapping[TaskStatus, int] = MappingProxyType({})
_COLUMNS = (
    TaskStatus.BACKLOG,
    TaskStatus.OPEN,
    TaskStatus.IN_PROGRESS,
    TaskStatus.BLOCKED,
    TaskStatus.REVIEW,
    TaskStatus.DONE,
    TaskStatus.CANCELLED,
)


class DashboardQueries:
    """Looks at one project. Any thread may ask; results are kept until the database changes."""

    def __init__(self, context: ProjectContext) -> None:
        self.context = context
        self.project = context.project.name or context.layout.main.name
        self.fleet = FleetBoard(context.board())
        self.journal_pages = context.ports.pages()
        """Shared, as journals are long: what was read of one is kept for all who look at it."""
        self.pulse = ChangeCounter(self.fleet.store)
        self._lock = threading.Lock()
        self._seen: tuple[object, TaskStatusReason] | None = None
        self._workers = WorkersView(self)
        self._agents = AgentsView(self)

    def close(self) -> None:
        self.pulse.close()

    def stamp(self) -> int:
        """Another number after every change of the blackboard."""
        return self.pulse.now()

    def standing(self) -> TaskStatusReason:
        """The field, and what it says of each task; read once for all who look at the same moment."""
        with self._lock:
            stamp = self.stamp()
            if self._seen is None or self._seen[0] != stamp:
                field = self.fleet.field()
                gone = absent(self.fleet) if any(each.status == "running" for each in field.sessions) else frozenset()
                self._seen = (stamp, TaskStatusReason(field, gone))
            return self._seen[1]

    def field(self) -> FleetSnapshot:
        return self.standing().field

    def sessions(self, number: int | None = None) -> list[FleetSession]:
        """The sessions of one task, or the newest of every task that has not ended, as they stand now."""
        if number is None:
            return current_sessions(self.context, self.fleet, self.field().sessions)
        self.fleet.board.get(number)
        return current_sessions(self.context, self.fleet, self.fleet.sessions(number))

    def session(self, run: str) -> FleetSession:
        return current_sessions(self.context, self.fleet, [self.fleet.session(run)])[0]

    def outside(self, task: Task) -> tuple[str, tuple[TrackedPullRequest, ...]]:
        """Where its issue is, and its pull requests."""
        return outside_of(self.context, task)

    def needs_count(self) -> int:
        return self.fleet.store.read(board_views.needs)

    def board(self, text: str = "", reach: Mapping[TaskStatus, int] = NOTHING) -> BoardView:
        """Every column with its first cards, or as many as `reach` says.

        Columns that most projects do not use are left out when they are empty.
        """
        standing = self.standing()
        counts, slices, landed = self.fleet.store.read(
            lambda tx: (
                board_views.counts(tx),
                {
                    each: board_views.tasks(tx, ColumnQuery(status=each, text=text, limit=reach.get(each, SHOWN)))
                    for each in _COLUMNS
                },
                board_views.landed(tx),
            )
        )
        columns = tuple(
            Column(
                status=status,
                total=counts.get(status, 0),
                cards=tuple(_with_commit(standing.card(task), landed) for task in slices[status]),
            )
            for status in _COLUMNS
            if counts.get(status, 0) or status not in (TaskStatus.BACKLOG, TaskStatus.BLOCKED, TaskStatus.CANCELLED)
        )
        field = standing.field
        return BoardView(
            columns=columns,
            total=sum(counts.values()),
            working=sum(standing.runs(each) for each in field.sessions),
            paused=field.paused,
            stopping=field.stopping,
        )

    def column(self, wanted: ColumnQuery) -> Column:
        """More of one column."""
        standing = self.standing()
        counts, found, landed = self.fleet.store.read(
            lambda tx: (board_views.counts(tx), board_views.tasks(tx, wanted), board_views.landed(tx))
        )
        cards = tuple(_with_commit(standing.card(task), landed) for task in found)
        return Column(status=wanted.status, total=counts.get(wanted.status, 0), cards=cards)

    def workers(self, reach: str = "24h", by: str = "worker") -> WorkerListView:
        """Executors, what each runs now, and who did what when over the last `1h`, `24h` or `7d`."""
        return self._workers.picture(reach, by)

    def queue(self) -> QueueView:
        return queue_picture(self)

    def graph(self, *, ended_too: bool = False, around: int | None = None, depth: int = 2) -> GraphView:
        return graph_picture(self, ended_too=ended_too, around=around, depth=depth)

    def agents(self) -> AgentListView:
        return self._agents.picture()

    def agent(self, name: str) -> AgentView:
        return self._agents.one(name)

    def cost(self, days: int = 30) -> CostView:
        return cost_picture(self, days)


def _with_commit(card: Card, landed: Mapping[int, str]) -> Card:
    """A card of a task that is done says where its work is."""
    if card.status is not TaskStatus.DONE or card.number not in landed:
        return card
    return msgspec.structs.replace(card, why=f"merged {landed[card.number][:7]}")
