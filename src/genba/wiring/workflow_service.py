"""The state-driven workflow of a project, for whoever serves it: boards, settings, agents and a desk, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.blackboard.fleet import FleetBoard
from genba.blackboard.workflow import WorkflowBoard
from genba.coordination.workflow.service import WorkflowService
from genba.domain.errors import GenbaError
from genba.domain.workflow import Hierarchy, Worker
from genba.wiring.guests import GuestDesk

if TYPE_CHECKING:
    from genba.coordination.workflow.desk import Desk
    from genba.wiring.house import House


def open_service(house: House, desk: Desk | None = None) -> WorkflowService:
    """The service of a project. Whoever opened it closes it, and the house after it."""
    board = house.board()
    return WorkflowService(
        WorkflowBoard(board),
        FleetBoard(board),
        desk or GuestDesk(house),
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
