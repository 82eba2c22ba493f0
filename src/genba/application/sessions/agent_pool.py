"""The crew: the agents of a project as the orchestrator can start them, and what this machine has left for them."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.sessions.branches import SCRATCH, base_branch_of, branch_of
from genba.application.sessions.host import host_name
from genba.application.sessions.liveness import process_lives
from genba.application.sessions.stages import AS_STAGE
from genba.application.tracker.board_filter import BoardFilter
from genba.coordination.scheduler.handover_notes import note_for
from genba.coordination.scheduler.planning import limits_of, plan_parameters
from genba.coordination.scheduler.reviews import review_parameters
from genba.coordination.scheduler.session_plan import SessionPlan
from genba.definitions.agent.layers import Layer
from genba.domain.errors import ConfigurationError, GenbaError, NotFoundError
from genba.domain.fleet.records import FleetSession, FleetSnapshot, Purpose, Resources
from genba.domain.problems import Problem
from genba.execution.verification.policy import known_types
from genba.judgement.loop.closure import ends_task
from genba.judgement.scheduling.actions import Agent, WorkerContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from genba.application.project.project_context import ProjectContext
    from genba.blackboard.fleet.fleet_board import FleetBoard
    from genba.definitions.agent.definition import AgentDefinition
    from genba.definitions.agent.registry import AgentInfo
    from genba.domain.tasks.task import Task
    from genba.judgement.scheduling.actions import Start
    from genba.judgement.scheduling.plans import PlanLimits

_FLEET = "genba work"
LEAVES_NOTHING: dict[str, Any] = {
    "runner": {
        "integrations": {"github": {"enabled": False}},
        "execution": {"finalize": {"autoMerge": False, "push": False, "createPr": False}},
    }
}
"""A plan and a review change nothing but the blackboard, and a manager has others work."""
_INTO_ITS_TASK: dict[str, Any] = {"runner": {"execution": {"finalize": {"autoMerge": True, "createPr": False}}}}
"""A subtask lands on the branch of its task, which only this repository has: it gets no pull request."""
_MOMENT_SECONDS = 0.5
"""How long an agent that was read counts as read just now."""


class ProjectAgentPool:
    """Knows which agents there were when the executor began. What each is held to is read when it begins."""

    def __init__(
        self,
        context: ProjectContext,
        board: FleetBoard,
        me: WorkerContext,
        base_branch: str,
        on_board: BoardFilter | None = None,
        *,
        close: Callable[[str, str], Awaitable[bool]],
    ) -> None:
        self.context = context
        self.board = board
        self.base_branch = base_branch
        self.on_board = on_board
        self._close = close
        """Closes a session of `genba run` whose commit has landed."""
        self._read: dict[tuple[str, tuple[int, ...]], tuple[float, AgentDefinition]] = {}
        self._readers: set[str] = set()
        """Agents that only read, and work here because they are the stage of a type of task."""
        self.asks = False
        """Whether one of them asks for its next action."""
        infos, broken = self.context.registry.agents()
        self.broken = {name: problems[0] for name, problems in broken.items()}
        """By the name of an agent that cannot be read: the first of its problems."""
        stages = context.project.stages
        self._me = msgspec.structs.replace(me, agents=self._agents(infos), stages=stages)

    async def me(self, running: int) -> WorkerContext:
        resources = await asyncio.to_thread(self._resources)
        on_board = self.on_board.numbers if self.on_board is not None else self._me.on_board
        return msgspec.structs.replace(self._me, running=running, resources=resources, on_board=on_board)

    def _agents(self, infos: tuple[AgentInfo, ...]) -> tuple[Agent, ...]:
        found = []
        named = {agent for stages in self.context.project.stages.values() for agent in stages}
        for info in infos:
            definition = self.context.registry.load(info.name)
            if info.name in named and definition.only_reads and not definition.joins_fleets:
                self._readers.add(info.name)
            if definition.joins_fleets or info.name in self._readers:
                self.asks = self.asks or definition.state_driven
                found.append(
                    Agent(
                        name=info.name,
                        capabilities=info.capabilities,
                        provider=self._provider(definition),
                        manages=definition.manages,
                    )
                )
        return tuple(found)

    def _provider(self, definition: AgentDefinition) -> str:
        return provider_of(self.context, definition)

    def _resources(self) -> Resources:
        import psutil  # noqa: PLC0415  (slow to import)

        memory = psutil.virtual_memory().available >> 20
        places = (self.context.layout.common, tempfile.gettempdir())
        disk = min(shutil.disk_usage(place).free for place in places) >> 20
        return Resources(free_memory_mb=memory, free_disk_mb=disk)

    async def plan(self, move: Start, field: FleetSnapshot) -> tuple[SessionPlan, str]:
        task = field.tasks.get(move.task)
        if task is None:
            raise NotFoundError(f"there is no task #{move.task}", hint="genba task list")
        subject = field.tasks.get(task.review_of, task) if task.review_of is not None else task
        base_branch = await base_branch_of(self.context, self.base_branch, subject, field)
        at_stage = move.agent in self.context.project.stages.get(task.type, ())
        definition = self._definition(move.agent, self._held_to(move.purpose, base_branch, at_stage))
        plan = SessionPlan(
            definition=definition,
            parameters=await self._parameters(definition, task, subject, move.purpose, base_branch),
            project=self.context.project.name,
            branch=branch_of(task, move.purpose, field),
            base_branch=base_branch,
            start_at=task.review_commit if move.purpose is Purpose.REVIEW else "",
        )
        return plan, self._provider(definition)

    def _held_to(self, purpose: Purpose, base_branch: str, at_stage: bool) -> tuple[dict[str, Any], ...]:
        """What a fleet sets for an agent, over what its files say."""
        if purpose in SCRATCH:
            return (LEAVES_NOTHING,)
        into = () if base_branch == self.base_branch else (_INTO_ITS_TASK,)
        return (*into, AS_STAGE) if at_stage else into

    def has_died(self, session: FleetSession) -> bool | None:
        """True when neither the lock of the branch nor the process is left; None for another host."""
        if session.host != host_name():
            return None
        process = self.context.board().start_of(session.run).process
        return not self.context.is_running(session.branch) and not process_lives(process, session.heartbeat_at)

    def _definition(self, agent: str, held_to: tuple[dict[str, Any], ...]) -> AgentDefinition:
        """An agent as its files say now. Those that begin at one time begin with the same one."""
        key, moment = (agent, tuple(id(values) for values in held_to)), time.monotonic()
        if key in self._read and moment - self._read[key][0] < _MOMENT_SECONDS:
            return self._read[key][1]
        layers = [Layer(_FLEET, values) for values in held_to if values is not AS_STAGE or agent in self._readers]
        definition = self.context.registry.load(agent, layers)
        self.context.check(definition)
        self._read[key] = (moment, definition)
        return definition

    async def _parameters(
        self, definition: AgentDefinition, task: Task, subject: Task, purpose: Purpose, base_branch: str
    ) -> dict[str, Any]:
        """The parameters of an agent: its defaults, its task, and what a planner and a reviewer need."""
        given = parameters(definition, task.number)
        declared = definition.file.parameters
        if purpose is Purpose.PLAN:
            limits = await asyncio.to_thread(self.plan_limits, task)
            return {**given, **plan_parameters(task, limits, declared, self.context.project.language)}
        if purpose is Purpose.REVIEW:
            last = await asyncio.to_thread(self.board.board.last_verification, subject.number)
            language = self.context.project.language
            return {**given, **review_parameters(task, subject, base_branch, last, declared, language)}
        return given

    def plan_limits(self, task: Task) -> PlanLimits:
        """What a plan of this task is held to."""
        rules = self.context.project.rules
        agents = tuple(agent.name for agent in self._me.agents)
        return limits_of(self.board, task, self.context.project.fleet.decompose, agents, known_types(rules))

    async def handover(self, task: int) -> str:
        return await asyncio.to_thread(note_for, self.board, task, language=self.context.project.language)

    def stages(self) -> dict[str, tuple[str, ...]]:
        return self._me.stages

    async def close_landed(self, run: str, landed: str) -> bool:
        return await self._close(run, landed)

    def closes(self, agent: str) -> bool:
        try:
            github = self.context.registry.load(agent).file.runner.integrations.github
        except GenbaError:
            return True
        return ends_task(github.default_closure_action)

    def reviewed_types(self) -> dict[str, str]:
        rules = self.context.project.rules
        types = rules.task_types if rules is not None else {}
        return {name: found.reviewer_type for name, found in types.items() if found.requires_review}


def parameters(definition: AgentDefinition, issue: int) -> dict[str, Any]:
    """The parameters of an agent that a fleet starts: their defaults, and the task."""
    declared = definition.file.parameters
    missing = [name for name, one in declared.items() if one.required and one.default is None and name != "issue"]
    if missing:
        message = f'a fleet cannot give it "{missing[0]}": only the parameter issue and those with a default are given'
        source = definition.sources["name"]
        raise ConfigurationError((Problem(source, f"parameters.{missing[0]}", message, "give it a default"),))
    return {**{name: one.default for name, one in declared.items()}, "issue": issue}


def provider_of(context: ProjectContext, definition: AgentDefinition) -> str:
    """Who answers in the end: the provider of the model, or the kind of agent where none is known."""
    kind = definition.adapter_type or ""
    try:
        provider = context.adapter(definition).provider(os.environ)
    except GenbaError:
        return kind
    return provider.name if provider is not None else kind
