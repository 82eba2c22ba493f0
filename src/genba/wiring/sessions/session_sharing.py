"""Sessions that hosts share, as one part of a session sees it. Without a remote nothing is shared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from genba.connections.git.merging.session_sync import SharedTrees, Sharing
from genba.domain.errors import GenbaError, StateConflictError
from genba.domain.events import Notice

if TYPE_CHECKING:
    from genba.domain.ports import Steps
    from genba.execution.run import Run
    from genba.execution.session_context import SessionContext
    from genba.wiring.project.project_context import ProjectContext

T = TypeVar("T")

_DELIVER, _END = "deliver", "end"
_PATIENCE_SECONDS = 30.0
_SHORTEST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.25, 8.0
Work = Callable[[], Awaitable[None]]


class SessionSharing:
    """What the hosts of a fleet share of their sessions, through the remote that the project names."""

    def __init__(self, context: ProjectContext, remote: str) -> None:
        self.sharing = Sharing(context.layout, remote)

    @classmethod
    def of(cls, context: ProjectContext) -> SessionSharing | None:
        remote = context.project.fleet.merge.remote
        return cls(context, remote) if remote else None

    async def share(self, run: Run) -> None:
        """What goes wrong is told in the journal, and stops nobody."""
        if run.workspace is None:
            return
        try:
            await self.sharing.share(run.workspace)
        except GenbaError as error:
            run.world.journal.emit(Notice(message=f"not shared with other hosts: {error.message}"))

    async def hand_over(self, run: Run, say: Callable[[str], None]) -> None:
        """Share work that others are to land. A remote that does not take it is asked again, for half a minute.

        Then it is handed over all the same, and whoever cannot find it leaves it in the queue: this host can land it.
        """
        assert run.workspace is not None  # noqa: S101  (who hands over has worked)
        patience, wait = _PATIENCE_SECONDS, _SHORTEST_WAIT_SECONDS
        while True:
            try:
                return await self.sharing.share(run.workspace)
            except StateConflictError as error:
                return run.world.journal.emit(Notice(message=f"not shared with other hosts: {error.message}"))
            except GenbaError as error:
                message = f"not shared with other hosts: {error.message}"
            if patience <= 0:
                run.world.journal.emit(Notice(message=message))
                return say(message)
            if wait == _SHORTEST_WAIT_SECONDS:
                say(f"{message}; trying again for {patience:g} s")
            await asyncio.sleep(min(wait, patience))
            patience, wait = patience - wait, min(2 * wait, _LONGEST_WAIT_SECONDS)

    async def bring(self, commit: str) -> None:
        """Have a commit here that another host made."""
        await self.sharing.bring_commit(commit)

    async def forget(self, run: Run) -> None:
        """Nobody goes on with a session that is over. What only its refs keep is kept."""
        workspace = run.plan.workspace
        if workspace is None:
            return
        try:
            await self.sharing.forget(workspace.run, workspace.branch)
        except GenbaError as error:
            run.world.journal.emit(Notice(message=f"what was shared with other hosts stays there: {error.message}"))

    def dress(self, world: SessionContext, root: str, share: Work, hand_over: Work) -> SessionContext:
        """The same world, with working trees that may come from another host."""
        trees = SharedTrees(world.trees, self.sharing, root, lambda told: world.journal.emit(Notice(message=told)))
        return msgspec.structs.replace(world, trees=trees, steps=_SharingSteps(world.steps, share, hand_over))


class _SharingSteps:
    """Before work is handed over all hosts have it: whichever of them lands it needs its commits."""

    def __init__(self, steps: Steps, share: Work, hand_over: Work) -> None:
        self.steps = steps
        self.share = share
        self.hand_over = hand_over

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        if name == _END:
            await self.hand_over()  # not a step: whoever dies in it does it again
        return await self.steps.run(name, self._shared(work) if name == _DELIVER else work, kind)

    def _shared(self, work: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        async def both() -> T:
            await self.share()
            return await work()

        return both
