"""Sessions that hosts share, as one part of a session sees it. Without a remote nothing is shared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from genba.connections.git.sharing import SharedTrees, Sharing
from genba.domain.errors import GenbaError
from genba.domain.events import Notice

if TYPE_CHECKING:
    from genba.domain.ports import Steps
    from genba.execution.running import Run
    from genba.execution.world import World
    from genba.wiring.house import House

T = TypeVar("T")

_DELIVER = "deliver"


class SessionSharing:
    """What the hosts of a fleet share of their sessions, through the remote that the project names."""

    def __init__(self, house: House, remote: str) -> None:
        self.sharing = Sharing(house.layout, remote)

    @classmethod
    def of(cls, house: House) -> SessionSharing | None:
        remote = house.project.fleet.merge.remote
        return cls(house, remote) if remote else None

    async def share(self, run: Run) -> None:
        """What goes wrong is told in the journal, and stops nobody."""
        if run.workspace is None:
            return
        try:
            await self.sharing.share(run.workspace)
        except GenbaError as error:
            run.world.journal.emit(Notice(message=f"not shared with other hosts: {error.message}"))

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

    def dress(self, world: World, root: str, share: Callable[[], Awaitable[None]]) -> World:
        """The same world, with working trees that may come from another host."""
        trees = SharedTrees(world.trees, self.sharing, root, lambda told: world.journal.emit(Notice(message=told)))
        return msgspec.structs.replace(world, trees=trees, steps=_SharingSteps(world.steps, share))


class _SharingSteps:
    """Before work is handed over all hosts have it: whichever of them lands it needs its commits."""

    def __init__(self, steps: Steps, share: Callable[[], Awaitable[None]]) -> None:
        self.steps = steps
        self.share = share

    async def run(self, name: str, work: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        return await self.steps.run(name, self._shared(work) if name == _DELIVER else work, kind)

    def _shared(self, work: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        async def both() -> T:
            await self.share()
            return await work()

        return both
