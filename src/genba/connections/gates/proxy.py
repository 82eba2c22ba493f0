"""The allow-list proxy: the way out to the network, for the hosts that the settings allow.

It speaks `CONNECT` and plain requests with a whole address. It sees names, not contents: who allows a host allows
everything that this host passes on. What may be reached at all is decided in `addresses`.
"""

import asyncio
from urllib.parse import urlsplit

import h11

from genba.connections.gates.addresses import AllowList, Denied, Unresolved, split_target
from genba.connections.gates.conversation import converse, plain_http_only
from genba.connections.gates.doorway import Doorway, close
from genba.connections.gates.events import Ledger, Told, Verdict
from genba.connections.gates.exchange import Mask, pass_on
from genba.connections.gates.relay import relay
from genba.connections.gates.wire import (
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
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem
from genba.domain.walls import Network

GATE = "proxy"


class AllowListProxy:
    """An HTTP proxy for one session. Every decision is told once and counted."""

    def __init__(self, network: Network, allow: tuple[str, ...], told: Told, *, patience: Patience = PATIENT) -> None:
        try:
            self._allow_list = AllowList(network, allow)
        except ValueError as error:
            raise ConfigurationError((Problem("", "sandbox.allow", str(error)),)) from error
        self._patience = patience
        self.ledger = Ledger(GATE, told)
        self._doorway = Doorway(self.ledger)

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
            text += "hint: what this session may reach is said by sandbox.network and sandbox.allow\n"
        elif refusal.status not in {BAD_GATEWAY, FAR_TOO_SLOW}:
            self.ledger.note(Verdict.DENIED, "", refusal.message)
        return b"text/plain; charset=utf-8", text.encode()

    async def _tunnel(self, near: Wire, request: h11.Request) -> None:
        try:
            host, port = split_target(request.target.decode("ascii"), None)
        except ValueError as error:
            raise Refusal(BAD_REQUEST, "CONNECT wants host:port") from error
        if port is None:
            raise Refusal(BAD_REQUEST, "CONNECT wants host:port")
        far_reader, far_writer = await self._dial(host, port)
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
        far = Wire(h11.CLIENT, *await self._dial(host, port), self._patience)
        try:
            try:
                await far.send(h11.Request(method=request.method, target=path.encode(), headers=headers))
            except Gone as gone:
                raise FarGone(gone.why) from gone
            await pass_on(near, far, _shaped, Mask(b""))
        finally:
            far.writer.transport.abort()
            await close(far.writer)

    async def _dial(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to an address of the target that was judged, or a refusal that says why there is none."""
        target = _target(host, port)
        try:
            addresses = await self._allow_list.addresses(host, port)
        except Denied as denied:
            self.ledger.note(Verdict.DENIED, target, str(denied))
            raise Refusal(FORBIDDEN, f"denied: {target}: {denied}") from denied
        except Unresolved as error:
            self.ledger.note(Verdict.FAILED, target, str(error))
            raise FarGone(str(error)) from error
        self.ledger.note(Verdict.ALLOWED, target)
        return await self._first_that_answers(target, addresses, port)

    async def _first_that_answers(
        self, target: str, addresses: tuple[str, ...], port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        why, status = "", 0
        for address in addresses:
            try:
                async with asyncio.timeout(self._patience.dial):
                    return await asyncio.open_connection(address, port)
            except TimeoutError:
                why, status = "it did not answer in time", FAR_TOO_SLOW
            except OSError as error:
                why, status = f"no connection: {error.strerror or type(error).__name__}", BAD_GATEWAY
        self.ledger.note(Verdict.FAILED, target, why)
        raise FarGone(why, status)


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
