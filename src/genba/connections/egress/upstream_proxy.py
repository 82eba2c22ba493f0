"""The proxy of the host itself, for hosts that reach the outside through one only."""

import asyncio
import base64
import re
import ssl
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from genba.connections.egress.h11_connection import FAR_TOO_SLOW, FarGone, Header, Patience
from genba.connections.egress.relay import Ends
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem
from genba.domain.sessions.sandbox import PARENT_VARIABLE

"""`environment`, or the address of a proxy: the user's word that sandboxes leave through it."""
_PORT = 80
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})\b")


class Parent(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP proxy that the environment of the host names."""

    host: str
    port: int
    headers: tuple[Header, ...] = ()
    """How this host makes itself known to it."""

    async def dial(self, patience: Patience) -> Ends:
        """A connection to the proxy, for requests with a whole address. Raises `FarGone`."""
        return await dial(self.host, self.port, patience, "the proxy of the host: ")

    async def tunnel(self, target: str, patience: Patience) -> Ends:
        """A connection through the proxy to a target. Raises `FarGone`."""
        reader, writer = await self.dial(patience)
        try:
            lines = [f"CONNECT {target} HTTP/1.1".encode(), b"host: " + target.encode()]
            lines += [name + b": " + value for name, value in self.headers]
            writer.write(b"\r\n".join([*lines, b"", b""]))
            async with asyncio.timeout(patience.head):
                answer = _STATUS.match(await reader.readuntil(b"\r\n\r\n"))  # and not a byte of what is behind it
            if answer is None or not answer[1].startswith(b"2"):
                raise FarGone(f"the proxy of the host answered {answer[1].decode() if answer else 'no HTTP'}")
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise FarGone("the proxy of the host broke off, or kept silent") from error
        except BaseException:
            writer.close()
            raise
        return reader, writer


async def dial(host: str, port: int, patience: Patience, who: str = "", tls: ssl.SSLContext | None = None) -> Ends:
    """A connection. Raises `FarGone` with a reason for people."""
    try:
        async with asyncio.timeout(patience.dial):
            return await asyncio.open_connection(host, port, ssl=tls)
    except (OSError, UnicodeError) as error:
        raise unreached(error, who) from error


def unreached(error: OSError | UnicodeError, who: str = "") -> FarGone:
    """What it means that no connection came about."""
    if isinstance(error, TimeoutError):
        return FarGone(f"{who}it did not answer in time", FAR_TOO_SLOW)
    if isinstance(error, ssl.SSLError):
        return FarGone(f"{who}no trusted connection: {error.reason or type(error).__name__}")
    return FarGone(f"{who}no connection: {getattr(error, 'strerror', None) or type(error).__name__}")


def parse_parent(url: str) -> Parent:
    """The proxy of the host. It may hold a password, so a refusal does not repeat it."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host = None
    if not host or parts.scheme != "http" or not url.isascii() or not url.isprintable():
        raise ConfigurationError((Problem("", "HTTPS_PROXY", "a proxy of this host must be http://host[:port]"),))
    headers: tuple[Header, ...] = ()
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = ((b"proxy-authorization", b"Basic " + base64.b64encode(pair.encode())),)
    return Parent(host=host, port=port, headers=headers)


def opted_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that names a parent proxy for sandboxes: nothing unless the user asks for one.

    A parent proxy looks names up by itself, so that what it reaches is beyond the checks of `addresses`.
    """
    chosen = environment.get(PARENT_VARIABLE, "").strip()
    names = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    if chosen == "environment":
        return {name: value for name, value in environment.items() if name.lower() in names}
    exceptions = {name: value for name, value in environment.items() if name.lower() == "no_proxy"}
    return {"http_proxy": chosen, "https_proxy": chosen, **exceptions} if chosen else {}


def unused_parent(environment: Mapping[str, str]) -> str:
    """The variable that names a proxy which sandboxes do not use; empty where there is none."""
    if environment.get(PARENT_VARIABLE, "").strip():
        return ""
    names = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
    return next((name for name in names if environment.get(name, "").strip()), "")


def parent_for(scheme: str, host: str, port: int, environment: Mapping[str, str]) -> str:
    """The proxy that an environment names for this target, or nothing.

    `HTTPS_PROXY` or `HTTP_PROXY`, else `ALL_PROXY` if that is one for HTTP, with the exceptions of `NO_PROXY`; small
    letters come first.
    """

    def value(name: str) -> str:
        return environment.get(name, "") or environment.get(name.upper(), "")

    for_all = value("all_proxy")
    found = value(f"{scheme}_proxy") or ("" if for_all.startswith("socks") else for_all)
    exceptions = value("no_proxy")
    return "" if any(_excepted(host, port, pattern.strip().lower()) for pattern in exceptions.split(",")) else found


def _excepted(host: str, port: int, pattern: str) -> bool:
    if pattern == "*":
        return True
    name = pattern.removesuffix(f":{port}").removeprefix("*").removeprefix(".").strip("[]")
    return bool(name) and (host == name or host.endswith(f".{name}"))
