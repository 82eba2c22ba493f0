"""Who comes in, and what they may do.

Default deny: without a token nothing is shown, without the right to act nothing is changed, and a page of another site
can neither read an answer nor make a browser act. Every answer carries the same headers.
"""

import hashlib
import hmac
import time
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genba.application.dashboard.keys import WebKeys

LARGEST_BODY = 2 * 1024 * 1024
COOKIE_SECONDS = 30 * 86400
CSRF_HEADER = "genba-csrf"
CSRF_FIELD = "csrf"
_SAFE = ("GET", "HEAD", "OPTIONS")
_OPEN = ("/enter", "/healthz", "/mcp")
"""Paths that answer without a token; the last one authenticates by itself."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


_UNKNOWN = 401
_KINDS = {_UNKNOWN: "unknown_visitor", 403: "not_allowed", 413: "too_large"}


def is_api(path: str) -> bool:
    """Whether a program asks, which reads JSON and no page."""
    return path.startswith("/api/") and path != "/api/docs"


class Role(StrEnum):
    VIEWER = "viewer"
    """May look at everything."""
    OPERATOR = "operator"
    """May do what the commands can do."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """A signed-in user."""

    role: Role
    csrf: str = ""
    """What a form of ours carries; empty for programs, whose token no browser sends by itself."""

    @property
    def may_act(self) -> bool:
        return self.role is Role.OPERATOR


class Passes(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens, and the cookies that stand for them. Changing a token makes its cookies worthless."""

    keys: WebKeys
    name: str
    """The name of the cookie: browsers mix the cookies of all ports of a machine."""
    read_only: bool = False
    secure: bool = False
    public: str = ""
    """The name and port under which browsers reach it through a proxy, which may ask for it by another name."""

    def role_of(self, token: str) -> Role | None:
        """The whole token counts, and how long the comparing takes tells nothing of it."""
        shown = token.encode("utf-8", "replace")
        operator = hmac.compare_digest(shown, self.keys.operator.encode())
        viewer = hmac.compare_digest(shown, self.keys.viewer.encode())
        if operator:
            return Role.VIEWER if self.read_only else Role.OPERATOR
        return Role.VIEWER if viewer else None

    def cookie(self, token: str, now: float) -> str:
        """What a browser keeps for a token that is right."""
        kind = "o" if hmac.compare_digest(token.encode("utf-8", "replace"), self.keys.operator.encode()) else "v"
        output = f"{kind}.{int(now + COOKIE_SECONDS)}"
        return f"{output}.{self._sign(output, token)}"

    def visitor(self, cookie: str, now: float) -> Principal | None:
        kind, _, rest = cookie.partition(".")
        until, _, signature = rest.partition(".")
        token = {"o": self.keys.operator, "v": self.keys.viewer}.get(kind, "")
        if not token or not until.isascii() or not until.isdigit() or len(until) > len("99999999999"):
            return None
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign(f"{kind}.{until}", token).encode()):
            return None
        role = self.role_of(token)
        if role is None or int(until) < now:
            return None
        return Principal(role=role, csrf=self._sign(f"csrf.{cookie}", token))

    def _sign(self, text: str, token: str) -> str:
        key = f"{self.keys.signing}.{token}".encode()
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


class AuthMiddleware:
    """An ASGI application in front of the site."""

    def __init__(self, app: ASGIApp, passes: Passes, hosts: frozenset[str]) -> None:
        self._app = app
        self._passes = passes
        self._hosts = hosts
        """The names under which the site answers; empty: under any, for who has accepted that."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                result = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    result[name] = value
                result.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, with_headers)
            return
        try:
            await self._app(scope, _bounded(receive), with_headers)
        except TooLargeError:
            await _refusal(str(scope["path"]), 413, "the request is too large", "send less")(
                scope, receive, with_headers
            )

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Why a request goes no further; None: it may, and the scope says who it is from."""
        path, method = str(scope["path"]), str(scope["method"])
        if self._hosts and _host(headers.get("host", "")) not in self._hosts:
            return PlainTextResponse("this address is not served under that name\n", 421)
        size = headers.get("content-length", "0")
        if method not in _SAFE and (not size.isascii() or not size.isdigit() or int(size[:12]) > LARGEST_BODY):
            return _refusal(path, 413, "the request is too large", "send less")
        visitor = self._visitor(headers)
        scope["visitor"] = visitor
        if (
            visitor is not None
            and visitor.csrf
            and method not in _SAFE
            and not _same_origin(headers, self._passes.public)
        ):
            return _refusal(path, 403, "a page of another site may not do this", "open the dashboard itself")
        if path in _OPEN or path.startswith("/static/"):
            return None
        if visitor is None:
            return _unknown(path, headers)
        if method not in _SAFE and not visitor.may_act:
            return _refusal(path, 403, "you may read only", "sign in with the operator's link")
        return None

    def _visitor(self, headers: Headers) -> Principal | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            role = self._passes.role_of(token.strip())
            return Principal(role=role) if role is not None else None
        kept = _cookies(headers).get(self._passes.name, "")
        return self._passes.visitor(kept, time.time()) if kept else None


class TooLargeError(Exception):
    """A request without a length has become too long. It is read by pages only before they answer."""


def _bounded(receive: Receive) -> Receive:
    """The same request, as long as it is not too large."""
    read = 0

    async def counted() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > LARGEST_BODY:
            raise TooLargeError
        return message

    return counted


def visitor_of(request: HTTPConnection) -> Principal:
    """Who asks; only behind the gate."""
    visitor = request.scope.get("visitor")
    return visitor if isinstance(visitor, Principal) else Principal(role=Role.VIEWER)


def is_known(request: HTTPConnection) -> bool:
    """True for a signed-in user. Others learn nothing, not even the name of the project."""
    return isinstance(request.scope.get("visitor"), Principal)


def csrf_fits(visitor: Principal, shown: str) -> bool:
    """Whether a request that changes something comes from a page of ours. Programs carry their token instead."""
    return not visitor.csrf or hmac.compare_digest(shown.encode("utf-8", "replace"), visitor.csrf.encode())


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _same_origin(headers: Headers, public: str) -> bool:
    """Browsers say where a request comes from; a form of another site says so too."""
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    if origin == "null":  # a form of a page without a referrer; Sec-Fetch-Site still names its origin
        return headers.get("sec-fetch-site") == "same-origin"
    own = {headers.get("host", "").lower(), public.lower()} - {""}
    if origin is not None and origin.lower().partition("://")[2] not in own:
        return False
    return site in ("same-origin", "none")


def _cookies(headers: Headers) -> Mapping[str, str]:
    """A browser sends the cookies of all ports of a machine: a strange one among them spoils no other."""
    return cookie_parser(headers.get("cookie", ""))


def _unknown(path: str, headers: Headers) -> Response:
    if is_api(path):
        return _refusal(path, _UNKNOWN, "you are not signed in", "send the header Authorization: Bearer TOKEN")
    if headers.get("hx-request"):
        return Response(status_code=401, headers={"hx-redirect": "/enter"})
    return RedirectResponse("/enter", 303)


def _refusal(path: str, status: int, error: str, hint: str) -> Response:
    if is_api(path):
        values = {"kind": _KINDS[status], "message": error, "unchanged": "nothing was changed.", "hint": hint}
        headers = {"www-authenticate": "Bearer"} if status == _UNKNOWN else None
        return JSONResponse({"error": {**values, "problems": [], "exit_code": 1}}, status, headers=headers)
    return PlainTextResponse(f"{error}\nhint: {hint}\n", status)
