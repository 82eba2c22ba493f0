"""An egress port to a Unix socket of the host: bytes in, bytes out, nothing understood.

The server there may be replaced at any time, and by one at another path. So each connection looks again where
it leads, and waits a while for an answer.
"""

import asyncio
from collections.abc import Callable

from genba.connections.egress.connection_limiter import Doorway
from genba.connections.egress.events import AccessLog
from genba.connections.egress.h11_connection import Patience
from genba.connections.egress.relay import Ends, relay
from genba.domain.sessions.egress import EgressListener, Verdict

PORT = "workflow"
PATIENT = Patience(dial=90.0, tunnel=24 * 3600.0)
"""A claim is answered when it is verified, which has no time limit."""
_LOOK_AGAIN_SECONDS = 0.2


def _ignore(_: object) -> None:
    return


class SocketForward:
    """Leads every connection to the socket that is served just then."""

    def __init__(
        self, where: Callable[[], str], on_event: EgressListener = _ignore, *, patience: Patience = PATIENT
    ) -> None:
        self._where = where
        self._patience = patience
        self.access_log = AccessLog(PORT, on_event)
        self._doorway = Doorway(self.access_log)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._doorway.admit(writer, lambda: self._carry(reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._patience.dial):
                far = await self._dialled()
        except TimeoutError:
            self.access_log.record(Verdict.FAILED, "", f"no answer for {self._patience.dial:g} seconds")
            return
        await relay((reader, writer), far, self._patience.tunnel)

    async def _dialled(self) -> Ends:
        while True:
            try:
                return await asyncio.open_unix_connection(self._where())
            except OSError:
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
