"""The server as an ASGI application: faults, who asks, limits, then REST, GraphQL or git."""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.standins.github import (
    access,
    git_http,
    rest_code,
    rest_issues,
    rest_people,
    rest_projects,
    rest_pulls,
)
from tests.standins.github.asking import ROUTES, Answer, Ask
from tests.standins.github.faults import Fault, Faults, operation_name
from tests.standins.github.hub import Hub, Refused
from tests.standins.github.recorded import Exchange, Recorded
from tests.standins.github.state import Token

REST = (rest_code, rest_issues, rest_people, rest_projects, rest_pulls)
"""The modules whose routes are in the table."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
GraphQL = Callable[[Token, bytes], tuple[int, dict[str, Any], dict[str, str]]]
"""Answers the body of a GraphQL request: the status, the JSON and the headers. It counts its points by itself."""

_DOCS = "https://docs.github.com/rest"
_JSON = "application/json; charset=utf-8"
_MUTATION = re.compile(r"^\s*mutation\b", re.MULTILINE)


class Request:
    """A request as it came in."""

    def __init__(self, scope: Scope, content: bytes) -> None:
        self.method: str = scope["method"]
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        self.raw_path = raw.decode("latin-1").partition("?")[0]
        self.path = unquote(self.raw_path)
        self.query_string: str = scope["query_string"].decode("latin-1")
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.content = content
        self.enterprise = self.path.startswith("/api/")
        if self.path.startswith("/api/v3/"):
            self.path = self.path.removeprefix("/api/v3")
        elif self.path == "/api/graphql":
            self.path = "/graphql"
        self.document = ""
        self.operation = ""
        if self.path == "/graphql":
            self._read_document()

    def _read_document(self) -> None:
        try:
            body = json.loads(self.content)
            self.document = str(body.get("query", ""))
            self.operation = str(body.get("operationName") or operation_name(self.document))
        except (ValueError, AttributeError):
            pass

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.query_string, keep_blank_values=True))

    @property
    def is_git(self) -> bool:
        return ".git/" in self.path and self.path.endswith(("/info/refs", "/git-upload-pack", "/git-receive-pack"))

    @property
    def mutation(self) -> bool:
        if self.document:
            return bool(_MUTATION.search(self.document))
        if self.is_git:
            return self.path.endswith("/git-receive-pack")
        return self.method != "GET"

    @property
    def target(self) -> str:
        return self.raw_path + (f"?{self.query_string}" if self.query_string else "")


class Reply:
    """What goes out."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.status = status
        self.body = body
        self.headers = headers


def _json(status: int, data: Any, headers: dict[str, str] | None = None) -> Reply:
    body = b"" if status in (204, 304) else json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return Reply(status, body, {"content-type": _JSON, **(headers or {})})


class Door:
    """Everything that comes in comes through here."""

    def __init__(self, hub: Hub, faults: Faults, watch: Callable[[Exchange], None] | None) -> None:
        self.hub = hub
        self.faults = faults
        self.watch = watch
        self.graphql: GraphQL | None = None
        self.requests: list[Recorded] = []
        self.stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, await _content(receive))
        document = request.document
        fault = self.faults.take(request.method, request.path, document, request.operation)
        reply: Reply | None = None
        if fault is None or fault.effect or not (fault.status or fault.cut or fault.hang):
            reply = await self._answer(request)
        if fault is not None:
            reply = await self._strike(fault, reply, receive)
        self._record(request, reply, struck=fault is not None)
        if reply is None:
            await _cut(receive, send)
            return
        await _say(reply, send, inside=fault is not None and fault.cut_inside)
        if fault is not None and fault.cut_inside:
            await _cut(receive, send)

    async def _strike(self, fault: Fault, reply: Reply | None, receive: Receive) -> Reply | None:
        """What a fault makes of an answer; None is a connection that is cut."""
        if fault.then is not None:
            with self.hub.lock:
                fault.then()
        if fault.hang:
            await self._silence(fault, receive)
        if fault.slow:
            await asyncio.sleep(fault.slow)
        if fault.cut or (fault.hang and reply is None and not fault.status):
            return None
        if fault.body is not None:
            return Reply(fault.status or 200, fault.body, {"content-type": _JSON, **fault.headers})
        if fault.spoil is not None and reply is not None:
            return Reply(fault.status or reply.status, fault.spoil(reply.body), reply.headers | fault.headers)
        if fault.status:
            output = fault.message or {502: "Server Error", 503: "Service unavailable"}.get(fault.status, "Error")
            data = {"message": output, "documentation_url": _DOCS, "status": str(fault.status)}
            return _json(fault.status, data, fault.headers)
        return reply

    async def _silence(self, fault: Fault, receive: Receive) -> None:
        gone = asyncio.ensure_future(_gone(receive))
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            while not fault.released.is_set() and not gone.done() and not stopping.done():
                await asyncio.wait({gone, stopping}, timeout=0.02, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            stopping.cancel()

    async def _answer(self, request: Request) -> Reply:
        if request.is_git:
            return Reply(*await git_http.answer(self.hub, request.method, request.path, request))
        with self.hub.lock:
            kept = self.hub.url, self.hub.web
            self._name_itself(request)
            try:
                return self._graphql(request) if request.path == "/graphql" else self._rest(request)
            finally:
                self.hub.url, self.hub.web = kept

    def _name_itself(self, request: Request) -> None:
        """Addresses in an answer begin as the client knows the server: gh by its socket believes it is GitHub."""
        host = request.headers.get("host", "")
        if host == "api.github.com":
            self.hub.url, self.hub.web = "https://api.github.com", "https://github.com"
        elif request.enterprise:
            self.hub.url = f"{self.hub.web}/api/v3"

    def _rest(self, request: Request) -> Reply:
        headers: dict[str, str] = {"x-github-request-id": f"{len(self.requests):X}", "server": "github.com"}
        viewer: Token | None = None
        try:
            authorization = request.headers.get("authorization", "")
            if authorization.count(".") != 2:  # a JWT is judged where it is asked for
                viewer = access.viewer(self.hub, authorization)
            if viewer is not None and viewer.installation is None:
                headers["x-oauth-scopes"] = ", ".join(sorted(viewer.scopes))
            if request.path != "/rate_limit":
                headers |= access.spend(self.hub, viewer)
            if request.mutation and viewer is not None:
                access.pace(self.hub)
            answer = self._routed(request, viewer)
        except Refused as refused:
            data: dict[str, Any] = {"message": refused.message, "documentation_url": _DOCS}
            if refused.errors:
                data["errors"] = list(refused.errors)
            if refused.status == 301:
                data["url"] = refused.headers["location"]
            data["status"] = str(refused.status)
            return _json(refused.status, data, headers | refused.headers)
        reply = _json(answer.status, answer.data, headers | answer.headers)
        if request.method == "GET" and answer.status == 200:
            return _tagged(request, reply, viewer)
        return reply

    def _routed(self, request: Request, viewer: Token | None) -> Answer:
        path = request.path
        if path.startswith("/repositories/"):
            number, slash, rest = path.removeprefix("/repositories/").partition("/")
            for repository in self.hub.repositories.values():
                if str(repository.id) == number:
                    path = f"/repos/{repository.full_name}{slash}{rest}"
        ask = Ask(self.hub, request.method, path, request.query, request.headers, request.content, viewer)
        return ROUTES.answer(ask)

    def _graphql(self, request: Request) -> Reply:
        headers = {"x-github-request-id": f"{len(self.requests):X}", "server": "github.com"}
        try:
            viewer = access.viewer(self.hub, request.headers.get("authorization", ""))
            if viewer is None:
                raise Refused(401, "This endpoint requires you to be authenticated.")
            if self.graphql is None:
                raise Refused(404, "Not Found")
            if request.mutation:
                access.pace(self.hub)
        except Refused as refused:
            data = {"message": refused.message, "documentation_url": _DOCS, "status": str(refused.status)}
            return _json(refused.status, data, headers | refused.headers)
        status, data, more = self.graphql(viewer, request.content)
        return _json(status, data, headers | more)

    def _record(self, request: Request, reply: Reply | None, *, struck: bool) -> None:
        try:
            body = json.loads(request.content) if request.content and not request.is_git else None
        except ValueError:
            body = None
        try:
            viewer = access.viewer(self.hub, request.headers.get("authorization", ""))
        except Refused:
            viewer = None
        self.requests.append(
            Recorded(
                method=request.method,
                path=request.path,
                query=request.query,
                operation=request.operation,
                mutation=request.mutation,
                status=reply.status if reply else 0,
                login=viewer.user.login if viewer else "",
                at=time.monotonic(),
                moment=self.hub.seconds(),
                body=body,
                struck=struck,
            )
        )
        if self.watch is None or request.is_git:
            return
        prefix = "/api/v3" if request.enterprise and request.raw_path.startswith("/api/v3") else ""
        self.watch(
            Exchange(
                method=request.method,
                target=request.target.removeprefix(prefix),
                sent=request.content,
                status=reply.status if reply else 0,
                answered=reply.body if reply else b"",
                content_type=reply.headers.get("content-type", "") if reply else "",
                agent=request.headers.get("user-agent", ""),
                struck=struck,
            )
        )


def _tagged(request: Request, reply: Reply, viewer: Token | None) -> Reply:
    """An answer with its ETag, which differs by token; or 304, which costs nothing."""
    seal = hashlib.sha256(reply.body + (viewer.value.encode() if viewer else b"")).hexdigest()
    tag = f'W/"{seal}"'
    reply.headers |= {"etag": tag, "cache-control": "private, max-age=60, s-maxage=60", "vary": "Accept, Authorization"}
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag.removeprefix("W/") in known:
        kept = {name: value for name, value in reply.headers.items() if name not in ("content-type", "link")}
        return Reply(304, b"", kept | access.give_back(viewer))
    return reply


async def _content(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _say(reply: Reply, send: Send, *, inside: bool) -> None:
    headers = reply.headers | ({} if reply.status in (204, 304) else {"content-length": str(len(reply.body))})
    pairs = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": pairs})
    if inside:
        await send({"type": "http.response.body", "body": reply.body[: len(reply.body) // 2], "more_body": True})
        return
    await send({"type": "http.response.body", "body": reply.body})


async def _cut(receive: Receive, send: Send) -> None:
    """Close the connection as it is: behind `send` stands uvicorn's own connection."""
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
    await _gone(receive)
