"""Runs a command in its own process group, streams what it says, and ends it with everything it started."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from genba.connections.processes.orphans import end_orphans, whose_all_descend
from genba.connections.processes.output import Awaited, Kept, Reports, WholeLines
from genba.connections.processes.tree import MARK, end_all
from genba.domain.errors import GenbaError
from genba.domain.processes import Command, Ending, Exit, OutputListener

_SMALL_READ = 4096
_READS_IN_A_ROW = 50
_PACE_SECONDS = 0.02
"""A process that prints in tiny pieces is read this often: each read costs more than such a piece."""
_POLL_SECONDS = 0.1
_SELDOM_SECONDS = 2.0
_PIPE_GRACE_SECONDS = 0.5
_PARTING_SECONDS = 5.0
"""How long a process may take to end by itself after a conversation with it is over."""


class ProcessSupervisor:
    """The one place that starts, watches and ends processes."""

    def __init__(self) -> None:
        self._running = 0
        """Commands that run now. An orphan belongs to one of them, and it is not known to which."""

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        self._running += 1
        try:
            return await self._run(command, on_output)
        finally:
            self._running -= 1

    async def _run(self, command: Command, on_output: OutputListener) -> Exit:
        loop = asyncio.get_running_loop()
        began = loop.time()
        pipes, process = _Pipes(), None
        try:
            process = await self._started(command, pipes)
        except (OSError, ValueError) as error:
            output = f"{command.argv[0]}: {error.strerror if isinstance(error, OSError) else error}"
            return Exit(ending=Ending.CANNOT_START, code=127, stdout="", stderr=output, seconds=0.0)
        finally:
            pipes.close_far_ends()
            if process is None:
                pipes.close()
        watch = _Watch(loop, process, on_output, command)
        try:
            on_output("started", str(process.pid))
            await watch.open(pipes)
            ending = await watch.until_end(command)
        finally:
            await self._end(process.pid, command.mark, watch)
        code = process.returncode if process.returncode is not None else -signal.SIGKILL
        stdout, left_out = watch.kept["stdout"].content()
        return Exit(
            ending=ending,
            code=code,
            stdout=stdout.decode("utf-8", errors="replace"),
            stderr=watch.kept["stderr"].content()[0].decode("utf-8", errors="replace"),
            seconds=loop.time() - began,
            left_out=left_out,
        )

    async def _started(self, command: Command, pipes: "_Pipes") -> asyncio.subprocess.Process:
        """The process, once it is there. A caller that is cancelled during the start ends what was started."""
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *command.argv,
                cwd=command.workdir,
                env={**command.environment, MARK: command.mark},
                stdin=asyncio.subprocess.PIPE,
                stdout=pipes.far["stdout"],
                stderr=pipes.far["stderr"],
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


class _Pipes:
    """The two pipes that a process prints into. What is not handed on is closed."""

    def __init__(self) -> None:
        self.near: dict[str, int] = {}
        self.far: dict[str, int] = {}
        for name in ("stdout", "stderr"):
            self.near[name], self.far[name] = os.pipe()

    def close_far_ends(self) -> None:
        """Once the process has them, or there is none: the pipes run dry when it ends."""
        for descriptor in self.far.values():
            os.close(descriptor)

    def close(self) -> None:
        while self.near:
            os.close(self.near.popitem()[1])


class _Pipe(asyncio.Protocol):
    """Reads one pipe: as much at once as there is, and less often where that is little."""

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[bytes], None]) -> None:
        self.loop = loop
        self.take = take
        self.over: asyncio.Future[None] = loop.create_future()
        self.transport: asyncio.ReadTransport | None = None
        self._small = 0
        self._since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport)  # noqa: S101  (see _Watch.open)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.take(data)
        if len(data) >= _SMALL_READ:
            return
        now = self.loop.time()
        if now - self._since > _READS_IN_A_ROW * _PACE_SECONDS:
            self._since, self._small = now, 0
        self._small += 1
        if self._small > _READS_IN_A_ROW and self.transport is not None:
            self.transport.pause_reading()
            self.loop.call_later(_PACE_SECONDS, self._go_on)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _go_on(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()


class _Watch:
    """Reads both streams, and knows when the last output came."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        process: asyncio.subprocess.Process,
        on_output: OutputListener,
        command: Command,
    ) -> None:
        self.loop = loop
        self.process = process
        self.last_sign = loop.time()
        self.parting = float("inf")
        """When a process whose conversation is over is ended."""
        head = command.keep_bytes // 4
        self.kept = {name: Kept(head, command.keep_bytes - head) for name in ("stdout", "stderr")}
        self.awaited = Awaited(on_output, command.awaits)
        self.reports = Reports(on_output, command.output_bytes, self.kept)
        self.lines = WholeLines(command.lines, command.wanted, on_output) if command.lines is not None else None
        self.deaf: asyncio.Future[Any] = loop.create_future()
        """Set when output can no longer be written down, which ends the process."""
        self.pipes: list[_Pipe] = []
        self.finished = False

    async def open(self, pipes: _Pipes) -> None:
        """Begin to read."""
        while pipes.near:
            name, descriptor = pipes.near.popitem()
            file = os.fdopen(descriptor, "rb", buffering=0)
            pipe = _Pipe(self.loop, partial(self._take, name))
            self.pipes.append(pipe)
            await self.loop.connect_read_pipe(lambda pipe=pipe: pipe, file)  # type: ignore[misc]

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
            await self._until_dry(_PIPE_GRACE_SECONDS)
            if all(pipe.over.done() for pipe in self.pipes):
                self._finish()
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
        """After the end of all writers the pipes run dry; one that does not is let go."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PIPE_GRACE_SECONDS * 4):
                await self.process.wait()
                await self._until_dry(None)
                await asyncio.gather(self._drop_stdin(), return_exceptions=True)
        for pipe in self.pipes:
            pipe.close()
        self._finish()
        self.deaf.cancel()

    async def _until_dry(self, seconds: float | None) -> None:
        if self.pipes:
            await asyncio.wait({pipe.over for pipe in self.pipes}, timeout=seconds)

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
        """What was not read goes nowhere. The exit status is read, or asyncio logs that it never was."""
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

    def _take(self, name: str, chunk: bytes) -> None:
        """What was just read. After an error the pipe is still emptied, so that the process can end."""
        self.last_sign = self.loop.time()
        if self.deaf.done():
            return
        self.kept[name].add(chunk)
        with self._telling():
            if self.lines is not None and name == "stdout":
                self.lines.feed(chunk)
            self.awaited.feed(name, chunk)
            self.reports.feed(name, chunk)

    def _finish(self) -> None:
        """Nothing more comes: what was held back is reported, once."""
        if self.finished or self.deaf.done():
            return
        self.finished = True
        with self._telling():
            if self.lines is not None:
                self.lines.finish()
            self.reports.finish()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (GenbaError, OSError) as error:
            if not self.deaf.done():
                self.deaf.set_exception(error)


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
        loop.remove_reader(descriptor)  # it stays readable from now on, and would be reported again and again
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
