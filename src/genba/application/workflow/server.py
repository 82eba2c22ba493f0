"""The server of a fleet: answers the instances that this executor started, on a socket that only they are led to.

It has a thread and a loop of its own, so that neither a hundred questions nor a slow one keep the engine waiting.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from genba.application.ports import Layout
from genba.coordination.workflow.service import WorkflowService
from genba.domain.errors import UnrecoverableError

Door = Callable[[WorkflowService, Path], AbstractAsyncContextManager[None]]
"""Serves the tools at a Unix socket, as long as the block lasts."""

_LONGEST_PATH = 80
"""Bytes; a socket in the file system cannot have much more, and the server needs some of them."""
_OPENING_SECONDS = 60.0


class WorkflowServer:
    """Answers at one socket, from `open` to `close`."""

    def __init__(self, service: WorkflowService, door: Door, path: Path) -> None:
        self.service = service
        self.door = door
        self.path = path
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="genba-workflow", daemon=True)

    def open(self) -> None:
        """Answer from now on."""
        self._thread.start()
        self._ready.wait(_OPENING_SECONDS)
        if self._problem is not None or self._loop is None:
            why = self._problem or "it took too long"
            raise UnrecoverableError(f"agents that ask for their next action cannot be answered: {why}")

    def close(self) -> None:
        """Stop answering. Safe to repeat."""
        if self._loop is not None and self._leaving is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._leaving.set)
            self._thread.join(_OPENING_SECONDS)
        self.service.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001  (the outermost edge of a thread)
            self._problem = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._leaving = asyncio.Event()
        async with self.door(self.service, self.path):
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            await self._leaving.wait()


def socket_path(layout: Layout, executor: str) -> Path:
    """Where an executor of this repository answers: the same place each time, in a folder of the user alone."""
    name = hashlib.sha256(f"{layout.common}\0{executor}".encode()).hexdigest()[:20]
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):  # noqa: S108  (made private)
        folder = Path(base) / f"genba-{os.getuid()}"
        if base and len(os.fsencode(folder / name)) <= _LONGEST_PATH and _is_private(folder):
            return folder / name
    return Path(tempfile.mkdtemp(prefix="genba-", dir="/tmp")) / name


def _is_private(folder: Path) -> bool:
    """Whether the folder is there, or can be made, for this user alone."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
