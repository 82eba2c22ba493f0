"""An agent that only reads, as a stage of a task: it works in a worktree of its own, and Genba ends the task for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genba.definitions.agent.layers import Layer
from genba.domain.errors import NotFoundError
from genba.judgement.loop.closure import stage_of

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.definitions.agent.definition import AgentDefinition
    from genba.domain.tasks.task import Task

AS_STAGE: dict[str, Any] = {
    "parameters": {"issue": {"type": "number"}},
    "runner": {"execution": {"worktree": {"enabled": True}}, "integrations": {"github": {"enabled": True}}},
}
"""What is set for such an agent, over what its files say."""


def command_to_work(context: ProjectContext, task: Task, agent: str = "") -> str:
    """The command that works on a task: with the agent of its stage, else with the given one or that of the project.

    Where there is no such agent, the command that says so.
    """
    stage = stage_of(context.project.stages.get(task.type, ()), task)
    name = stage or agent or context.project.fleet.work.agent or "iterator"
    known = name in context.registry.folders()
    return f"genba run {name} --issue {task.number}" if known else f"genba agent check {name}"


def as_stage(
    context: ProjectContext, definition: AgentDefinition, number: int | None, layers: list[Layer]
) -> AgentDefinition:
    """The definition of a session that names a task; another one where the agent only reads and is at its stage."""
    stages = context.project.stages if number is not None and definition.only_reads else {}
    if number is None or not stages or not context.has_board():
        return definition
    try:
        task = context.board().get(number)
    except NotFoundError:
        return definition  # refused when the session opens
    if stage_of(stages.get(task.type, ()), task) != definition.name:
        return definition
    return context.registry.load(definition.name, [*layers, Layer("its stage", AS_STAGE)])
