"""The egress ports of a container: sockets of the host, and a small container that leads ports of the loopback to them.

The small container owns the network, which has nothing but a loopback; the instance joins it. It ends by itself when
the host lets go, also when Genba is killed.
"""

import asyncio
import os
import secrets
import socket
import sys
import tempfile
import threading
from pathlib import Path

from genba.connections.removal import remove_tree
from genba.connections.sandbox.containers.engine import Client
from genba.connections.sandbox.containers.mounts import Mount
from genba.connections.sandbox.port_server import PortServer
from genba.connections.sandbox.system_folders import is_of_the_system, system_places
from genba.domain.errors import AgentUnavailable, UnrecoverableError
from genba.domain.processes import Exit
from genba.domain.sessions.sandbox import EgressPort, Entry

_PATIENCE_SECONDS = 60.0
_FORWARDER = Path(__file__).with_name("forwarder.py")
_INSIDE = "/gates"
_LIFELINE, _DIAL = "lifeline", "dial"
_DIAL_SECONDS = 10.0


class NoEgress:
    """A network with no way out of it, and none into it."""

    name = ""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}

    async def close(self) -> None:
        return


class LineToDial:
    """Asks the small container for sockets of its network, one at a time, by a connection that it has opened."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        self._turn = threading.Lock()

    def hold(self, line: socket.socket) -> None:
        line.settimeout(_DIAL_SECONDS)
        self._line = line

    def take(self) -> socket.socket:
        with self._turn:
            if self._line is None:
                raise ConnectionRefusedError("the service ended")
            self._line.sendall(b"\n")
            _, numbers, _, _ = socket.recv_fds(self._line, 1, 1)
        if not numbers:
            raise ConnectionRefusedError("the network of the service is gone")
        return socket.socket(fileno=numbers[0])

    def unused(self, given: socket.socket) -> None:
        given.close()

    def close(self) -> None:
        with self._turn:
            if self._line is not None:
                self._line.close()
            self._line = None


class ContainerEgress:
    """Egress ports of a network that has nothing else."""

    def __init__(self, client: Client, folder: str, label: tuple[str, ...]) -> None:
        self.name = f"genba-egress-{secrets.token_hex(8)}"
        self.ports: dict[str, int] = {}
        self._client = client
        self._label = label
        self._port_server = PortServer()
        self._dialer = LineToDial()
        self._holder: asyncio.Task[Exit] | None = None
        """The client stays with its container: what podman leaves to itself would be an orphan to Genba."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.mkdtemp(prefix="egress-", dir=folder)

    async def open(
        self, egress_ports: tuple[EgressPort, ...], args: tuple[str, ...], image: str, entry: Entry | None = None
    ) -> None:
        """`args` are the options of every container of the sandbox. Returns when all ports are open."""
        alive = asyncio.Event()

        async def lifeline(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            alive.set()
            await reader.read()

        held = EgressPort(name=_LIFELINE, port=0, serve=lifeline)
        await self._port_server.open(held, _socket_in(self._folder, _LIFELINE))
        for egress_port in egress_ports:
            await self._port_server.open(egress_port, _socket_in(self._folder, str(egress_port.port)))
            self.ports[egress_port.name] = egress_port.port
        waiting_line = _socket_in(self._folder, _DIAL) if entry is not None else None
        python, mounts = _python()
        mounts += (Mount(str(_FORWARDER), "/forwarder.py", False), Mount(self._folder, _INSIDE, False))
        self._holder = asyncio.create_task(
            self._client.hold(
                *("run", "--rm", "--name", self.name, *self._label, *args, "--network", "none"),
                *(arg for mount in mounts for arg in mount.args),
                *("--entrypoint", python, image, "-I", "-S", "/forwarder.py", _INSIDE),
                *((_DIAL,) if entry is not None else ()),
                *(str(egress_port.port) for egress_port in egress_ports),
            )
        )
        opened = asyncio.create_task(alive.wait())
        await asyncio.wait({opened, self._holder}, timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if not alive.is_set():
            output = self._holder.result().stderr.strip() if self._holder.done() else "they gave no answer"
            raise AgentUnavailable(f"the egress ports of the sandbox did not open: {output}")
        if entry is not None and waiting_line is not None:  # it was connected to before the lifeline
            with waiting_line:
                waiting_line.settimeout(_DIAL_SECONDS)
                self._dialer.hold(waiting_line.accept()[0])
            entry.opened(self._dialer)

    async def close(self) -> None:
        await asyncio.to_thread(self._dialer.close)
        await self._client.remove(self.name)
        if self._holder is not None:
            await asyncio.gather(self._holder, return_exceptions=True)
        await self._port_server.close()
        remove_tree(self._folder)


def _socket_in(folder: str, name: str) -> socket.socket:
    """A listening socket, however long the path of its folder is."""
    listening = socket.socket(socket.AF_UNIX)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listening.bind(f"/proc/self/fd/{descriptor}/{name}")
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UnrecoverableError(f"the egress port {name} of the sandbox cannot be opened: {error.strerror}") from error
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
