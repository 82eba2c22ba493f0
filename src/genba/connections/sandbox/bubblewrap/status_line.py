"""The line between Genba and a sandboxed command: what the launcher hands over, and what bubblewrap reports."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from genba.connections.adopted_processes import collect_adopted
from genba.connections.sandbox.port_server import PortServer
from genba.domain.sessions.sandbox import EgressPort, Entry

_CHUNK = 16 * 1024
_MOST_SOCKETS = 250
"""The kernel hands over no more at once."""
_COLLECT_SECONDS = 0.02


class Line:
    """A pair of sockets: the launcher inherits the far one, and bubblewrap after it, and no process inside."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self._near = near
        self._far = far
        self._on_output = b""
        self._first_handle: int | None = None
        self.far = far.fileno()
        self.first: int | None = None
        """The first process inside, as the host counts."""
        self.ran = False
        """Whether the command was really started, and ended by itself."""
        self._dials = Dials()

    @classmethod
    @contextmanager
    def open(cls) -> Iterator["Line"]:
        near, far = socket.socketpair()
        near.setblocking(False)
        line = cls(near, far)
        try:
            yield line
        finally:
            near.close()
            far.close()
            line._dials.close()
            if line._first_handle is not None:
                os.close(line._first_handle)

    def leave_to_others(self) -> None:
        """Close the far end, once the launcher has it."""
        self._far.close()

    async def listen(self, egress_ports: tuple[EgressPort, ...], port_server: PortServer, entry: Entry | None) -> None:
        """Open each egress port with the socket that the launcher hands over, then read the reports of bubblewrap."""
        while True:
            await _readable(self._near.fileno())
            data, doors = self._receive()
            for egress_port, door in zip(egress_ports, doors, strict=False):
                door.setblocking(False)
                await port_server.open(egress_port, door)
            if doors[len(egress_ports) :] and entry is not None:
                self._dials.add(doors[len(egress_ports) :])
                entry.opened(self._dials)
            if not data:
                return
            self._take_in(data)

    def read_rest(self) -> None:
        """What was reported before the end and not read yet. A command that has ended needs no egress ports."""
        with contextlib.suppress(OSError):
            while True:
                data, doors = self._receive()
                for door in doors:
                    door.close()
                if not data:
                    return
                self._take_in(data)

    async def last_process_gone(self, seconds: float) -> None:
        """The first process inside is the last to go: the kernel ends all others, and waits until they are collected.

        The parent of a command that was ended may be gone before it; then it comes to Genba.
        """
        if self._first_handle is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not await _is_readable(self._first_handle, _COLLECT_SECONDS):
                    collect_adopted()
        collect_adopted()

    def kill_first(self) -> None:
        if self._first_handle is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._first_handle, signal.SIGKILL)

    def _receive(self) -> tuple[bytes, list[socket.socket]]:
        """Some of the report, and the sockets of the egress ports; the first thing handed over is the first process."""
        data, numbers, _, _ = socket.recv_fds(self._near, _CHUNK, _MOST_SOCKETS)
        if numbers and self._first_handle is None:
            self._first_handle, *numbers = numbers
        return data, [socket.socket(fileno=number) for number in numbers]

    def _take_in(self, data: bytes) -> None:
        *lines, self._on_output = (self._on_output + data).split(b"\n")
        for line in filter(None, lines):
            result = json.loads(line)
            self.ran = self.ran or "exit-code" in result
            self.first = result.get("first", self.first)


class Dials:
    """Sockets of the network of one command. Those that connected are gone, and there is a bound to them."""

    def __init__(self) -> None:
        self._free: list[socket.socket] = []
        self._closed = False

    def add(self, sockets: list[socket.socket]) -> None:
        self._free += sockets

    def take(self) -> socket.socket:
        try:
            return self._free.pop()
        except IndexError:
            reason = "the service ended" if self._closed else "the service was asked too often"
            raise ConnectionRefusedError(reason) from None

    def unused(self, given: socket.socket) -> None:
        if self._closed:
            given.close()
        else:
            self._free.append(given)

    def close(self) -> None:
        self._closed = True
        while self._free:
            self._free.pop().close()


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


async def _is_readable(number: int, seconds: float) -> bool:
    try:
        await asyncio.wait_for(_readable(number), seconds)
    except TimeoutError:
        return False
    return True


async def _readable(number: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(number, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(number)
