"""The worker's line to its fork server: a process without threads that has everything loaded, and forks supervisors.

No other process can reach a fork server: the line is a pair of sockets that only the two hold. The fork server
gets the environment of its worker and nothing of it travels any other way. It ends when its worker and its last
supervisor are gone; when it dies itself, its supervisors live on, and the worker starts another one.
"""

import contextlib
import os
import socket
import subprocess
import threading
from pathlib import Path

import msgspec

from genba.connections.detached.process_lock import Holder, disk_full, telling_of_full_disks
from genba.connections.private_folders import make_private_folder
from genba.domain.decoding import reader
from genba.domain.errors import AgentUnavailable

_PATIENCE_SECONDS = 60.0
_TRIES = 3
_LONGEST_LINE = 64 * 1024


class SpawnRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to the fork server: a supervisor for the question in a folder."""

    folder: str
    adapter: str = ""
    """The kind of agent, to be loaded once for all that follow."""
    sandboxed: bool = False
    """Whether it lives in a sandbox; what that needs to know of this machine is found out once."""


class SpawnResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of it: a new supervisor, or nothing, because there is one or there is a result already."""

    holder: Holder | None = None
    full: bool = False
    """The disk is full."""
    error: str = ""


class ForkServerClient:
    """One for each worker. Can be used from any thread."""

    def __init__(self, argv: tuple[str, ...], log: Path) -> None:
        self.argv = argv
        """The command; the number of its end of the line is added."""
        self.log = log
        self._turn = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def open(self) -> None:
        """Start it before it is needed: it loads while the worker does something else."""
        with self._turn:
            self._opened()

    def start(self, folder: Path, adapter: str = "", sandboxed: bool = False) -> SpawnResult:
        """Have a supervisor started, unless there is one. Safe to repeat: the lock of the question lets in only one."""
        asked = msgspec.json.encode(SpawnRequest(folder=str(folder), adapter=adapter, sandboxed=sandboxed)) + b"\n"
        with self._turn:
            for _ in range(_TRIES):
                result = self._ask(asked)
                if result:
                    return _read(result, folder)
                self._drop()
        raise AgentUnavailable("the process that starts agents does not answer", hint=f"its output: {self.log}")

    def close(self) -> None:
        """Let it go. Supervisors that still work live on."""
        with self._turn:
            self._drop()

    def _opened(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self._drop()
        if self._line is not None:
            return self._line
        mine, far = socket.socketpair()
        try:
            mine.settimeout(_PATIENCE_SECONDS)
            with far, telling_of_full_disks(self.log):
                make_private_folder(self.log.parent)
                log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                try:
                    self._process = subprocess.Popen(
                        [*self.argv, str(far.fileno())],
                        cwd="/",
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                        pass_fds=(far.fileno(),),
                    )
                finally:
                    os.close(log)
        except BaseException:
            mine.close()
            raise
        self._line = mine
        return mine

    def _ask(self, asked: bytes) -> bytes:
        """One line there and one back; empty when the fork server is dead."""
        line = self._opened()
        with contextlib.suppress(OSError):
            line.sendall(asked)
            result = b""
            while not result.endswith(b"\n") and len(result) < _LONGEST_LINE and (more := line.recv(_LONGEST_LINE)):
                result += more
            return result if result.endswith(b"\n") else b""
        return b""

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            if self._process.poll() is None:
                _let_go(self._process)
            self._process = None


def _read(line: bytes, folder: Path) -> SpawnResult:
    result = reader(SpawnResult).decode(line)
    if result.full:
        raise disk_full(folder)
    if result.error:
        raise AgentUnavailable(f"the agent's supervisor cannot be started: {result.error}")
    return result


def _let_go(process: "subprocess.Popen[bytes]") -> None:
    """Reap a fork server in the background, so that it is no zombie."""
    threading.Thread(target=process.wait, name="genba-fork-server-end", daemon=True).start()
