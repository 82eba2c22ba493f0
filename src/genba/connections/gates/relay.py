"""Bytes in both directions, until both sides have said all or nobody says anything any more."""

import asyncio
import contextlib

from genba.connections.gates.doorway import close
from genba.connections.gates.wire import CHUNK

IDLE_SECONDS = 600.0


class _Sign:
    """When a byte last went either way."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.given()

    def given(self) -> None:
        self.last = self._loop.time()

    def silent_for(self) -> float:
        return self._loop.time() - self.last


async def relay(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes until both directions have ended. An end is passed on; what breaks on one side breaks both."""
    sign = _Sign()
    pumps = {
        asyncio.create_task(_pump(reader, far_writer, sign)),
        asyncio.create_task(_pump(far_reader, writer, sign)),
    }
    running = pumps
    try:
        while running:
            left = IDLE_SECONDS - sign.silent_for()
            if left <= 0:
                return
            done, running = await asyncio.wait(running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if any(not pump.result() for pump in done):
                return
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        await close(far_writer)


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
