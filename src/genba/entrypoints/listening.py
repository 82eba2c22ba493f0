"""Listening: a port or a socket, and an application that answers there until its block ends."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from starlette.applications import Starlette

from genba.domain.errors import StateConflictError

_MOST_AT_ONCE = 1024
_KEEP_ALIVE_SECONDS = 120
_PARTING_SECONDS = 2


class _Listener(uvicorn.Server):
    """Says when it answers, and leaves the signals of the process to whoever runs it."""

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
async def serving(app: Starlette, listening: socket.socket) -> AsyncIterator[None]:
    """Answer on a socket that is bound already, until the block ends."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=_MOST_AT_ONCE,
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
    # asyncio sends an answer without waiting for more of it only where it is told that this is TCP.
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
