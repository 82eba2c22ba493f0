"""A session of doubles: without a process, a disk or a clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from genba.domain.ports import AgentAdapter, Checks, Clock, Journal, Repository, Tracker, WorkingTrees
from genba.domain.sessions.replies import AgentSession
from genba.domain.sessions.workspaces import Workspace
from genba.execution.session_context import AgentContext, GitContext, SessionContext, TrackerContext
from genba.testing.doubles import (
    ManualClock,
    MemoryForge,
    MemoryJournal,
    MemoryRepository,
    MemoryTracker,
    MemoryTrees,
    ScriptedChecks,
    ScriptedProcesses,
)


@asynccontextmanager
async def _nowhere(workspace: Workspace) -> AsyncIterator[AgentSession]:
    """An environment without a disk or a process."""
    yield AgentSession(
        run=workspace.run,
        agent="double",
        workdir=workspace.path,
        folder="/memory",
        environment={},
        processes=ScriptedProcesses({}),
    )


def session_context(
    adapter: AgentAdapter,
    *,
    trees: WorkingTrees | None = None,
    repository: Repository | None = None,
    checks: Checks | None = None,
    tracker: Tracker | None = None,
    journal: Journal | None = None,
    clock: Clock | None = None,
) -> SessionContext:
    """Every port that is not given is a double with nothing in it. Waits are as long as they may be."""
    return SessionContext(
        agent=AgentContext(
            adapter=adapter,
            open_environment=_nowhere,
            processes=ScriptedProcesses({}),
            completion_handlers={},
            action_handlers={},
            fits_schema=lambda _schema, _value: True,
            jitter=lambda: 1.0,
        ),
        git=GitContext(
            trees=trees or MemoryTrees(),
            repository=repository or MemoryRepository(),
            checks=checks or ScriptedChecks({}),
        ),
        tracker=TrackerContext(tracker=tracker or MemoryTracker(), forge=MemoryForge()),
        journal=journal or MemoryJournal(),
        clock=clock or ManualClock(),
        redact=lambda text: text,
    )
