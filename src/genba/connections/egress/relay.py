"""Bytes in both directions, until both sides have ended or are silent for too long."""

import asyncio
import contextlib

from genba.connections.egress.connection_limiter import close
from genba.connections.egress.h11_connection import CHUNK

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Sign:
    """When a byte last went either way."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.given()

    def given(self) -> None:
        self.last = self._loop.time()

    def silent_for(self) -> float:
        return self._loop.time() - self.last


async def relay(near: Ends, far: Ends, idle_seconds: float) -> None:
    """Carry bytes until both directions have ended. An end is passed on; what breaks on one side breaks both."""
    sign = _Sign()
    pumps = {
        asyncio.create_task(_pump(near[0], far[1], sign)),
        asyncio.create_task(_pump(far[0], near[1], sign)),
    }
    running = pumps
    try:
        while running:
            left = idle_seconds - sign.silent_for()
            if left <= 0:
                return
            done, running = await asyncio.wait(running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if any(not pump.result() for pump in done):
                return
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        await close(far[1])


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sign: _Sign) -> bool:
    """Whether it came to an orderly end."""
    try:
        while data := await reader.read(CHUNK):
            sign.given()
            writer.write(data)
            await writer.drain()
    except (OSError, RuntimeError):
        return False
    with contextlib.suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()
    return True
