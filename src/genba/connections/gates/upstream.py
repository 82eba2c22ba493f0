"""The one place that a broker leads to: parsed once, reached directly or through the proxy of the host."""

import asyncio
import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import h11
import msgspec

from genba.connections.gates.wire import FAR_TOO_SLOW, FarGone, Gone, Header, Patience, Wire
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
    parts = _split(url)
    if parts is None or parts.scheme not in _PORTS or parts.username is not None or parts.query or parts.fragment:
        raise _refused("the address of the model must be http(s)://host[:port][/path], and nothing more")
    return Upstream(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=parts.port or _PORTS[parts.scheme],
        prefix=parts.path.rstrip("/"),
    )


def proxy_for(url: str, environment: Mapping[str, str]) -> str:
    """The proxy that the environment of the host names for this address, or nothing.

    `HTTPS_PROXY` or `HTTP_PROXY`, else `ALL_PROXY`, with the exceptions of `NO_PROXY`; small letters come first.
    """
    upstream = parse_upstream(url)

    def value(name: str) -> str:
        return environment.get(name, "") or environment.get(name.upper(), "")

    found = value(f"{upstream.scheme}_proxy") or value("all_proxy")
    exceptions = value("no_proxy")
    return "" if any(_excepted(upstream, word.strip().lower()) for word in exceptions.split(",")) else found


def _excepted(upstream: Upstream, word: str) -> bool:
    if word == "*":
        return True
    name = word.removesuffix(f":{upstream.port}").removeprefix("*").removeprefix(".").strip("[]")
    return bool(name) and (upstream.host == name or upstream.host.endswith(f".{name}"))


class Dialler:
    """Opens connections to one upstream, with the certificates of the system and through the proxy of the host."""

    def __init__(self, upstream: Upstream, proxy: str, patience: Patience) -> None:
        self._upstream = upstream
        self._patience = patience
        self._proxy = _parse_proxy(proxy) if proxy else None
        self._tls: ssl.SSLContext | None = None

    @property
    def through_plain_proxy(self) -> bool:
        """Whether requests go to a proxy as they are, which then must be told the whole address."""
        return self._proxy is not None and not self._upstream.secure

    @property
    def proxy_headers(self) -> list[Header]:
        """How this host makes itself known to its proxy."""
        if self._proxy is None or self._proxy.username is None:
            return []
        pair = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
        return [(b"proxy-authorization", b"Basic " + base64.b64encode(pair.encode()))]

    async def dial(self) -> Wire:
        """A fresh connection. Raises `FarGone`."""
        host, port = self._upstream.host, self._upstream.port
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or _PORTS["http"]
        try:
            async with asyncio.timeout(self._patience.dial):
                direct = self._upstream.secure and self._proxy is None
                context = await self._context() if self._upstream.secure else None
                reader, writer = await asyncio.open_connection(host, port, ssl=context if direct else None)
                if context is not None and not direct:
                    await self._tunnel(reader, writer, context)
        except TimeoutError as error:
            raise FarGone("it did not answer in time", FAR_TOO_SLOW) from error
        except Gone as gone:
            raise FarGone(f"the proxy of the host: {gone.why}") from gone
        except ssl.SSLError as error:
            raise FarGone(f"no trusted connection: {error.reason or 'TLS failed'}") from error
        except (OSError, UnicodeError) as error:
            raise FarGone(f"no connection: {getattr(error, 'strerror', None) or type(error).__name__}") from error
        return Wire(h11.CLIENT, reader, writer, self._patience)

    async def _tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext
    ) -> None:
        try:
            wire = Wire(h11.CLIENT, reader, writer, self._patience)
            target = self._upstream.target.encode()
            headers: list[Header] = [(b"host", target), *self.proxy_headers]
            await wire.send(h11.Request(method=b"CONNECT", target=target, headers=headers))
            await wire.send(h11.EndOfMessage())
            event = await wire.next(self._patience.head)
            if not isinstance(event, h11.Response) or wire.state.our_state is not h11.SWITCHED_PROTOCOL:
                status = event.status_code if isinstance(event, h11.Response) else "nothing"
                raise FarGone(f"the proxy of the host answered {status}")
            await writer.start_tls(context, server_hostname=self._upstream.host)
        except BaseException:
            writer.close()
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


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        whole = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if whole and url.isascii() and url.isprintable() and " " not in url else None


def _parse_proxy(proxy: str) -> SplitResult:
    parts = _split(proxy if "://" in proxy else f"http://{proxy}")
    if parts is None or parts.scheme != "http":
        raise _refused("the proxy of this host must be http://host[:port]")
    return parts


def _refused(message: str) -> ConfigurationError:
    return ConfigurationError((Problem("", "sandbox.credentials", message),))
