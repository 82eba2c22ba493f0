"""How a request proves who sends it: by a token, or by the tokens of an App, renewed before and when they expire."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import httpx
from githubkit import TokenAuthStrategy
from githubkit.auth import BaseAuthStrategy

from genba.connections.github.access.credentials import AppCredentials, Credentials
from genba.connections.github.errors import refusal
from genba.domain.errors import AccessRefusedError, RemoteUnavailable

if TYPE_CHECKING:
    from githubkit.core import GitHubCore

_EARLY_SECONDS = 300.0
_PROOF_SECONDS = 540
_LIFE_SECONDS = 3000.0
_LARGEST_ANSWER = 1024 * 1024
_UNAUTHORIZED, _NOT_FOUND = 401, 404


class AppStrategy(BaseAuthStrategy):
    """An App as one of its installations. One token serves all requests until it is about to expire."""

    def __init__(self, app: AppCredentials) -> None:
        self.app = app
        self.token = ""
        self.good_until = 0.0
        self.renewing = asyncio.Lock()

    @property
    def fresh(self) -> bool:
        return time.time() < self.good_until

    def get_auth_flow(self, github: "GitHubCore[Any]") -> httpx.Auth:
        return _AppAuth(self, str(github.config.base_url))


def strategy_of(credentials: Credentials) -> TokenAuthStrategy | AppStrategy:
    if isinstance(credentials, AppCredentials):
        return AppStrategy(credentials)
    return TokenAuthStrategy(credentials.token)


class _AppAuth(httpx.Auth):
    def __init__(self, strategy: AppStrategy, url: str) -> None:
        self.strategy = strategy
        self.address = f"{url.rstrip('/')}/app/installations/{strategy.app.installation}/access_tokens"

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        kept = self.strategy
        async with kept.renewing:
            if not kept.fresh:
                given = yield self._asking(request)
                await _read(given)
                self._take(given)
            used = kept.token
        request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code != _UNAUTHORIZED:
            return
        # An answer 401 means that nothing was carried out: with a new token it may be sent once more.
        async with kept.renewing:
            if kept.token == used:
                given = yield self._asking(request)
                await _read(given)
                self._take(given)
            request.headers["Authorization"] = f"Bearer {kept.token}"
        yield request

    def _asking(self, request: httpx.Request) -> httpx.Request:
        headers = {name: request.headers[name] for name in ("User-Agent", "Accept") if name in request.headers}
        asking = httpx.Request("POST", self.address, json={}, headers=headers)
        asking.headers["Authorization"] = f"Bearer {_proof(self.strategy.app)}"
        asking.extensions = dict(request.extensions)
        return asking

    def _take(self, response: httpx.Response) -> None:
        if response.status_code == _NOT_FOUND:
            app = self.strategy.app
            raise AccessRefusedError(
                f"the GitHub App {app.id} has no installation {app.installation}",
                unchanged="nothing was read from GitHub, and nothing was changed there.",
                hint="check installation under tracker.github.app in .genba/config.yaml",
            )
        if response.is_error:
            raise refusal("a token of the GitHub App", response.status_code, response.headers, response.content)
        try:
            result = json.loads(response.content)
            token, expires = str(result["token"]), str(result.get("expires_at") or "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RemoteUnavailable("GitHub gave no token to the App: its answer cannot be read") from error
        self.strategy.token = token
        self.strategy.good_until = _end_of(expires) - _EARLY_SECONDS


async def _read(given: httpx.Response) -> None:
    """All of a small answer, and no more of one that is not."""
    read = bytearray()
    if given.headers.get("content-encoding", "").strip().lower() in ("", "identity", "gzip"):
        async for chunk in given.aiter_bytes():
            read += chunk
            if len(read) > _LARGEST_ANSWER:
                break
    await given.aclose()
    given._content = bytes(read)  # what `aread` would set


def _end_of(expires: str) -> float:
    try:
        return datetime.fromisoformat(expires).timestamp()
    except (ValueError, OverflowError):
        return time.time() + _LIFE_SECONDS


def _proof(app: AppCredentials) -> str:
    """A text signed with the key of the App; good for a few minutes, and made for one request."""
    import jwt  # noqa: PLC0415  (only an App needs it)

    now = int(time.time())
    try:
        return jwt.encode({"iss": app.id, "iat": now - 60, "exp": now + _PROOF_SECONDS}, app.key, algorithm="RS256")
    except (jwt.PyJWTError, ValueError, TypeError):
        # What the library says may show parts of the key.
        raise AccessRefusedError(
            f"the key of the GitHub App {app.id} from {app.source} cannot sign: it is no private RSA key",
            hint="download a new private key in the settings of the App",
        ) from None
