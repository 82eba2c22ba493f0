"""The line between Genba and a command behind walls: what the launcher hands over, and what bubblewrap tells."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from genba.connections.sandbox.gatekeeping import Gatekeeper
from genba.domain.walls import Gate

_CHUNK = 16 * 1024
_MOST_GATES = 64


class Line:
    """A pair of sockets: the far one is inherited by the launcher, and by bubblewrap after it, and by nobody inside."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self._near = near
        self._far = far
        self._heard = b""
        self._first_handle: int | None = None
        self.far = far.fileno()
        self.first: int | None = None
        """The first process inside, as the host counts."""
        self.ran = False
        """Whether the command was really started, and ended by itself."""

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
            if line._first_handle is not None:
                os.close(line._first_handle)

    def leave_to_others(self) -> None:
        """Once the launcher has its end, nobody here needs it."""
        self._far.close()

    async def listen(self, gates: tuple[Gate, ...], gatekeeper: Gatekeeper) -> None:
        """Open each gate with the socket that the launcher hands over, then take in what bubblewrap tells."""
        while True:
            await _readable(self._near.fileno())
            data, numbers, _, _ = socket.recv_fds(self._near, _CHUNK, _MOST_GATES)
            doors = [socket.socket(fileno=number) for number in numbers]
            for gate, door in zip(gates, doors, strict=False):
                door.setblocking(False)
                await gatekeeper.open(gate, door)
            if not data:
                return
            self._take_in(data)

    def read_rest(self) -> None:
        """What was told before the end and not read yet."""
        with contextlib.suppress(OSError):
            while data := self._near.recv(_CHUNK):
                self._take_in(data)

    async def last_process_gone(self, seconds: float) -> None:
        """The first process inside is the last to go: the kernel ends all others before it."""
        if self._first_handle is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await _readable(self._first_handle)

    def kill_first(self) -> None:
        if self._first_handle is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._first_handle, signal.SIGKILL)

    def _take_in(self, data: bytes) -> None:
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in filter(None, lines):
            told = json.loads(line)
            self.ran = self.ran or "exit-code" in told
            if self.first is None and "child-pid" in told:
                with contextlib.suppress(OSError):
                    self._first_handle = os.pidfd_open(told["child-pid"])
                    self.first = told["child-pid"]


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


async def _readable(number: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(number, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(number)
