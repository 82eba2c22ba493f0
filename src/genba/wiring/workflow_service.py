"""The state-driven workflow of a project, for whoever serves it: boards, settings, agents and a desk, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.blackboard.fleet import FleetBoard
from genba.blackboard.workflow import WorkflowBoard
from genba.coordination.workflow.service import WorkflowService
from genba.domain.errors import GenbaError
from genba.domain.workflow import ErrorCode, Hierarchy, Worker, WorkflowError

if TYPE_CHECKING:
    from genba.coordination.workflow.desk import Desk, Judged, Place
    from genba.domain.workflow import Seat
    from genba.wiring.house import House


def open_service(house: House, desk: Desk | None = None) -> WorkflowService:
    """The service of a project. Whoever opened it closes it, and the house after it."""
    board = house.board()
    return WorkflowService(
        WorkflowBoard(board),
        FleetBoard(board),
        desk or ClosedDesk(),
        house.project.fleet,
        board.store.project,
        house.project.instructions,
        lambda: agents_here(house),
    )


def agents_here(house: House) -> tuple[Worker, ...]:
    """The agents of the project that a fleet can start, as they are declared now."""
    found = []
    for info in house.registry.agents()[0]:
        try:
            definition = house.registry.load(info.name)
        except GenbaError:
            continue  # somebody writes at it just now
        if definition.adapter_type is not None:
            found.append(
                Worker(
                    name=info.name,
                    hierarchy=Hierarchy.MANAGER if definition.manages else Hierarchy.WORKER,
                    capabilities=info.capabilities,
                    description=info.description,
                )
            )
    return tuple(found)


class ClosedDesk:
    """Where nobody looks at any work: who comes can see what there is, and can take nothing."""

    async def place(self, seat: Seat) -> Place:
        raise _closed(seat)

    async def judge(self, seat: Seat) -> Judged:
        raise _closed(seat)

    async def judge_subtask(self, seat: Seat, number: int) -> Judged:  # noqa: ARG002  (the port's signature)
        raise _closed(seat)

    async def take(self, seat: Seat, number: int) -> Seat:  # noqa: ARG002
        raise _closed(seat)

    async def hand_over(self, seat: Seat, commit: str) -> None:  # noqa: ARG002
        raise _closed(seat)

    async def let_go(self, seat: Seat, why: str) -> None:
        """There is nothing to let go of."""


def _closed(seat: Seat) -> WorkflowError:
    hint = "genba work   serves those that it starts" if seat.spawned else "genba work   works on the tasks"
    return WorkflowError(ErrorCode.FORBIDDEN, "no work is taken or looked at here", hint=hint, action="exit")
