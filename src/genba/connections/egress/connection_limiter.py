"""The frame of every egress port: how many may pass at once; a fault with one affects no other."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from genba.connections.egress.events import AccessLog
from genba.domain.sessions.egress import Verdict

MOST_CONNECTIONS = 128
"""Connections that one egress port holds at the same time."""
_CLOSE_SECONDS = 2.0


class Doorway:
    """Lets connections in one by one, up to a number, and closes every one of them, whatever happened in it."""

    def __init__(self, access_log: AccessLog, most: int = MOST_CONNECTIONS) -> None:
        self._access_log = access_log
        self._most = most
        self._inside = 0

    async def admit(self, writer: asyncio.StreamWriter, handle: Callable[[], Awaitable[None]]) -> None:
        self._inside += 1
        try:
            if self._inside > self._most:
                self._access_log.record(Verdict.DENIED, "", f"more than {self._most} connections at once")
                return
            await handle()
        except asyncio.CancelledError:
            writer.transport.abort()  # the sandbox is closing: no client is left to read the rest
            raise
        except Exception as error:  # noqa: BLE001  (the outermost edge: a connection ends here, the loop goes on)
            with contextlib.suppress(Exception):
                self._access_log.record(Verdict.FAILED, "", f"the egress port broke: {type(error).__name__}")
        finally:
            self._inside -= 1
            await close(writer)


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a stream with all that was written to it; one that does not take it in time is dropped."""
    writer.close()
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
    except asyncio.CancelledError:
        writer.transport.abort()
        raise
