"""Authentication of requests: a token, or the tokens of a GitHub App, renewed before and when they expire."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Generator
from datetime import datetime

import httpx

from genba.connections.github.access.credentials import AppCredentials, Credentials
from genba.connections.github.errors import refusal
from genba.domain.errors import AccessRefusedError, RemoteUnavailable

_EARLY_SECONDS = 300.0
_PROOF_SECONDS = 540
_LIFE_SECONDS = 3000.0
_MAX_ANSWER = 1024 * 1024
_UNAUTHORIZED, _NOT_FOUND = 401, 404


class TokenAuth(httpx.Auth):
    def __init__(self, token: str) -> None:
        self.token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"token {self.token}"
        yield request


class AppAuth(httpx.Auth):
    """An App as one of its installations. One token serves all requests until it is about to expire."""

    def __init__(self, app: AppCredentials) -> None:
        self.app = app
        self.token = ""
        self._address = f"{app.destination.url.rstrip('/')}/app/installations/{app.installation}/access_tokens"
        self._good_until = 0.0
        self._renewing = asyncio.Lock()

    @property
    def fresh(self) -> bool:
        return time.time() < self._good_until

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        async with self._renewing:
            if not self.fresh:
                answer = yield self._token_request(request)
                self._accept(answer, await _read(answer))
            used = self.token
        request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code != _UNAUTHORIZED:
            return
        # A 401 means that nothing was carried out: the request may be sent once more with a new token.
        async with self._renewing:
            if self.token == used:
                answer = yield self._token_request(request)
                self._accept(answer, await _read(answer))
            request.headers["Authorization"] = f"Bearer {self.token}"
        yield request

    def _token_request(self, request: httpx.Request) -> httpx.Request:
        headers = {name: request.headers[name] for name in ("User-Agent", "Accept") if name in request.headers}
        asking = httpx.Request("POST", self._address, json={}, headers=headers)
        asking.headers["Authorization"] = f"Bearer {_proof(self.app)}"
        asking.extensions = dict(request.extensions)
        return asking

    def _accept(self, response: httpx.Response, body: bytes) -> None:
        if response.status_code == _NOT_FOUND:
            raise AccessRefusedError(
                f"the GitHub App {self.app.id} has no installation {self.app.installation}",
                unchanged="nothing was read from GitHub, and nothing was changed there.",
                hint="check installation under tracker.github.app in .genba/config.yaml",
            )
        if response.is_error:
            raise refusal("a token of the GitHub App", response.status_code, response.headers, body)
        try:
            result = json.loads(body)
            token, expires = str(result["token"]), str(result.get("expires_at") or "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RemoteUnavailable("GitHub gave no token to the App: its answer cannot be read") from error
        self.token = token
        self._good_until = _end_of(expires) - _EARLY_SECONDS


def auth_of(credentials: Credentials) -> TokenAuth | AppAuth:
    return AppAuth(credentials) if isinstance(credentials, AppCredentials) else TokenAuth(credentials.token)


async def _read(response: httpx.Response) -> bytes:
    """All of a small answer, and no more than its beginning of a large one."""
    read = bytearray()
    if response.headers.get("content-encoding", "").strip().lower() in ("", "identity", "gzip"):
        async for chunk in response.aiter_bytes():
            read += chunk
            if len(read) > _MAX_ANSWER:
                break
    await response.aclose()
    response._content = bytes(read)  # httpx reads the answer once more between the requests of an auth flow
    return response._content


def _end_of(expires: str) -> float:
    try:
        return datetime.fromisoformat(expires).timestamp()
    except (ValueError, OverflowError):
        return time.time() + _LIFE_SECONDS


def _proof(app: AppCredentials) -> str:
    """A JWT signed with the key of the App, valid for a few minutes."""
    import jwt  # noqa: PLC0415  (only an App needs it)

    now = int(time.time())
    try:
        return jwt.encode({"iss": app.id, "iat": now - 60, "exp": now + _PROOF_SECONDS}, app.key, algorithm="RS256")
    except (jwt.PyJWTError, ValueError, TypeError):
        # The message of the library may show parts of the key.
        raise AccessRefusedError(
            f"the key of the GitHub App {app.id} from {app.source} cannot sign: it is no private RSA key",
            hint="download a new private key in the settings of the App",
        ) from None
