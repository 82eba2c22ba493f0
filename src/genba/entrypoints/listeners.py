"""Listening: a port or a socket, and an application that answers there until its block ends.

A client that sends nothing, sends a request bit by bit, or does not read its answer keeps its connection for a limited
time, and loses it at once where there are too many.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import h11
import msgspec
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from genba.domain.errors import StateConflictError
from genba.entrypoints.connection_limits import BACKLOG, Crowd, room_for

_KEEP_ALIVE_SECONDS = 120
_PARTING_SECONDS = 2


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How many seconds others are waited for."""

    silent: float = 10.0
    """Who has connected, until it begins to ask."""
    head: float = 15.0
    """The head of a request, from its first byte to its last."""
    request: float = 60.0
    """A request, from its first byte to its last."""
    reading: float = 30.0
    """An answer that the other side does not read."""


PATIENT = Patience()


def _protocol(patience: Patience, crowd: Crowd) -> type[H11Protocol]:
    class Patient(H11Protocol):
        """HTTP with a limit to how long a request may take to come. The time of an answer is not limited."""

        address = ""
        _late: asyncio.TimerHandle | None = None
        _unread: asyncio.TimerHandle | None = None
        _comes = False
        """Whether a request has begun to come."""
        _headless: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.address = self.client[0] if self.client else ""
            self._late = self.loop.call_later(patience.silent, self._leave)
            crowd.enter(self)

        def end(self) -> None:
            self.transport.abort()

        def pause_writing(self) -> None:
            super().pause_writing()
            crowd.waits(self)
            self._unread = self.loop.call_later(patience.reading, self.end)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._read_again()
            self._look()

        def _read_again(self) -> None:
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

        def data_received(self, data: bytes) -> None:
            self._begin()
            super().data_received(data)
            self._look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            crowd.leave(self)
            self._relax()
            self._read_again()
            super().connection_lost(exc)

        def _look(self) -> None:
            """Whether a part of a request is there, and the rest of it is not."""
            state = self.conn.their_state
            headless = state is h11.IDLE and bool(self.conn.trailing_data[0])
            if state is h11.SEND_BODY or headless:
                self._begin()
            else:
                self._relax()
            if not headless and self._headless is not None:
                self._headless.cancel()
                self._headless = None
            self._place(state)

        def _place(self, state: object) -> None:
            """Tell the crowd whether this one waits for the other side."""
            answered = self.cycle is None or self.cycle.response_complete
            if self._unread is not None or self._comes or (state is h11.IDLE and answered):
                crowd.waits(self)
            else:
                crowd.works(self)

        def _begin(self) -> None:
            if not self._comes:
                self._relax()
                self._comes = True
                self._late = self.loop.call_later(patience.request, self._leave)
                self._headless = self.loop.call_later(patience.head, self._leave)

        def _relax(self) -> None:
            self._comes = False
            for timer in (self._late, self._headless):
                if timer is not None:
                    timer.cancel()
            self._late = self._headless = None

        def _leave(self) -> None:
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()

    return Patient


class _Listener(uvicorn.Server):
    """Says when it answers, and leaves the signals of the process to its caller."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.answers.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(app: Starlette, listening: socket.socket, patience: Patience = PATIENT) -> AsyncIterator[None]:
    """Answer on a socket that is bound already, until the block ends."""
    crowd = Crowd(room_for())
    config = uvicorn.Config(
        app,
        http=_protocol(patience, crowd),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=crowd.most + 1,
        backlog=BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_PARTING_SECONDS,
    )
    listener = _Listener(config)
    running = asyncio.create_task(listener.serve(sockets=[listening]))
    ready = asyncio.create_task(listener.answers.wait())
    try:
        await asyncio.wait((running, ready), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield
    finally:
        ready.cancel()
        listener.should_exit = True
        await asyncio.shield(running)


def bound_port(host: str, port: int, command: str) -> socket.socket:
    """A socket at an address; 0 takes a free port. `command` is what takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends an answer without waiting for more of it only where the socket says that it is TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise StateConflictError(
            f"{host}:{port} cannot be listened on: {error.strerror or error}",
            unchanged="nothing was started.",
            hint=f"{command}   takes a free port",
        ) from error
    return listening
