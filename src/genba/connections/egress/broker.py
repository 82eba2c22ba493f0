"""The broker: the way to the model's provider, which adds the key that the instance never holds.

An instance is given a word in the place of the key. The broker takes requests that carry the word, puts the real key in
its place and sends them to the one upstream it was made for, whatever the request says about its host. Only calls of a
model are sent on: see `model_calls`. Responses flow back as they come. The key is blotted out of every header and, as
it stands, of every body that comes back; a body that the upstream compresses against our wish, or in which it encoded
the key, is beyond that.
"""

import asyncio
import hmac
from collections.abc import Iterable
from urllib.parse import unquote

import h11

from genba.connections.egress.connection_limiter import Doorway, close
from genba.connections.egress.events import AccessLog
from genba.connections.egress.exchange import SecretScrubber, pass_on
from genba.connections.egress.h11_connection import (
    BAD_GATEWAY,
    BAD_REQUEST,
    FAR_TOO_SLOW,
    FORBIDDEN,
    PATIENT,
    UNAUTHORIZED,
    UPGRADE_REQUIRED,
    FarGone,
    Gone,
    Header,
    Patience,
    Refusal,
    Wire,
    end_to_end,
    framing,
)
from genba.connections.egress.model_calls import ModelCalls
from genba.connections.egress.request_loop import converse, plain_http_only
from genba.connections.egress.upstream import Dialler, parse_upstream
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem
from genba.domain.sessions.egress import EgressListener, Verdict

PORT = "model"
_METHODS = frozenset({b"GET", b"HEAD", b"POST"})
_KEY_HEADERS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
_NOT_SENT = _KEY_HEADERS | {b"accept-encoding", b"cookie", b"cookie2", b"host"}
_NOT_RETURNED = frozenset({b"alt-svc", b"set-cookie", b"set-cookie2"})
_REUSE_SECONDS = 4.0
"""A connection to the upstream that was idle for longer is not used again: it may be closing at that very moment."""
_SHOWN = 100
_ROUNDS = 4
"""How often a path is decoded before it is judged."""


class Broker:
    """A reverse proxy for one session to one upstream."""

    def __init__(
        self,
        upstream: str,
        header: str,
        secret: str,
        token: str,
        on_event: EgressListener,
        *,
        calls: ModelCalls,
        proxy: str = "",
        patience: Patience = PATIENT,
    ) -> None:
        if not secret or not (secret.isascii() and secret.isprintable()) or secret != secret.strip():
            problem = Problem("", "sandbox.credentials", "the key of the model's provider is empty or not plain text")
            raise ConfigurationError((problem,))
        if not token:
            raise ValueError("an empty word would let everybody in")
        self._calls = calls
        self._upstream = parse_upstream(upstream)
        self._dialler = Dialler(self._upstream, proxy, patience)
        self._patience = patience
        self._header = header.lower().encode()
        self._secret = secret.encode()
        self._token = token.encode()
        self.access_log = AccessLog(PORT, on_event)
        self._doorway = Doorway(self.access_log)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near = Wire(h11.SERVER, reader, writer, self._patience)
        await self._doorway.admit(writer, lambda: self._serve(near))

    async def _serve(self, near: Wire) -> None:
        line = _Line(self._dialler)

        async def handle(request: h11.Request) -> bool:
            changed = self._changed(request)
            self.access_log.record(Verdict.ALLOWED, self._upstream.target)
            far = await line.send(changed)
            await pass_on(near, far, self._shaped, SecretScrubber(self._secret))
            line.keep_if_in_order()
            return True

        try:
            await converse(near, handle, self._refused)
        finally:
            await line.close()

    def _refused(self, refusal: Refusal) -> tuple[bytes, bytes]:
        """A refusal in the words that the tools of all providers can read."""
        import json  # noqa: PLC0415  (only a refusal pays for it)

        failed = refusal.status in {BAD_GATEWAY, FAR_TOO_SLOW}
        self.access_log.record(Verdict.FAILED if failed else Verdict.DENIED, self._upstream.target, refusal.message)
        kinds = {UNAUTHORIZED: "authentication_error", FORBIDDEN: "permission_error"}
        kind = kinds.get(refusal.status, "invalid_request_error")
        values = {"type": "api_error" if failed else kind, "message": f"Genba's broker: {refusal.message}"}
        return b"application/json", json.dumps({"type": "error", "error": values}).encode()

    def _changed(self, request: h11.Request) -> h11.Request:
        """The request as the upstream gets it: the same question, under another name."""
        self._check_token(request.headers)
        if request.http_version != b"1.1":
            raise Refusal(505, "only HTTP/1.1 is spoken here: in an older one an answer that broke off looks whole")
        if request.method not in _METHODS:
            raise Refusal(405, "only GET, HEAD and POST are passed on", ((b"allow", b"GET, HEAD, POST"),))
        plain_http_only(request, "use plain HTTP", UPGRADE_REQUIRED)
        path = self._path(request.method.decode("ascii"), request.target)
        if self._dialler.through_plain_proxy:
            path = f"http://{self._upstream.target}{path}"
        headers = end_to_end(request.headers, _NOT_SENT | {self._header})
        headers = [(name, value) for name, value in headers if self._token not in value]
        headers += [
            (b"host", self._upstream.authority.encode()),
            (b"accept-encoding", b"identity"),
            (self._header, b"Bearer " + self._secret if self._header == b"authorization" else self._secret),
            *framing(request.headers),
        ]
        if self._dialler.through_plain_proxy:
            headers += self._dialler.proxy_headers
        return h11.Request(method=request.method, target=path.encode(), headers=headers)

    def _check_token(self, headers: Iterable[Header]) -> None:
        shown = [
            bytes(value).split(b" ", 1)[-1].strip() if name == b"authorization" else bytes(value)
            for name, value in headers
            if name in _KEY_HEADERS | {self._header}
        ]
        if not any(hmac.compare_digest(value, self._token) for value in shown):
            raise Refusal(UNAUTHORIZED, "the word of this session was not shown in the place of the key")

    def _path(self, method: str, target: bytes) -> str:
        """Where the request goes at the upstream: always below its own path, and always to a model."""
        path = target.decode("ascii")
        if not path.startswith("/"):
            raise Refusal(BAD_REQUEST, "only a path is passed on, and no other host")
        plain = path.partition("?")[0]
        for _ in range(_ROUNDS):
            plain = unquote(plain, errors="replace")
        segments = plain.replace("\\", "/").split("/")
        if ("%" in plain and unquote(plain) != plain) or any(s.partition(";")[0] in {".", ".."} for s in segments):
            raise Refusal(BAD_REQUEST, "a path that leads upwards is not passed on")
        asked = path.partition("?")[0]
        if not self._calls.allow(method, asked):
            raise Refusal(FORBIDDEN, f"only calls of a model are passed on, and {method} {asked[:_SHOWN]} is none")
        return self._upstream.prefix + path

    def _shaped(self, response: h11.Response) -> h11.Response:
        mask = SecretScrubber(self._secret)
        headers = [(name, mask.whole(value)) for name, value in end_to_end(response.headers, _NOT_RETURNED)]
        return h11.Response(
            status_code=response.status_code, headers=headers, reason=mask.whole(bytes(response.reason))
        )


class _Line:
    """The connection to the upstream that belongs to one connection of the instance, and is used by no other."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler
        self._far: Wire | None = None
        self._ready_since: float | None = None

    async def send(self, request: h11.Request) -> Wire:
        now = asyncio.get_running_loop().time()
        if self._far is not None and not self._is_fresh(self._far, now):
            await self.close()
        if self._far is None:
            self._far = await self._dialler.dial()
        self._ready_since = None
        try:
            await self._far.send(request)
        except Gone as gone:
            raise FarGone(gone.why) from gone
        return self._far

    def keep_if_in_order(self) -> None:
        if self._far is not None and self._far.again():
            self._ready_since = asyncio.get_running_loop().time()

    async def close(self) -> None:
        far, self._far = self._far, None
        if far is not None and self._ready_since is None:
            far.writer.transport.abort()
        if far is not None:
            await close(far.writer)

    def _is_fresh(self, far: Wire, now: float) -> bool:
        idle = now - self._ready_since if self._ready_since is not None else None
        return idle is not None and idle < _REUSE_SECONDS and not far.reader.at_eof() and not far.state.trailing_data[0]
