"""A whole world of doubles: a run without a process, a disk or a clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from genba.domain.ports import AgentAdapter, Checks, Clock, Journal, Repository, Tracker, WorkingTrees
from genba.domain.sessions.replies import AgentSession
from genba.domain.sessions.workspaces import Workspace
from genba.execution.session_context import SessionContext
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
    """Quarters without a disk or a process."""
    yield AgentSession(
        run=workspace.run,
        agent="double",
        workdir=workspace.path,
        folder="/memory",
        environment={},
        processes=ScriptedProcesses({}),
    )


def world_of_doubles(
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
        adapter=adapter,
        adapter_commits=False,
        trees=trees or MemoryTrees(),
        repository=repository or MemoryRepository(),
        checks=checks or ScriptedChecks({}),
        processes=ScriptedProcesses({}),
        tracker=tracker or MemoryTracker(),
        forge=MemoryForge(),
        journal=journal or MemoryJournal(),
        clock=clock or ManualClock(),
        redact=lambda text: text,
        jitter=lambda: 1.0,
        completion_handlers={},
        action_handlers={},
        quarters=_nowhere,
    )
