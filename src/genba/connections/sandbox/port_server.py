"""Serving the egress ports of a sandbox: a connection from inside reaches the handler of its port, and nothing else."""

import asyncio
import contextlib
import socket
from functools import partial

from genba.domain.sessions.sandbox import EgressPort


class PortServer:
    """Holds the open egress ports, and ends every connection when it closes."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._talks: set[asyncio.Task[None]] = set()

    async def open(self, egress_port: EgressPort, door: socket.socket) -> None:
        """Serve an egress port at a listening socket, which from now on belongs to this server."""
        self._servers.append(await asyncio.start_server(partial(self._welcome, egress_port), sock=door))

    async def open_on_loopback(self, egress_ports: tuple[EgressPort, ...]) -> dict[str, int]:
        """Open egress ports on the loopback of this machine; says the free port that each got."""
        ports = {}
        for egress_port in egress_ports:
            door = socket.create_server(("127.0.0.1", 0))
            ports[egress_port.name] = door.getsockname()[1]
            await self.open(egress_port, door)
        return ports

    async def close(self) -> None:
        """Safe to repeat."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        talks = list(self._talks)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    def _welcome(self, egress_port: EgressPort, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        plain = writer.get_extra_info("socket")
        if plain is not None and plain.family == socket.AF_INET:
            # Small pieces go at once. asyncio sees to it only for sockets that were made with their protocol named.
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        talk = asyncio.get_running_loop().create_task(_talk(egress_port, reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._part)

    def _part(self, talk: asyncio.Task[None]) -> None:
        self._talks.discard(talk)
        if not talk.cancelled() and (error := talk.exception()) is not None:
            values = {"message": "an egress port of the sandbox failed", "exception": error, "task": talk}
            talk.get_loop().call_exception_handler(values)


async def _talk(egress_port: EgressPort, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A client that goes away in the middle of a sentence is no error of the egress port's."""
    with contextlib.suppress(ConnectionError):
        try:
            await egress_port.serve(reader, writer)
        finally:
            writer.close()
