"""The MCP server over streamable HTTP: on a port of this machine, or on a socket in its file system.

Law: a request is answered for itself; no connection holds anything that another would miss.
"""

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from genba.coordination.workflow.service import WorkflowService
from genba.entrypoints.listeners import bound_port, serving
from genba.entrypoints.mcp.guard import LARGEST_BODY, LOOPBACK, Guard
from genba.entrypoints.mcp.server import Context, RequestCredentials, build
from genba.entrypoints.mcp.stale_connections import sweeping

_BEARER = "bearer "


class HttpTransport:
    """Requests that each carry their secret in a header, or their token in the arguments."""

    def __init__(self, door: str) -> None:
        self.door = door

    def carried(self, context: Context) -> RequestCredentials:
        request = context.request
        if not isinstance(request, Request):
            return RequestCredentials()
        shown = request.headers.get("authorization", "")
        secret = shown[len(_BEARER) :].strip() if shown[: len(_BEARER)].lower() == _BEARER else ""
        named = {
            "agent": request.headers.get("genba-agent", "")[:200],
            "project": request.headers.get("genba-project", "")[:200],
        }
        if secret.startswith("gbs_"):
            return RequestCredentials(token=secret, **named)
        return RequestCredentials(secret=secret, **named)

    def connected(self, token: str) -> None:
        """The caller keeps it."""


class _Mcp:
    """Hands requests to the session manager of the SDK.

    A stream without a request is refused, as the protocol allows: nothing is sent there, and anybody could hold one.
    """

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            error = {"code": -32600, "message": "no stream is offered here: send requests by POST"}
            body = {"jsonrpc": "2.0", "id": None, "error": error}
            await JSONResponse(body, 405, headers={"allow": "POST, DELETE"})(scope, receive, send)
            return
        await self._manager.handle_request(scope, receive, send)


def application(
    service: WorkflowService, *, door: str = "http", loopback: bool = True, server: Server[Any] | None = None
) -> Starlette:
    """The application: `/mcp` and `/healthz`. It can be mounted in another, which then runs its lifespan."""
    manager = StreamableHTTPSessionManager(
        app=server or build(service, HttpTransport(door)),
        json_response=True,
        stateless=True,
        max_request_body_size=LARGEST_BODY,
        security_settings=_only_this_machine() if loopback else None,
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run(), sweeping(service):
            yield

    guard = Middleware(Guard, calls_per_minute=service.settings.workflow.calls_per_minute)
    return Starlette(
        routes=[Route("/mcp", endpoint=_Mcp(manager)), Route("/healthz", endpoint=_health, methods=["GET"])],
        middleware=[guard],
        lifespan=lifespan,
    )


def _only_this_machine() -> TransportSecuritySettings:
    """A browser that was lured to another name of this address is turned away by that name."""
    hosts = [f"[{host}]" if ":" in host else host for host in LOOPBACK]
    named = [name for host in hosts for name in (host, f"{host}:*")]
    return TransportSecuritySettings(allowed_hosts=named, allowed_origins=[f"http://{name}" for name in named])


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


@contextlib.asynccontextmanager
async def serve_port(service: WorkflowService, host: str, port: int, *, loopback: bool = True) -> AsyncIterator[str]:
    """Answer on a port. What is given is the address for clients."""
    shown = f"[{host}]" if ":" in host else host
    with contextlib.closing(bound_port(host, port, "genba mcp --http --port=0")) as listening:
        async with serving(application(service, loopback=loopback), listening):
            yield f"http://{shown}:{listening.getsockname()[1]}/mcp"


@contextlib.asynccontextmanager
async def serve_socket(service: WorkflowService, path: Path) -> AsyncIterator[None]:
    """Answer on a Unix socket that only this user can open. Replaces an older server at this path."""
    with _bound(path) as listening:
        async with serving(application(service, door="socket"), listening):
            yield


@contextlib.contextmanager
def _bound(path: Path) -> Iterator[socket.socket]:
    """Bound under another name and then put in place, so that the path leads somewhere at any moment."""
    fresh = path.with_name(f".{os.getpid():x}.{path.name[:40]}")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        fresh.unlink(missing_ok=True)
        listening.bind(str(fresh))
        fresh.chmod(0o600)
        listening.listen(1)
        own = fresh.stat().st_ino
        fresh.replace(path)
        try:
            yield listening
        finally:
            with contextlib.suppress(OSError):
                if path.stat().st_ino == own:
                    path.unlink()
    finally:
        listening.close()
