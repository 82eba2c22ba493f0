"""Pacing: no session asks a provider that asked one of them to wait, and a suspended segment stops asking.

One pause holds for all sessions of a provider, on every host; it ends by one time that everybody knows.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.errors import RateLimited, StateConflictError
from genba.domain.fleet.records import ProviderPause
from genba.domain.ports import AgentAdapter, AgentInstance
from genba.domain.processes import OutputListener
from genba.domain.sessions.replies import AgentSession, Ask, InstanceStatus, Reply


class ProviderGate:
    """Who may ask whom, and from when on."""

    def __init__(self, board: FleetBoard, patience: float) -> None:
        self.board = board
        self.patience = patience
        """Seconds. A session that would have to wait longer gives its worker away until the time has come."""
        self._until: dict[str, datetime] = {}
        self._waits: dict[str, float] = {}
        """The same by the monotonic clock: a clock that is set back makes no pause longer."""

    def know(self, pauses: tuple[ProviderPause, ...]) -> None:
        """Take over the pauses that other executors have recorded."""
        for pause in pauses:
            self._later(pause.provider, datetime.fromisoformat(pause.until))

    def wait(self, provider: str) -> float:
        """Seconds until the provider may be asked again."""
        until = self._until.get(provider)
        if until is None:
            return 0.0
        on_the_wall = (until - datetime.now(UTC)).total_seconds()
        return max(0.0, min(on_the_wall, self._waits[provider] - time.monotonic()))

    async def enter(self, provider: str) -> None:
        """Come back when the provider may be asked; refuse where that takes too long."""
        while (seconds := self.wait(provider)) > 0:
            if seconds > self.patience:
                raise StateConflictError(f"{provider} asks all sessions to wait until {self._shown(provider)}")
            await asyncio.sleep(seconds)

    async def pause(self, provider: str, seconds: float, reason: str) -> None:
        """Pause a provider for all sessions."""
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        self._later(provider, until)
        written = until.isoformat(timespec="microseconds")
        await asyncio.to_thread(self.board.pause_provider, provider, written, reason)

    def _later(self, provider: str, until: datetime) -> None:
        until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
        if self._until.get(provider) == until:
            return
        waits = time.monotonic() + (until - datetime.now(UTC)).total_seconds()
        if provider not in self._until or waits > self._waits[provider]:
            self._until[provider], self._waits[provider] = until, waits

    def _shown(self, provider: str) -> str:
        return self._until[provider].strftime("%H:%M:%S UTC")


class PacedAdapter:
    """An adapter that waits while its provider is paused, and that can be suspended."""

    def __init__(self, inner: AgentAdapter, provider: str, gate: ProviderGate) -> None:
        self.inner = inner
        self.provider = provider
        self.gate = gate
        self.why = ""
        """Why the session gives its worker away."""
        self._suspended = asyncio.Event()
        self._why_stopped = ""

    def suspend(self, why: str) -> None:
        """Stop asking: an agent that is being asked is ended with everything that it started."""
        self._why_stopped = self._why_stopped or why
        self.why = self._why_stopped
        self._suspended.set()

    async def start(self, session: AgentSession) -> AgentInstance:
        return await self.inner.start(session)

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        await self._enter()
        asking = asyncio.ensure_future(self.inner.execute(instance, ask, on_output))
        suspending = asyncio.ensure_future(self._suspended.wait())
        try:
            await asyncio.wait({asking, suspending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            suspending.cancel()
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})
        if asking.cancelled():
            raise StateConflictError(self._why_stopped)
        try:
            return asking.result()
        except RateLimited as error:
            if error.retry_after:
                await self.gate.pause(self.provider, error.retry_after, error.message)
                await self._enter()
            raise

    async def _enter(self) -> None:
        if self._suspended.is_set():
            raise StateConflictError(self._why_stopped)
        try:
            await self.gate.enter(self.provider)
        except StateConflictError as error:
            self.why = error.message
            raise

    async def status(self, instance: AgentInstance) -> InstanceStatus:
        return await self.inner.status(instance)

    async def stop(self, instance: AgentInstance) -> None:
        await self.inner.stop(instance)
