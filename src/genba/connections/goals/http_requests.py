"""One question to a service on this machine. Redirects are not followed, proxies are not used, answers are bounded."""

import errno
import http.client
import ipaddress
import json
import re
import socket
import urllib.parse
from typing import Any, TypeVar

import msgspec

from genba.connections.goals.commands import bounded_line
from genba.connections.goals.contents import Unusable
from genba.domain.goals.goal import EndpointResponds, ResponseContains
from genba.domain.sessions.sandbox import Dialer

_PORT = re.compile(r"(?<!\$)\{port\}")
_METHOD = re.compile(r"[A-Z]+")
_BODY_BYTES = 1024 * 1024
_HTTP_PORT = 80
_PROBE_SECONDS = 1.0
_SAFE = "%/:=&?~+!$,;'@()*[]-._"

T = TypeVar("T")


class NoAnswer(Exception):
    """No answer, or none in HTTP."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    port: int
    target: str
    """The path and the query."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    text: str
    whole: bool = True
    """False where the answer was longer than what is read of one."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    address: Address
    headers: dict[str, str] = {}
    body: bytes | None = None

    @property
    def shown(self) -> str:
        return bounded_line(f"{self.method} {self.address.target}")

    @classmethod
    def of(cls, goal: EndpointResponds | ResponseContains, port: int) -> "Question":
        """What a goal asks. A value is sent as JSON, a text as it is; headers of the goal win."""
        method = goal.method.upper()
        if not _METHOD.fullmatch(method):
            raise Unusable(f"{bounded_line(goal.method)!r} is no HTTP method")
        headers = {name: fill(value, port) for name, value in goal.headers.items()}
        body, kind = _body_of(fill(goal.body, port))
        if kind and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = kind
        return cls(method=method, address=address_of(fill(goal.url, port), port), headers=headers, body=body)


def _body_of(body: Any) -> tuple[bytes | None, str]:
    if body is None:
        return None, ""
    if isinstance(body, str):
        return body.encode("utf-8", "replace"), "text/plain; charset=utf-8"
    try:
        return json.dumps(body).encode(), "application/json"
    except (TypeError, ValueError, RecursionError) as error:
        raise Unusable(f"the body cannot be sent as JSON: {error}") from error


def has_port(text: str) -> bool:
    """Whether `{port}` stands in a text."""
    return _PORT.search(text) is not None


def fill(value: T, port: int) -> T:
    """`{port}` replaced in every text of a value."""
    filled: Any = value
    match value:
        case str():
            filled = _PORT.sub(str(port), value)
        case tuple() | list():
            filled = type(value)(fill(each, port) for each in value)
        case dict():
            filled = {fill(name, port): fill(each, port) for name, each in value.items()}
    kept: T = filled
    return kept


def address_of(url: str, port: int | None = None) -> Address:
    """Where to ask: a path of the service, or an address on this machine and no other."""
    try:
        parts = urllib.parse.urlsplit(url if not url.startswith("/") else f"http://127.0.0.1:{port}{url}")
        host, named = parts.hostname or "", parts.port
    except ValueError as error:
        raise Unusable(f"{bounded_line(url)} is no address: {error}") from error
    if parts.scheme != "http":
        raise Unusable(f"{bounded_line(url)} is neither a path nor an http:// address")
    if not _is_loopback(host):
        raise Unusable(f"{bounded_line(host)} is not this machine: only the service that was started is asked")
    target = urllib.parse.quote(parts.path or "/", safe=_SAFE)
    query = f"?{urllib.parse.quote(parts.query, safe=_SAFE)}" if parts.query else ""
    return Address(host=host, port=named if named is not None else _HTTP_PORT, target=target + query)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def ask(question: Question, seconds: float, dialer: Dialer | None = None) -> Answer:
    """Put the question and read the answer, as much of it as is kept. A dialer leads into the service's own network."""
    address = question.address
    connection = http.client.HTTPConnection(address.host, address.port, timeout=seconds)
    try:
        if dialer is not None:
            connection.sock = _dialled(address, seconds, dialer)
        connection.request(question.method, address.target, body=question.body, headers=question.headers)
        with connection.getresponse() as response:
            found = response.read(_BODY_BYTES + 1)
            encoding = response.headers.get_content_charset("utf-8")
            text = _decoded(found[:_BODY_BYTES], encoding)
            return Answer(status=response.status, text=text, whole=len(found) <= _BODY_BYTES)
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(str(error) or type(error).__name__) from error
    except (ValueError, UnicodeError) as error:
        raise Unusable(f"the question cannot be put: {error}") from error
    finally:
        connection.close()


def _decoded(found: bytes, encoding: str) -> str:
    try:
        return found.decode(encoding, errors="replace")
    except LookupError:
        return found.decode("utf-8", errors="replace")


def _dialled(address: Address, seconds: float, dialer: Dialer) -> socket.socket:
    """A connection within the network of the service."""
    refused: OSError = ConnectionRefusedError("nothing listens there")
    for host in ("127.0.0.1", "::1") if address.host == "localhost" else (address.host,):
        made: socket.socket = dialer.take()
        made.settimeout(seconds)
        try:
            _connect(made, host, address.port)
        except ConnectionRefusedError as error:
            dialer.unused(made)
            refused = error
        except OSError as error:
            made.close()
            refused = error
        else:
            return made
    raise refused


def _connect(made: socket.socket, host: str, port: int) -> None:
    mapped = f"::ffff:{host}" if made.family == socket.AF_INET6 and ":" not in host else host
    try:
        made.connect((mapped, port))
    except ConnectionAbortedError:  # what is left of the attempt before, where the socket was refused once
        made.connect((mapped, port))


def is_open(address: Address, dialer: Dialer | None = None) -> bool:
    """Whether something listens at an address."""
    where = (address.host, address.port)
    try:
        if dialer is not None:
            made = _dialled(address, _PROBE_SECONDS, dialer)
        else:
            made = socket.create_connection(where, timeout=_PROBE_SECONDS)
        with made:
            return True
    except OSError:
        return False


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def is_taken(port: int) -> bool:
    """Whether a process listens on a port of this machine already."""
    return any(_is_used(family, host, port) for family, host in _LOOPBACK)


_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


def _is_used(family: socket.AddressFamily, host: str, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    except OverflowError:
        return False
    return False
