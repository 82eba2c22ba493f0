"""The fork server: forks a supervisor for each question, and ends whatever a dead supervisor leaves behind.

It must never have a second thread, since a fork keeps only one. Where the system hands orphans to it, every child that
it did not fork itself was left by a supervisor that died, and is ended at once.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from genba.connections.detached.fork_server_client import SpawnRequest, SpawnResult
from genba.connections.detached.job_dir import Attempt, Question
from genba.connections.detached.process_lock import Holder
from genba.domain.decoding import reader
from genba.domain.errors import DiskFullError, is_disk_full

Supervise = Callable[[Question, Attempt], int]
"""Puts the question, and says with which code to exit."""
Load = Callable[[SpawnRequest], None]
"""Loads what an agent of this kind needs, so that the processes which are forked need not."""

_CHUNK = 64 * 1024
_BROKEN = 70
_KILLING_SECONDS = 2.0
_POLL_SECONDS = 0.005
_LOOK_AGAIN_SECONDS = 1.0


class ForkServer:
    def __init__(self, line: socket.socket, supervise: Supervise, load: Load) -> None:
        self.line = line
        self.supervise = supervise
        self.load = load
        self.supervisors: set[int] = set()
        self._pending = b""
        self._ears, self._mouth = os.pipe()
        """A byte for each child that ends."""

    def serve(self) -> None:
        """Until the worker and the last supervisor are gone."""
        os.set_blocking(self._ears, False)
        os.set_blocking(self._mouth, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()  # what is loaded stays shared with the processes that are forked
        has_worker = True
        while has_worker or self.supervisors:
            left = self._clean()
            if not has_worker and not self.supervisors:
                return
            waited = [self._ears, self.line.fileno()] if has_worker else [self._ears]
            ready, _, _ = select.select(waited, [], [], _LOOK_AGAIN_SECONDS if left else None)
            with contextlib.suppress(BlockingIOError):
                os.read(self._ears, _CHUNK)
            self._clean()
            if self.line.fileno() in ready:
                has_worker = self._answer()

    def _answer(self) -> bool:
        """Do what the worker asks for; False when it is gone."""
        try:
            chunk = self.line.recv(_CHUNK)
        except OSError:
            chunk = b""
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        for line in lines:
            result = self._start(reader(SpawnRequest).decode(line))
            try:
                self.line.sendall(msgspec.json.encode(result) + b"\n")
            except OSError:
                return False
        return bool(chunk)

    def _start(self, request: SpawnRequest) -> SpawnResult:
        try:
            with contextlib.suppress(Exception):  # the supervisor that needs it reports what cannot be loaded
                self.load(request)
            return self._fork(Question(Path(request.folder)))
        except DiskFullError:
            return SpawnResult(full=True)
        except OSError as error:
            return SpawnResult(full=is_disk_full(error), error=f"{error.strerror}: {request.folder}")

    def _fork(self, question: Question) -> SpawnResult:
        """The lock is taken before the fork and left to the child: from the first moment on there is just one."""
        lock = question.take_lock()
        if lock is None:
            return SpawnResult(holder=question.holder())
        try:
            if question.result() is not None:
                return SpawnResult()
            attempt = question.begin()
            process = os.fork()
            if process == 0:
                self._become_supervisor(question, attempt, lock)
        finally:
            os.close(lock)
        self.supervisors.add(process)
        return SpawnResult(holder=Holder.of(process))

    def _become_supervisor(self, question: Question, attempt: Attempt, lock: int) -> None:
        """Never returns."""
        code = _BROKEN
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.line.close()
            os.close(self._ears)
            os.close(self._mouth)
            question.claim(lock)
            log = os.open(attempt.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
            code = self.supervise(question, attempt)
        except BaseException:  # noqa: BLE001  (the outermost edge of a process)
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _clean(self) -> bool:
        """Bury supervisors that ended, and end what dead ones left; True when something would not go."""
        deadline = time.monotonic() + _KILLING_SECONDS
        while True:
            self._reap()
            strangers = _children() - self.supervisors
            if not strangers or time.monotonic() > deadline:
                return bool(strangers)
            for process in strangers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while process := os.waitpid(-1, os.WNOHANG)[0]:
                self.supervisors.discard(process)


def _children() -> set[int]:
    """The children of this process, adopted ones included; empty where the system does not list them."""
    try:
        return {int(each) for each in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()}
    except OSError:
        return set()
