"""The allow-list proxy: the way out to the network, for the hosts that the settings allow.

It speaks `CONNECT` and plain requests with a whole address. It sees names, not contents: who allows a host allows
everything that this host passes on. What may be reached at all is decided in `addresses`.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from urllib.parse import urlsplit

import h11

from genba.connections.egress.addresses import AllowList, Denied, Unresolved, of_this_host, split_target
from genba.connections.egress.connection_limiter import Doorway, close
from genba.connections.egress.events import AccessLog
from genba.connections.egress.exchange import SecretScrubber, pass_on
from genba.connections.egress.h11_connection import (
    BAD_GATEWAY,
    BAD_REQUEST,
    FAR_TOO_SLOW,
    FORBIDDEN,
    PATIENT,
    FarGone,
    Gone,
    Header,
    Patience,
    Refusal,
    Wire,
    end_to_end,
    framing,
)
from genba.connections.egress.relay import Ends, relay
from genba.connections.egress.request_loop import converse, plain_http_only
from genba.connections.egress.upstream_proxy import (
    Parent,
    dial,
    opted_in,
    parent_for,
    parse_parent,
    unused_parent,
)
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem
from genba.domain.sessions.egress import EgressListener, Verdict
from genba.domain.sessions.sandbox import PARENT_VARIABLE, Network

PORT = "proxy"


class AllowListProxy:
    """An HTTP proxy for one session. Every decision is reported once and counted."""

    def __init__(
        self,
        network: Network,
        allow: tuple[str, ...],
        on_event: EgressListener,
        *,
        environment: Mapping[str, str] | None = None,
        patience: Patience = PATIENT,
    ) -> None:
        """`environment` is that of the user: it may say that the outside is reached through another proxy."""
        try:
            self._allow_list = AllowList(network, allow)
        except ValueError as error:
            raise ConfigurationError((Problem("", "sandbox.allow", str(error)),)) from error
        self._environment = opted_in(environment or {})
        self._unused = unused_parent(environment or {})
        for scheme in ("http", "https"):
            if named := parent_for(scheme, "", 0, self._environment):
                parse_parent(named)
        self._patience = patience
        self.access_log = AccessLog(PORT, on_event)
        self._doorway = Doorway(self.access_log)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near = Wire(h11.SERVER, reader, writer, self._patience)
        await self._doorway.admit(writer, lambda: self._serve(near))

    async def _serve(self, near: Wire) -> None:
        async def handle(request: h11.Request) -> bool:
            if request.method == b"CONNECT":
                await self._tunnel(near, request)
                return False
            await self._pass_on(near, request)
            return True

        await converse(near, handle, self._refused)

    def _refused(self, refusal: Refusal) -> tuple[bytes, bytes]:
        """A refusal in plain words. Those that concern a target were written down when it was judged."""
        text = f"Genba's proxy: {refusal.message}\n"
        if refusal.status == FORBIDDEN:
            text += "hint: sandbox.network and sandbox.allow set what this session may reach\n"
        elif refusal.status not in {BAD_GATEWAY, FAR_TOO_SLOW}:
            self.access_log.record(Verdict.DENIED, "", refusal.message)
        return b"text/plain; charset=utf-8", text.encode()

    async def _tunnel(self, near: Wire, request: h11.Request) -> None:
        try:
            host, port = split_target(request.target.decode("ascii"), None)
        except ValueError as error:
            raise Refusal(BAD_REQUEST, "CONNECT wants host:port") from error
        if port is None:
            raise Refusal(BAD_REQUEST, "CONNECT wants host:port")
        addresses, parent = await self._judged("https", host, port)
        if parent is not None:
            opening = parent.tunnel(_target(host, port), self._patience)
        else:
            opening = self._first_that_answers(port, addresses)
        far_reader, far_writer = await self._reporting_failure(host, port, opening)
        try:
            await near.next(self._patience.head)  # the end of the request, which has no body
            await near.send(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
            far_writer.write(near.state.trailing_data[0])
        except BaseException:
            far_writer.transport.abort()
            raise
        await relay((near.reader, near.writer), (far_reader, far_writer), self._patience.tunnel)

    async def _pass_on(self, near: Wire, request: h11.Request) -> None:
        host, port, path = _whole_address(request.target.decode("ascii"))
        plain_http_only(request, "it goes through CONNECT")
        headers: list[Header] = end_to_end(request.headers, frozenset({b"host"}))
        headers += [
            (b"host", _authority(host, port).encode()),
            (b"connection", b"close"),
            *framing(request.headers),
        ]
        addresses, parent = await self._judged("http", host, port)
        if parent is not None:
            path, headers = f"http://{_authority(host, port)}{path}", [*headers, *parent.headers]
            opening = parent.dial(self._patience)
        else:
            opening = self._first_that_answers(port, addresses)
        far = Wire(h11.CLIENT, *await self._reporting_failure(host, port, opening), self._patience)
        try:
            try:
                await far.send(h11.Request(method=request.method, target=path.encode(), headers=headers))
            except Gone as gone:
                raise FarGone(gone.why) from gone
            await pass_on(near, far, _shaped, SecretScrubber(b""))
        finally:
            far.writer.transport.abort()
            await close(far.writer)

    async def _judged(self, scheme: str, host: str, port: int) -> tuple[tuple[str, ...], Parent | None]:
        """The addresses of a target that may be reached, and the parent proxy that leads there, if the user chose one.

        A name that only the parent proxy resolves is left to it. Without one every name is resolved and checked here.
        """
        target = _target(host, port)
        named = parent_for(scheme, host, port, self._environment)
        addresses: tuple[str, ...] = ()
        try:
            addresses = await self._allow_list.addresses(host, port)
        except Denied as denied:
            self.access_log.record(Verdict.DENIED, target, str(denied))
            raise Refusal(FORBIDDEN, f"denied: {target}: {denied}") from denied
        except Unresolved as error:
            if not named:
                result = self._with_hint(str(error))
                self.access_log.record(Verdict.FAILED, target, result)
                raise FarGone(result) from error
        self.access_log.record(Verdict.ALLOWED, target)
        near_by = any(of_this_host(address) for address in addresses)
        return addresses, parse_parent(named) if named and not near_by else None

    async def _first_that_answers(self, port: int, addresses: tuple[str, ...]) -> Ends:
        """A connection to one of the addresses that were judged: the name is not looked up again."""
        gone = FarGone("no address")
        for address in addresses:
            try:
                return await dial(address, port, self._patience)
            except FarGone as reason:
                gone = reason
        raise gone

    async def _reporting_failure(self, host: str, port: int, opening: Awaitable[Ends]) -> Ends:
        try:
            return await opening
        except FarGone as gone:
            result = self._with_hint(gone.why)
            self.access_log.record(Verdict.FAILED, _target(host, port), result)
            raise FarGone(result, gone.status) from gone

    def _with_hint(self, why: str) -> str:
        """Why a target was not reached; a proxy that the environment names is not used without the user's word."""
        if not self._unused:
            return why
        return f"{why} ({self._unused} is set; sandboxes use it only with {PARENT_VARIABLE}=environment)"


def _whole_address(target: str) -> tuple[str, int, str]:
    """Host, port and path of a request to a proxy."""
    try:
        parts = urlsplit(target)
        host, port = split_target(parts.netloc, 80)
    except ValueError as error:
        raise Refusal(BAD_REQUEST, "the address cannot be understood") from error
    if parts.scheme.lower() != "http" or port is None:
        raise Refusal(BAD_REQUEST, "this is a proxy: it wants CONNECT, or a request with a whole http:// address")
    path = target.partition("://")[2]
    path = path[len(parts.netloc) :].partition("#")[0]
    return host, port, path if path.startswith("/") else f"/{path}"


def _target(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _authority(host: str, port: int) -> str:
    return _target(host, port) if port != 80 else _target(host, port).removesuffix(":80")  # noqa: PLR2004  (http)


def _shaped(response: h11.Response) -> h11.Response:
    headers = end_to_end(response.headers)
    return h11.Response(status_code=response.status_code, headers=headers, reason=response.reason)
