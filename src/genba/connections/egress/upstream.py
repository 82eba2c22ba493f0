"""The one place that a broker leads to: parsed once, reached directly or through the proxy of the host."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import h11
import msgspec

from genba.connections.egress.h11_connection import Header, Patience, Wire
from genba.connections.egress.upstream_proxy import Parent, dial, parent_for, parse_parent, unreached
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem

_PORTS = {"http": 80, "https": 443}
_ROOTS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep the certificates that they trust, for a Python that does not know its own."""


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """An address with a path below which everything is allowed."""

    scheme: str
    host: str
    port: int
    prefix: str
    """The path before every request, without a slash at its end."""

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def target(self) -> str:
        return f"{self._bracketed}:{self.port}"

    @property
    def authority(self) -> str:
        """As the Host header has it: without the port that the scheme has anyway."""
        return self._bracketed if self.port == _PORTS[self.scheme] else self.target

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_upstream(url: str) -> Upstream:
    """The address of a provider. It is refused when it could be read in two ways, or holds a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    plain = url.isascii() and url.isprintable() and " " not in url
    if not host or not plain or parts.scheme not in _PORTS or "@" in parts.netloc or parts.query or parts.fragment:
        message = "the address of the model must be http(s)://host[:port][/path], and nothing more"
        raise ConfigurationError((Problem("", "sandbox.credentials", message),))
    port = port or _PORTS[parts.scheme]
    return Upstream(scheme=parts.scheme, host=host, port=port, prefix=parts.path.rstrip("/"))


def proxy_for(url: str, environment: Mapping[str, str]) -> str:
    """The proxy that the environment of the host names for an upstream, or nothing."""
    upstream = parse_upstream(url)
    return parent_for(upstream.scheme, upstream.host, upstream.port, environment)


class Dialler:
    """Opens connections to one upstream, with the certificates of the system and through the proxy of the host."""

    def __init__(self, upstream: Upstream, proxy: str, patience: Patience) -> None:
        self._upstream = upstream
        self._parent: Parent | None = parse_parent(proxy) if proxy else None
        self._patience = patience
        self._tls: ssl.SSLContext | None = None

    @property
    def through_plain_proxy(self) -> bool:
        """Whether requests go to a proxy as they are, which then need the whole address."""
        return self._parent is not None and not self._upstream.secure

    @property
    def proxy_headers(self) -> tuple[Header, ...]:
        return self._parent.headers if self._parent is not None else ()

    async def dial(self) -> Wire:
        """A fresh connection. Raises `FarGone`."""
        upstream, patience = self._upstream, self._patience
        tls = await self._context() if upstream.secure else None
        if self._parent is None:
            ends = await dial(upstream.host, upstream.port, patience, tls=tls)
        elif tls is None:
            ends = await self._parent.dial(patience)
        else:
            ends = await self._parent.tunnel(upstream.target, patience)
            await self._shake_hands(ends[1], tls)
        return Wire(h11.CLIENT, *ends, patience)

    async def _shake_hands(self, writer: asyncio.StreamWriter, tls: ssl.SSLContext) -> None:
        plain = writer.transport
        try:
            async with asyncio.timeout(self._patience.dial):
                await writer.start_tls(tls, server_hostname=self._upstream.host)
        except OSError as error:
            plain.abort()
            raise unreached(error) from error
        except BaseException:
            plain.abort()
            raise

    async def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = await asyncio.to_thread(_trusting_the_system)
        return self._tls


def _trusting_the_system() -> ssl.SSLContext:
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not paths.cafile and not paths.capath:
        roots = next((root for root in _ROOTS if Path(root).is_file()), None)
        if roots is not None:
            context.load_verify_locations(roots)
    context.set_alpn_protocols(["http/1.1"])
    return context
