"""Supervises one question in a process of its own: the agent, its sandbox and its egress ports.

It outlives the worker that asked. It ends with its agent: with an answer, when it is stopped, and when no worker has
watched it for too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from genba.application.sandbox.agent_environment import AgentEnvironmentKeeper, WorkflowDoor
from genba.application.sessions.session_record import recall
from genba.connections.detached.adapter import DetachedAdapter, Posting
from genba.connections.detached.fork_server_client import ForkServerClient
from genba.connections.detached.job_dir import Attempt, Question, Request
from genba.connections.detached.output_log import Recorder
from genba.connections.detached.results import Failure, Result
from genba.connections.detached.stale_jobs import DetachedProcesses
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.processes.orphans import end_orphans, take_in_orphans
from genba.definitions.project.config_file import ProjectFile
from genba.definitions.project.project import Project
from genba.domain.errors import DiskFullError, GenbaError
from genba.domain.events import Event
from genba.domain.ports import Processes
from genba.domain.redaction import OutputRedactor, Redactor, without_tokens
from genba.domain.sessions.replies import Reply
from genba.execution.run_values import RunPlan
from genba.wiring.project.project_context import ProjectContext
from genba.wiring.sessions.session_factory import agent_environment, sweeping

_LONGEST_LOOK_SECONDS = 1.0
_LOOKS_PER_GRACE = 5
_FULL_DISK = 74


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
    """Put a question, and write down what it came to. Says with which code to exit."""
    take_in_orphans()
    attempt.reserve()
    if sys.version_info < (3, 12) and _tells_of_ends():  # newer ones do without a thread by themselves
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    # Not asyncio.run: the process ends right after this, and with it whatever the loop would take apart.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(_supervise(question, attempt))


def _tells_of_ends() -> bool:
    """True when the kernel reports by itself that a process has ended; an old one, or a sandbox around us, may not."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


async def _supervise(question: Question, attempt: Attempt) -> int:
    request = question.request()
    recorder = Recorder(attempt, OutputRedactor(Redactor(os.environ)))
    door = WorkflowDoor(request.workflow, question.take_secret()) if request.workflow else None
    asking = asyncio.create_task(_ask(request, attempt, recorder, door))
    switch = _Switch(asking)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, switch.end, "it was stopped")
    guard = asyncio.create_task(_guard(question, request.grace_seconds, switch))
    try:
        reply = await asking
        result = Result(reply=msgspec.structs.replace(reply, text=without_tokens(reply.text)))
    except asyncio.CancelledError:
        result = Result(suspended=switch.why or "it was cancelled")
    except GenbaError as error:
        result = Result(failure=Failure.of(error))
    except Exception as error:  # noqa: BLE001  (the outermost edge of a supervisor)
        traceback.print_exc()
        result = Result(failure=Failure.of(error))
    finally:
        guard.cancel()
        with contextlib.suppress(DiskFullError):
            recorder.close()
    try:
        attempt.write(result)
    except DiskFullError:
        return _FULL_DISK
    return 0


class _Switch:
    """Ends the agent, once: ending takes its time, and must not be cut short."""

    def __init__(self, asking: asyncio.Task[Reply]) -> None:
        self.asking = asking
        self.why = ""

    def end(self, why: str) -> None:
        if not self.why:
            self.why = why
            self.asking.cancel()


async def _guard(question: Question, grace_seconds: float, switch: _Switch) -> None:
    """Stop an agent that no worker watches, before it spends more money."""
    loop = asyncio.get_running_loop()
    pause = min(_LONGEST_LOOK_SECONDS, grace_seconds / _LOOKS_PER_GRACE)
    last_seen = loop.time()
    while loop.time() - last_seen < grace_seconds:
        await asyncio.sleep(pause)
        if question.is_watched():
            last_seen = loop.time()
    switch.end(f"no worker watched it for {grace_seconds:g} s")


async def _ask(request: Request, attempt: Attempt, recorder: Recorder, door: WorkflowDoor | None) -> Reply:
    """The agent, exactly as a run in one process would have it."""
    layout = RepositoryLayout(Path(request.top), Path(request.git_dir), Path(request.common))
    # The settings of the project are not read again: what runs is frozen in the memory of the run.
    context = ProjectContext(layout, Project(layout.top, ProjectFile(), "frozen"))
    memory = recall(layout.run_folder(request.run), request.run)
    plan = RunPlan(run=request.run, definition=memory.definition, parameters=memory.parameters)
    adapter = context.adapter(plan.definition)
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
