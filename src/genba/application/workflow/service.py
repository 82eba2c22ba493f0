"""The state-driven workflow of a project, put together for its server: boards, settings, agents and the verifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.application.workflow.external_agents import ExternalAgentVerifier
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.workflow.service import WorkflowService
from genba.coordination.workflow.subtasks import TaskTypes
from genba.domain.errors import GenbaError
from genba.domain.workflow.actions import Hierarchy, Worker
from genba.execution.verification.policy import known_types

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.coordination.workflow.work_verifier import WorkVerifier


def open_service(context: ProjectContext, desk: WorkVerifier | None = None) -> WorkflowService:
    """The service of a project. The caller closes it before the context."""
    board = context.board()
    return WorkflowService(
        WorkflowBoard(board),
        FleetBoard(board),
        desk or ExternalAgentVerifier(context),
        context.project.fleet,
        board.store.project,
        context.project.instructions,
        lambda: agents_here(context),
        types=task_types(context),
    )


def task_types(context: ProjectContext) -> TaskTypes:
    """The types of the project's tasks. A subtask is reviewed like every task of its type."""
    rules = context.project.rules
    declared = rules.task_types if rules is not None else {}
    reviewed: dict[str, str] = {name: found.reviewer_type for name, found in declared.items() if found.requires_review}
    return TaskTypes(known_types(rules), reviewed)


def agents_here(context: ProjectContext) -> tuple[Worker, ...]:
    """The agents of the project that a fleet can start, as they are declared now."""
    found = []
    for info in context.registry.agents()[0]:
        try:
            definition = context.registry.load(info.name)
        except GenbaError:
            continue  # its files are being written
        if definition.joins_fleets:
            found.append(
                Worker(
                    name=info.name,
                    hierarchy=Hierarchy.MANAGER if definition.manages else Hierarchy.WORKER,
                    capabilities=info.capabilities,
                    description=info.description,
                )
            )
    return tuple(found)
