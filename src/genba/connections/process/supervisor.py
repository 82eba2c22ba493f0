"""Runs a command in its own process group, streams what it says, and ends it with everything it started."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from genba.connections.process.orphans import end_orphans, whose_all_descend
from genba.connections.process.tree import MARK, end_all
from genba.domain.errors import GenbaError
from genba.domain.processes import Command, Ending, Exit, Heard

_CHUNK = 64 * 1024
_KEPT_BYTES = 32 * 1024 * 1024
_LINE_BYTES = 16 * 1024
_OVERLAP_BYTES = 512
"""Held back of a line that is told in pieces, so that a secret is not cut in two."""
_LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line that is handed on whole. A longer one is told in pieces, and is no line for anybody."""
_POLL_SECONDS = 0.1
_SELDOM_SECONDS = 2.0
_PIPE_GRACE_SECONDS = 0.5
_PARTING_SECONDS = 5.0
"""How long a process may take to end by itself after a conversation with it is over."""


class ProcessSupervisor:
    """The one place that starts, watches and ends processes."""

    def __init__(self) -> None:
        self._running = 0
        """Commands that run now. An orphan belongs to one of them, and nobody can tell to which."""

    async def run(self, command: Command, heard: Heard) -> Exit:
        self._running += 1
        try:
            return await self._run(command, heard)
        finally:
            self._running -= 1

    async def _run(self, command: Command, heard: Heard) -> Exit:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            process = await self._started(command)
        except (OSError, ValueError) as error:
            said = f"{command.argv[0]}: {error.strerror if isinstance(error, OSError) else error}"
            return Exit(ending=Ending.CANNOT_START, code=127, stdout="", stderr=said, seconds=0.0)
        heard("started", str(process.pid))
        watch = _Watch(loop, process, heard, command.lines)
        try:
            ending = await watch.until_end(command)
        finally:
            await self._end(process.pid, command.mark, watch)
        code = process.returncode if process.returncode is not None else -signal.SIGKILL
        return Exit(
            ending=ending,
            code=code,
            stdout=watch.kept("stdout"),
            stderr=watch.kept("stderr"),
            seconds=loop.time() - began,
        )

    async def _started(self, command: Command) -> asyncio.subprocess.Process:
        """The process, once it is there. Who is told to stop while it is being started ends what was started."""
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *command.argv,
                cwd=command.workdir,
                env={**command.environment, MARK: command.mark},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                pass_fds=command.inherited,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            if starting.exception() is None:
                await asyncio.shield(asyncio.to_thread(end_all, command.mark, starting.result().pid))
            raise

    async def sweep(self, mark: str) -> int:
        return await asyncio.to_thread(end_all, mark)

    async def _end(self, pid: int, mark: str, watch: "_Watch") -> None:
        """Nothing that the command started outlives it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if watch.process.returncode is None:
                os.killpg(pid, signal.SIGTERM)
        root = pid if watch.process.returncode is None else None
        await asyncio.shield(asyncio.to_thread(end_all, mark, root, whose_all_descend()))
        if self._running == 1:
            await asyncio.shield(asyncio.to_thread(end_orphans))
        await watch.close()


class _Watch:
    """Reads both streams, and knows when something was last said."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        process: asyncio.subprocess.Process,
        heard: Heard,
        lines: Callable[[bytes], None] | None,
    ) -> None:
        self.loop = loop
        self.process = process
        self.heard = heard
        self.lines = _WholeLines(lines) if lines is not None else None
        self.last_sign = loop.time()
        self.parting = float("inf")
        """When a process that nobody talks with any more is ended."""
        self.buffers: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.deaf: asyncio.Future[Any] = loop.create_future()
        """Set when what is said can no longer be written down, which ends the process."""
        assert process.stdout is not None  # noqa: S101  (both are pipes, see run)
        assert process.stderr is not None  # noqa: S101
        self.readers = [
            asyncio.create_task(self._read("stdout", process.stdout)),
            asyncio.create_task(self._read("stderr", process.stderr)),
        ]

    async def until_end(self, command: Command) -> Ending:
        talk: asyncio.Future[Any] = asyncio.create_task(self._talk(command))
        heeded = {self.deaf, talk} if command.converse is not None else {self.deaf}
        waiter: asyncio.Future[Any] = asyncio.create_task(self._ended())
        deadline = self.loop.time() + command.timeout_seconds
        try:
            while not waiter.done():
                now = self.loop.time()
                quiet_until = self.last_sign + command.idle_seconds
                if now >= self.parting:
                    return Ending.EXITED
                if now >= deadline:
                    return Ending.TIMED_OUT
                if now >= quiet_until:
                    return Ending.WENT_SILENT
                patience = min(deadline, quiet_until, self.parting) - now
                waited = {waiter, *(each for each in heeded if not each.done())}
                await asyncio.wait(waited, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                _pass_on(heeded)
            await asyncio.wait(self.readers, timeout=_PIPE_GRACE_SECONDS)
            if talk in heeded:
                await asyncio.wait({talk}, timeout=_PIPE_GRACE_SECONDS)
            _pass_on(heeded)
            return Ending.EXITED
        finally:
            for task in (talk, waiter):
                task.cancel()
            await asyncio.gather(talk, waiter, return_exceptions=True)

    async def _ended(self) -> None:
        """The end of the process itself, even while a child of its holds the pipes open."""
        whole = asyncio.create_task(self.process.wait())
        try:
            with _gone(self.loop, self.process.pid) as gone:
                while self.process.returncode is None and not whole.done():
                    known = gone.done()
                    waited: set[asyncio.Future[Any]] = {whole} if known else {whole, gone}
                    pause = _POLL_SECONDS if known else _SELDOM_SECONDS
                    await asyncio.wait(waited, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        finally:
            whole.cancel()

    async def close(self) -> None:
        """After the end of all writers the pipes run dry; a reader that still waits is let go."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PIPE_GRACE_SECONDS * 4):
                await self.process.wait()
                await asyncio.gather(*self.readers, self._drop_stdin(), return_exceptions=True)
        for reader in self.readers:
            reader.cancel()
        self.deaf.cancel()
        await asyncio.gather(*self.readers, return_exceptions=True)

    def kept(self, stream: str) -> str:
        return self.buffers[stream].decode("utf-8", errors="replace")

    async def _talk(self, command: Command) -> None:
        """Say what there is to say, then close stdin."""
        pipe = self.process.stdin
        assert pipe is not None  # noqa: S101  (stdin is a pipe, see run)
        if command.converse is None:
            await self._send(command.stdin.encode("utf-8", errors="surrogateescape"))
        else:
            await command.converse(self._send)
            self.parting = self.loop.time() + _PARTING_SECONDS
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pipe.close()
            await pipe.wait_closed()

    async def _drop_stdin(self) -> None:
        """What was not read goes nowhere. Somebody asks how it ended, or asyncio tells everybody that nobody did."""
        pipe = self.process.stdin
        assert pipe is not None  # noqa: S101  (stdin is a pipe, see run)
        if not pipe.is_closing():
            pipe.transport.abort()
        await pipe.wait_closed()

    async def _send(self, data: bytes) -> None:
        pipe = self.process.stdin
        assert pipe is not None  # noqa: S101  (stdin is a pipe, see run)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pipe.write(data)
            await pipe.drain()
        await asyncio.sleep(0)  # who goes on talking to a closed pipe must not stop all others

    async def _read(self, name: str, stream: asyncio.StreamReader) -> None:
        try:
            await self._read_lines(name, stream)
        except GenbaError as error:
            if not self.deaf.done():
                self.deaf.set_exception(error)

    async def _read_lines(self, name: str, stream: asyncio.StreamReader) -> None:
        """Lines as they come. A line without end is told in pieces, and only so much of it is kept."""
        pending = b""
        while chunk := await stream.read(_CHUNK):
            self.last_sign = self.loop.time()
            room = _KEPT_BYTES - len(self.buffers[name])
            self.buffers[name] += chunk[: max(room, 0)]
            if self.lines is not None and name == "stdout":
                self.lines.feed(chunk)
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._tell(name, line)
            if len(pending) > _LINE_BYTES:
                self._tell(name, pending[:-_OVERLAP_BYTES])
                pending = pending[-_OVERLAP_BYTES:]
        if pending:
            self._tell(name, pending)
        if self.lines is not None and name == "stdout":
            self.lines.feed(b"\n")

    def _tell(self, name: str, line: bytes) -> None:
        self.heard(name, line.decode("utf-8", errors="replace"))


@contextlib.contextmanager
def _gone(loop: asyncio.AbstractEventLoop, pid: int) -> Iterator[asyncio.Future[None]]:
    """Done when a process has ended, or where the system does not tell of that by itself."""
    gone: asyncio.Future[None] = loop.create_future()
    try:
        descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
    except OSError:  # it is gone already, or the kernel is too old
        descriptor = -1
    if descriptor < 0:
        gone.set_result(None)
        yield gone
        return

    def tell() -> None:
        loop.remove_reader(descriptor)  # it stays readable from now on, and would be told of again and again
        if not gone.done():
            gone.set_result(None)

    loop.add_reader(descriptor, tell)
    try:
        yield gone
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        gone.cancel()


def _pass_on(heeded: set[asyncio.Future[Any]]) -> None:
    """Raise what one of them has raised."""
    for each in heeded:
        if each.done():
            each.result()


class _WholeLines:
    """Puts lines together, however they arrive; one that never ends is dropped, and the next one counts again."""

    def __init__(self, lines: Callable[[bytes], None]) -> None:
        self.lines = lines
        self.pieces: list[bytes] = []
        self.length = 0

    def feed(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._add(line)
            if 0 < self.length <= _LONGEST_LINE:
                self.lines(b"".join(self.pieces))
            self.pieces, self.length = [], 0
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self.length += len(piece)
        if self.length > _LONGEST_LINE:
            self.pieces = []
        elif piece:
            self.pieces.append(piece)
