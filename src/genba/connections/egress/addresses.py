"""Who may be reached: the allow-list, and the addresses that no name leads to.

A name is resolved once and the connection goes to the address that was judged, so a name cannot change its mind in
between. One bad address among those of a name is enough to deny it.

| address | by `*.name` | by `name` in the list | as an address in the list | `full`, not in the list |
|---|---|---|---|---|
| loopback, link-local, of this host, of a cloud's metadata, multicast | no | no | yes | no |
| private and other that are not of the internet | no | yes | yes | yes |
| every other | yes | yes | yes | yes |

Who writes an address (or `localhost`) into the list means that very address, even on this host. Who writes a whole name
trusts its owner, who may well keep a package index inside a company. Below a wildcard anybody may make names.
With `none` nothing is reached, whatever the list says.
"""

import asyncio
import ipaddress
import re
import socket

import msgspec

from genba.domain.sessions.sandbox import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

PORTS = (443, 80)
"""The ports of an entry that names none."""
_SETTING = "sandbox.allow"
_RESOLVE_SECONDS = 15.0
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")
_LAST_PORT = 65535
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
)
"""Where clouds give the credentials of a machine to every process that asks from it."""
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))


class Denied(Exception):
    """Why a target is not reached, in words for the user."""


class Unresolved(Exception):
    """There is no address for the name."""


class Entry(msgspec.Struct, frozen=True):
    """One word of the allow-list: `example.com`, `*.example.com`, `example.com:8443`, `10.1.2.3`, `[fd00::1]:8080`."""

    host: str
    """Without the `*.` of a wildcard; an address in its shortest form."""
    port: int | None = None
    wildcard: bool = False

    @property
    def is_literal(self) -> bool:
        return not self.wildcard and (self.host == "localhost" or _as_address(self.host) is not None)

    def covers(self, host: str, port: int) -> bool:
        if port != self.port if self.port is not None else port not in PORTS:
            return False
        return host.endswith(f".{self.host}") if self.wildcard else host == self.host


def parse_entry(text: str) -> Entry:
    """An entry of the allow-list. Raises ValueError with what is wrong with it."""
    part = text.strip().lower()
    wildcard = part.startswith("*.")
    host, port = split_target(part.removeprefix("*."), None)
    if wildcard and _as_address(host) is not None:
        raise ValueError(f'"{text}" is a wildcard of an address')
    return Entry(host, port, wildcard)


def split_target(text: str, default: int | None) -> tuple[str, int | None]:
    """`host`, `host:port`, `[address]:port` or a bare address, as a host in its one true form and a port."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f'"{text}" is no host and port')
        port_text = rest[1:] if rest else None
    elif text.count(":") > 1:
        host, port_text = text, None
    else:
        host, colon, after = text.partition(":")
        port_text = after if colon else None
    port = default if port_text is None else _port(port_text, text)
    return _host(host, text), port


def _port(part: str, text: str) -> int:
    if not (part.isascii() and part.isdigit()) or not 0 < int(part[:6]) <= _LAST_PORT:
        raise ValueError(f'"{text}" has no valid port')
    return int(part)


def _host(part: str, text: str) -> str:
    address = _as_address(part)
    if address is not None:
        return str(address)
    try:
        name = part.lower().removesuffix(".").encode("idna").decode() if part else ""
    except UnicodeError:
        name = ""
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(f'"{text}" names no host')
    return name


def _as_address(part: str) -> Address | None:
    try:
        address = ipaddress.ip_address(part)
    except ValueError:
        return None
    return None if getattr(address, "scope_id", None) else address


class AllowList:
    """Decides about a host and a port, and finds the addresses that may be connected to."""

    def __init__(self, network: Network, allow: tuple[str, ...]) -> None:
        self._network = network
        self._entries = tuple(parse_entry(part) for part in allow)

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """The addresses of a target that may be reached. Raises `Denied` or `Unresolved`."""
        if self._network is Network.NONE:
            raise Denied("the network of this session is off (sandbox.network: none)")
        entries = [entry for entry in self._entries if entry.covers(host, port)]
        if not entries and self._network is Network.ALLOWLIST:
            raise Denied(f"it is not in {_SETTING}")
        found = await _resolve(host, port)
        if any(entry.is_literal for entry in entries):
            return found
        named = any(not entry.wildcard for entry in entries) or self._network is Network.FULL
        for address in found:
            if (why := _forbidden(ipaddress.ip_address(address), private=named)) is not None:
                raise Denied(f"it is {why}; only the address itself in {_SETTING} opens that")
        return found


async def _resolve(host: str, port: int) -> tuple[str, ...]:
    if _as_address(host) is not None:
        return (host,)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unresolved(f"no address for {host}") from error
    addresses = dict.fromkeys(str(info[4][0]) for info in found)
    if not addresses:
        raise Unresolved(f"no address for {host}")
    return tuple(addresses)


def of_this_host(address: str) -> bool:
    """Whether an address is one that no name leads to."""
    return _forbidden(ipaddress.ip_address(address), private=True) is not None


def _forbidden(address: Address, *, private: bool) -> str | None:
    """What kind of address it is, when no name leads to it."""
    for each in _meant(address):
        if each.is_loopback or each in _THIS_NETWORK or each.is_unspecified:
            return "the loopback of this host"
        if each in _METADATA:
            return "the metadata service of a cloud"
        if each.is_link_local or each.is_multicast or each.is_reserved:
            return "an address of the local link"
        if each in _own_addresses():
            return "an address of this host"
        if not each.is_global and not private:
            return "a private address"
    return None


def _meant(address: Address) -> list[Address]:
    """The address, and the one inside it: version 6 has several ways to write an address of version 4."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if any(address in network for network in _NAT64):
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    inside = (address.sixtofour, *(address.teredo or ()))
    return [address, *(each for each in inside if each is not None)]


def _own_addresses() -> set[Address]:
    import psutil  # noqa: PLC0415  (only who connects by a name pays for it)

    words = (each.address.partition("%")[0] for all_of_one in psutil.net_if_addrs().values() for each in all_of_one)
    return {address for address in map(_as_address, words) if address is not None}
