"""The first process of a container, and its client: it lives as long as one command, and reports no exit code."""

import asyncio
import contextlib
from collections.abc import Mapping

from genba.connections.sandbox.containers.script import COUNTED, READY
from genba.domain.ports import Processes
from genba.domain.processes import Command, Exit, Send

_PATIENCE_SECONDS = 60.0
_COUNT_SECONDS = 5.0
_FOR_EVER_SECONDS = 1e9


class FirstProcess:
    """Begun before the command, and gone after it. What it says is a hint: processes inside could speak for it."""

    def __init__(self, processes: Processes, token: str) -> None:
        self._processes = processes
        self.token = token
        self._ready, self._asked, self._counted = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._limits: list[str] = []
        self._client: asyncio.Task[Exit] | None = None

    async def begin(self, argv: tuple[str, ...], environment: Mapping[str, str], mark: str) -> str:
        """Start the container. Returns the engine's output when it could not; empty when the container runs."""
        command = Command(
            argv=argv,
            workdir="/",
            environment=environment,
            timeout_seconds=_FOR_EVER_SECONDS,
            idle_seconds=_FOR_EVER_SECONDS,
            mark=mark,
            lines=self._hear,
            converse=self._talk,
        )
        self._client = asyncio.create_task(self._processes.run(command, _unheard))
        ready = asyncio.create_task(self._ready.wait())
        try:
            both = {ready, self._client}
            await asyncio.wait(both, timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._ready.is_set():
            return ""
        if not self._client.done():
            return f"the container did not start within {_PATIENCE_SECONDS:g} seconds"
        ended = self._client.result()
        return ended.stderr.strip() or f"the container ended at once, with {ended.code}"

    @property
    def has_begun(self) -> bool:
        return self._ready.is_set()

    async def limits(self) -> list[str]:
        """Which limits the kernel has enforced inside, as far as that is seen there."""
        self._asked.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_COUNT_SECONDS):
                await self._counted.wait()
        return self._limits

    async def end(self) -> None:
        """After the container was removed: its client has nothing to wait for."""
        if self._client is None:
            return
        _done, left = await asyncio.wait({self._client}, timeout=_COUNT_SECONDS)
        for client in left:
            client.cancel()
        await asyncio.gather(self._client, return_exceptions=True)

    async def _talk(self, send: Send) -> None:
        """Its stdin stays open: when this process dies, so does the container."""
        await self._asked.wait()
        await send(b"count\n")
        await asyncio.Event().wait()

    def _hear(self, line: bytes) -> None:
        match line.decode(errors="replace").split(" "):
            case [self.token, arg]:
                if arg == READY:
                    self._ready.set()
                elif arg == COUNTED:
                    self._counted.set()
                else:
                    self._limits.append(arg)


def _unheard(_stream: str, _line: str) -> None:
    """What the client says is in its end."""
