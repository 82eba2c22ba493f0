"""An egress port to one port of the host, such as a server of tools: bytes in, bytes out, nothing understood."""

import asyncio

from genba.connections.egress.connection_limiter import Doorway
from genba.connections.egress.events import AccessLog
from genba.connections.egress.h11_connection import PATIENT, Patience
from genba.connections.egress.relay import relay
from genba.domain.sessions.egress import EgressListener, Verdict

PORT = "forward"


def _ignore(_: object) -> None:
    return


class Forward:
    """Leads every connection to one address that is fixed when it is made."""

    def __init__(
        self, host: str, port: int, on_event: EgressListener = _ignore, *, patience: Patience = PATIENT
    ) -> None:
        self._host = host
        self._port = port
        self._patience = patience
        self.access_log = AccessLog(PORT, on_event)
        self._doorway = Doorway(self.access_log)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._doorway.admit(writer, lambda: self._carry(reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = f"{self._host}:{self._port}"
        try:
            async with asyncio.timeout(self._patience.dial):
                far = await asyncio.open_connection(self._host, self._port)
        except OSError as error:  # a TimeoutError is one of them
            self.access_log.record(Verdict.FAILED, target, error.strerror or type(error).__name__)
            return
        self.access_log.record(Verdict.ALLOWED, target)
        await relay((reader, writer), far, self._patience.tunnel)
