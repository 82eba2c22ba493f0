"""Answering the agents of a fleet that ask what is next: the service, its desk and its server, put together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from genba.application.sessions.branches import base_branch_of, branch_of
from genba.application.workflow.live_work_verifier import FindPart, Landing, LiveWorkVerifier
from genba.application.workflow.server import Door, WorkflowServer, socket_path
from genba.application.workflow.service import agents_here, task_types
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.workflow.runs import RunWorkflow
from genba.coordination.workflow.service import WorkflowService
from genba.domain.errors import NotFoundError
from genba.domain.fleet.records import Purpose
from genba.wiring.sessions.live_segments import Answering

if TYPE_CHECKING:
    from collections.abc import Callable

    from genba.application.sessions.agent_pool import ProjectAgentPool
    from genba.blackboard.fleet.fleet_board import FleetBoard
    from genba.wiring.project.project_context import ProjectContext


async def open_server(
    context: ProjectContext,
    board: FleetBoard,
    looking: FleetBoard,
    crew: ProjectAgentPool,
    part_of: FindPart,
    door: Door,
    executor: str,
    leaving: Callable[[], bool],
) -> tuple[WorkflowServer, Answering]:
    """A server that answers, and the way of sessions to it. `board` waits for its database; `looking` does not."""

    async def landing(number: int) -> Landing:
        field = await asyncio.to_thread(looking.field)
        task = field.tasks.get(number)
        if task is None:
            raise NotFoundError(f"there is no task #{number}")
        base_branch = await base_branch_of(context, crew.base_branch, task, field)
        branch = branch_of(task, Purpose.INTEGRATE, field)
        there = await context.layout.git.commit_of(f"refs/heads/{branch}") is not None
        return Landing(branch if there else base_branch, base_branch)

    service = WorkflowService(
        WorkflowBoard(looking.board),
        looking,
        LiveWorkVerifier(context, part_of, landing, leaving=leaving),
        context.project.fleet,
        looking.store.project,
        context.project.instructions,
        lambda: agents_here(context),
        types=task_types(context),
    )
    server = WorkflowServer(service, door, socket_path(context.layout, executor))
    await asyncio.to_thread(server.open)
    answering = Answering(
        runs=RunWorkflow(WorkflowBoard(board.board)),
        socket=server.path,
        language=context.project.fleet.workflow.language,
        project_id=looking.store.project,
    )
    return server, answering
