"""The gates of a container: sockets of the host, and a small container that leads ports of the loopback to them.

The small container owns the network, which has nothing but a loopback; the instance joins it. It ends by itself when
the host lets go, also when Genba is killed.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import sys
import tempfile
from pathlib import Path

from genba.connections.sandbox.containers_engine import Client
from genba.connections.sandbox.containers_mounts import Mount
from genba.connections.sandbox.system_folders import is_of_the_system, system_places
from genba.domain.errors import AgentUnavailable
from genba.domain.walls import Gate, Serve

_PATIENCE_SECONDS = 60.0
_FORWARDER = Path(__file__).with_name("forwarder.py")
_INSIDE = "/gates"
_LIFELINE = "lifeline"


class Doors:
    """Listening sockets of the host, each with its handler."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._talks: set[asyncio.Task[None]] = set()

    async def listen(self, listening: socket.socket, serve: Serve) -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101  (asyncio runs every handler in a task)
            self._talks.add(task)
            try:
                with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                    await serve(reader, writer)
            finally:
                self._talks.discard(task)
                writer.close()

        self._servers.append(await asyncio.start_server(connected, sock=listening))

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        talks = tuple(self._talks)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        self._servers.clear()


class HostGates:
    """Gates where the loopback is the host's own: ports of it that were free."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self._doors = Doors()

    async def open(self, gates: tuple[Gate, ...]) -> None:
        for gate in gates:
            listening = socket.create_server(("127.0.0.1", 0))
            self.ports[gate.name] = listening.getsockname()[1]
            await self._doors.listen(listening, gate.serve)

    async def close(self) -> None:
        await self._doors.close()


class ContainerGates:
    """Gates of a network that has nothing else."""

    def __init__(self, client: Client, folder: str, label: tuple[str, ...]) -> None:
        self.name = f"genba-gates-{secrets.token_hex(8)}"
        self.ports: dict[str, int] = {}
        self._client = client
        self._label = label
        self._doors = Doors()
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.mkdtemp(prefix="gates-", dir=folder)

    async def open(self, gates: tuple[Gate, ...], words: tuple[str, ...], image: str) -> None:
        """`words` are the walls that every container of the cell has. Returns when all ports are open."""
        alive = asyncio.Event()

        async def lifeline(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            alive.set()
            await reader.read()

        await self._doors.listen(_socket_in(self._folder, _LIFELINE), lifeline)
        for gate in gates:
            await self._doors.listen(_socket_in(self._folder, str(gate.port)), gate.serve)
            self.ports[gate.name] = gate.port
        python, mounts = _python()
        mounts += (Mount(str(_FORWARDER), "/forwarder.py", False), Mount(self._folder, _INSIDE, False))
        await self._client.told(
            *("run", "--detach", "--rm", "--name", self.name, *self._label, *words, "--network", "none"),
            *(word for mount in mounts for word in mount.words),
            *("--entrypoint", python, image, "-I", "-S", "/forwarder.py", _INSIDE),
            *(str(gate.port) for gate in gates),
        )
        try:
            await asyncio.wait_for(alive.wait(), _PATIENCE_SECONDS)
        except TimeoutError:
            raise AgentUnavailable("the gates of the sandbox did not open") from None

    async def close(self) -> None:
        await self._client.remove(self.name)
        await self._doors.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _socket_in(folder: str, name: str) -> socket.socket:
    """A listening socket, however long the path of its folder is."""
    listening = socket.socket(socket.AF_UNIX)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listening.bind(f"/proc/self/fd/{descriptor}/{name}")
        listening.listen(128)
    finally:
        os.close(descriptor)
    return listening


def _python() -> tuple[str, tuple[Mount, ...]]:
    """The interpreter that runs Genba, and where it lives; it may be in a home folder."""
    prefix, program = os.path.realpath(sys.base_prefix), os.path.realpath(sys.executable)
    places = [place for place in system_places() if not place.startswith("/etc/") or "ld.so" in place]
    if not is_of_the_system(prefix):
        places.append(prefix)
    return program, tuple(Mount(place, place, False) for place in places)
