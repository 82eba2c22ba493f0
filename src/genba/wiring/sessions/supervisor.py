"""Constructs what asks a question in a process of its own: the agent, its sandbox and its egress ports."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from genba.application.sandbox.agent_environment import AgentEnvironmentKeeper, WorkflowDoor
from genba.application.sessions.session_record import recall
from genba.connections.detached.adapter import DetachedAdapter, Posting
from genba.connections.detached.fork_server_client import ForkServerClient
from genba.connections.detached.job_dir import Attempt, Question, Request
from genba.connections.detached.output_log import Recorder
from genba.connections.detached.stale_jobs import DetachedProcesses
from genba.connections.detached.supervision import run_supervised
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.processes.orphans import end_orphans, take_in_orphans
from genba.definitions.project.config_file import ProjectFile
from genba.definitions.project.project import Project
from genba.domain.events import Event
from genba.domain.ports import Processes
from genba.domain.sessions.replies import Reply
from genba.execution.run_values import RunPlan
from genba.wiring.project.project_context import ProjectContext
from genba.wiring.sessions.session_factory import agent_environment, sweeping


def fork_server_of(layout: RepositoryLayout) -> ForkServerClient:
    """The fork server of this worker. It is started when it is first needed, or by `open`."""
    argv = (sys.executable, "-P", "-m", "genba.wiring.sessions.fork_server")
    return ForkServerClient(argv, layout.own / "fork_server.log")


def detached(
    layout: RepositoryLayout,
    keeper: AgentEnvironmentKeeper,
    fork_server: ForkServerClient,
    processes: Processes,
    emit: Callable[[Event], None],
    *,
    run: str,
    part: int = 1,
    grace_seconds: float = 60.0,
    workflow: str = "",
    credential: Callable[[], Awaitable[str]] | None = None,
    over: Callable[[], Awaitable[bool]] | None = None,
) -> DetachedAdapter:
    """The adapter of one part of a run whose agent must outlive this process."""
    posting = Posting(
        run=run,
        agent=keeper.definition.name,
        adapter=keeper.definition.adapter_type or "",
        folder=str(keeper.folder),
        top=str(layout.top),
        git_dir=str(layout.git_dir),
        common=str(layout.common),
        kind=keeper.kind,
        part=part,
        grace_seconds=grace_seconds,
        workflow=workflow,
    )
    return DetachedAdapter(
        posting, fork_server, processes, emit, end_orphans=end_orphans, credential=credential, over=over
    )


def sparing(layout: RepositoryLayout, processes: Processes) -> DetachedProcesses:
    """Processes whose sweeps leave a run alone that a supervisor holds."""
    return DetachedProcesses(processes, layout.run_folder("any").parent)


def supervise(question: Question, attempt: Attempt) -> int:
    """Ask a question as its supervisor. Returns the exit code of the process."""
    take_in_orphans()
    return run_supervised(question, attempt, _ask)


async def _ask(request: Request, attempt: Attempt, recorder: Recorder, credential: str) -> Reply:
    """The agent, exactly as a run in one process would have it."""
    layout = RepositoryLayout(Path(request.top), Path(request.git_dir), Path(request.common))
    # The settings of the project are not read again: what runs is frozen in the memory of the run.
    context = ProjectContext(layout, Project(layout.top, ProjectFile(), "frozen"))
    memory = recall(layout.run_folder(request.run), request.run)
    plan = RunPlan(run=request.run, definition=memory.definition, parameters=memory.parameters)
    adapter = context.adapter(plan.definition)
    door = WorkflowDoor(request.workflow, credential) if request.workflow else None
    keeper, _ = agent_environment(context, plan, request.kind, adapter, recorder.emit, door)
    if attempt.number > 1:
        await sweeping(context, request.kind, keeper.sandbox, keeper.folder).sweep(request.run)
    async with keeper.open(request.workspace) as session:
        instance = await adapter.start(session)
        try:
            reply: Reply = await adapter.execute(instance, request.ask, recorder.on_output)
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(adapter.stop(instance))
    return reply
