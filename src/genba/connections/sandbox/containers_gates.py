"""The gates of a container: sockets of the host, and a small container that leads ports of the loopback to them.

The small container owns the network, which has nothing but a loopback; the instance joins it. It ends by itself when
the host lets go, also when Genba is killed.
"""

import asyncio
import os
import secrets
import shutil
import socket
import sys
import tempfile
from pathlib import Path

from genba.connections.sandbox.containers_engine import Client
from genba.connections.sandbox.containers_mounts import Mount
from genba.connections.sandbox.gatekeeping import Gatekeeper
from genba.connections.sandbox.system_folders import is_of_the_system, system_places
from genba.domain.errors import AgentUnavailable, UnrecoverableError
from genba.domain.processes import Exit
from genba.domain.walls import Gate

_PATIENCE_SECONDS = 60.0
_FORWARDER = Path(__file__).with_name("forwarder.py")
_INSIDE = "/gates"
_LIFELINE = "lifeline"


class HostGates:
    """Gates where the loopback is the host's own: ports of it that were free."""

    name = ""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self._gatekeeper = Gatekeeper()

    async def open(self, gates: tuple[Gate, ...]) -> None:
        self.ports = await self._gatekeeper.open_on_loopback(gates)

    async def close(self) -> None:
        await self._gatekeeper.close()


class ContainerGates:
    """Gates of a network that has nothing else."""

    def __init__(self, client: Client, folder: str, label: tuple[str, ...]) -> None:
        self.name = f"genba-gates-{secrets.token_hex(8)}"
        self.ports: dict[str, int] = {}
        self._client = client
        self._label = label
        self._gatekeeper = Gatekeeper()
        self._holder: asyncio.Task[Exit] | None = None
        """The client stays with its container: what podman leaves to itself would be an orphan to Genba."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.mkdtemp(prefix="gates-", dir=folder)

    async def open(self, gates: tuple[Gate, ...], words: tuple[str, ...], image: str) -> None:
        """`words` are the walls that every container of the cell has. Returns when all ports are open."""
        alive = asyncio.Event()

        async def lifeline(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            alive.set()
            await reader.read()

        held = Gate(name=_LIFELINE, port=0, serve=lifeline)
        await self._gatekeeper.open(held, _socket_in(self._folder, _LIFELINE))
        for gate in gates:
            await self._gatekeeper.open(gate, _socket_in(self._folder, str(gate.port)))
            self.ports[gate.name] = gate.port
        python, mounts = _python()
        mounts += (Mount(str(_FORWARDER), "/forwarder.py", False), Mount(self._folder, _INSIDE, False))
        self._holder = asyncio.create_task(
            self._client.hold(
                *("run", "--rm", "--name", self.name, *self._label, *words, "--network", "none"),
                *(word for mount in mounts for word in mount.words),
                *("--entrypoint", python, image, "-I", "-S", "/forwarder.py", _INSIDE),
                *(str(gate.port) for gate in gates),
            )
        )
        opened = asyncio.create_task(alive.wait())
        await asyncio.wait({opened, self._holder}, timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if not alive.is_set():
            said = self._holder.result().stderr.strip() if self._holder.done() else "nothing was heard of them"
            raise AgentUnavailable(f"the gates of the sandbox did not open: {said}")

    async def close(self) -> None:
        await self._client.remove(self.name)
        if self._holder is not None:
            await asyncio.gather(self._holder, return_exceptions=True)
        await self._gatekeeper.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _socket_in(folder: str, name: str) -> socket.socket:
    """A listening socket, however long the path of its folder is."""
    listening = socket.socket(socket.AF_UNIX)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listening.bind(f"/proc/self/fd/{descriptor}/{name}")
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UnrecoverableError(f"the gate {name} of the sandbox cannot be opened: {error.strerror}") from error
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
