"""The client of GitHub: it counts requests, bounds answers and translates errors.

Only requests that read are retried; a request that changes something is sent once. The token goes to one host only.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from genba import __version__
from genba.connections.github.access.authentication import TokenAuth, auth_of
from genba.connections.github.access.credentials import Credentials
from genba.connections.github.errors import Refused, TooHeavy, pause_of, plain, refusal
from genba.connections.github.settings import GitHubSettings
from genba.domain.decoding import fitted, leniently_read
from genba.domain.errors import (
    GenbaError,
    NotAllowedError,
    NotFoundError,
    RateLimited,
    RemoteUnavailable,
    UnrecoverableError,
)
from genba.domain.ports import Clock

T = TypeVar("T")

_TRIES = 3
_MAX_ANSWER = 64 * 1024 * 1024
_MAX_REFUSAL = 1024 * 1024
_MAX_POINTS = 1_000_000
_ENCODINGS = ("", "identity", "gzip")
"""Other encodings may unpack to a million times their size before the limit of the answer applies."""
_MAX_REDIRECTS = 3
_REDIRECTS = (301, 302, 307, 308)
_NOT_MODIFIED = 304
_MAX_RETRY_PAUSE = 10.0
_GITHUB = "https://api.github.com"
_HEADERS = {
    "Accept": "application/vnd.github+json",
    "Accept-Encoding": "gzip",
    "X-GitHub-Api-Version": "2022-11-28",
    "X-GitHub-Next-Global-ID": "1",  # so that REST and GraphQL name the same thing by the same id
}
_UNKNOWN_FIELDS = ("undefinedField", "undefinedType", "argumentNotAccepted", "undefinedFragment")

Parameters = Mapping[str, str | int]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back."""

    asked: str
    status: int
    body: bytes = b""
    etag: str = ""
    following: str = ""
    """The address of the next page."""

    @property
    def unchanged(self) -> bool:
        return self.status == _NOT_MODIFIED

    def read(self, kind: type[T]) -> T:
        try:
            return leniently_read(self.body, kind)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise RemoteUnavailable(f"the answer of GitHub to {self.asked} is not as it should be: {error}") from error


class GraphQLError(msgspec.Struct, frozen=True):
    """One error in a reply of GraphQL."""

    type: str | None = None
    message: str = ""
    path: list[str | int] | None = None
    extensions: dict[str, Any] | None = None


class GraphQLReply(msgspec.Struct, frozen=True):
    """A reply of GraphQL; `errors` are only those that the caller accepts."""

    data: dict[str, Any] | None = None
    errors: list[GraphQLError] | None = None

    def part(self, kind: type[T], *path: str) -> T | None:
        """The value at a path as `kind`; None where there is none."""
        value: Any = self.data
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return None if value is None else to_kind(value, kind)


def to_kind(value: object, kind: type[T]) -> T:
    """The value as `kind`. Raises RemoteUnavailable where it does not fit."""
    try:
        return fitted(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise RemoteUnavailable(f"the answer of GitHub is not as it should be: {error}") from error


class GitHubClient:
    """Speaks for one repository. Keeps its connections until it is closed."""

    def __init__(
        self,
        settings: GitHubSettings,
        credentials: Credentials,
        clock: Clock,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.owner, self.name = settings.repository.split("/", 1)
        self.requests = 0
        self.points = 0
        self.notes: list[str] = []
        self._last_change: float | None = None
        self._place = credentials.destination
        self._auth = auth_of(credentials)
        self._transport = transport
        self._connections: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        url = self._place.url
        self._graphql = f"{url.removesuffix('/v3')}/graphql" if url.endswith("/api/v3") else f"{url}/graphql"

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        if connections is not None and connections[0] is asyncio.get_running_loop():
            await connections[1].aclose()

    def _http(self) -> httpx.AsyncClient:
        """The connections of this event loop."""
        loop = asyncio.get_running_loop()
        if self._connections is None or self._connections[0] is not loop:
            http = httpx.AsyncClient(
                auth=self._auth,
                base_url=self._place.url,
                headers={"User-Agent": f"genba/{__version__}", **_HEADERS},
                timeout=self.settings.timeout_seconds,
                trust_env=self._place.by_tls,  # a proxy of the environment reads all of plain text, and nothing of TLS
                event_hooks={"request": [self._before_sending]},
                transport=self._transport,
            )
            self._connections = (loop, http)
        return self._connections[1]

    async def _before_sending(self, request: httpx.Request) -> None:
        """Refuse a request to any other place: it carries the token."""
        url = request.url
        if url.userinfo or not self._place.covers(url.scheme, url.host, url.port):
            raise _another_host(url.host)

    async def token(self) -> str:
        """A token that is good for the next minutes, for git, which asks for one itself."""
        if not isinstance(self._auth, TokenAuth) and not self._auth.fresh:
            await self.get(self.repository())
        return self._auth.token

    def repository(self, *words: str | int) -> str:
        """A path below the repository; each word is one part of it, whatever it holds."""
        parts = ("repos", self.owner, self.name, *words)
        return "/".join(quote(str(part), safe="") for part in parts)

    async def get(self, path: str, parameters: Parameters | None = None, etag: str = "") -> Answer:
        """Look. Asked again by itself where that may help."""
        headers = {"If-None-Match": etag} if etag else {}
        return await self._patiently(lambda: self._follow("GET", path, parameters, None, headers))

    async def pages(self, path: str, parameters: Parameters | None = None, most: int = 50) -> AsyncIterator[Answer]:
        """A list, page by page, and not without an end."""
        answer = await self.get(path, {"per_page": 100, **(parameters or {})})
        yield answer
        for _ in range(most - 1):
            if not answer.following:
                return
            answer = await self.get(answer.following)
            yield answer

    async def change(self, method: str, path: str, body: object) -> Answer:
        """Change something. Sent once, whatever happens."""
        await self._pace()
        try:
            return await self._follow(method, path, None, body, {})
        finally:
            self._last_change = self.clock.elapsed()

    async def query(
        self,
        document: str,
        variables: Mapping[str, object],
        *,
        bearable: frozenset[str] = frozenset(),
        divisible: bool = False,
    ) -> GraphQLReply:
        """Ask by GraphQL. Errors of the kinds that are bearable are returned beside the data.

        A divisible query that is too heavy is not repeated: the caller divides it.
        """
        return await self._patiently(lambda: self._ask(document, variables, bearable), divisible)

    async def mutate(self, document: str, variables: Mapping[str, object]) -> GraphQLReply:
        """Change something by GraphQL. Sent once, whatever happens."""
        await self._pace()
        self.points += 1
        try:
            return await self._ask(document, variables, frozenset())
        finally:
            self._last_change = self.clock.elapsed()

    async def _pace(self) -> None:
        """GitHub wants a second between two changes, also between those of one change."""
        if self._last_change is None:
            return
        wait = self.settings.mutation_pause_seconds - (self.clock.elapsed() - self._last_change)
        if wait > 0:
            await self.clock.sleep(wait)

    async def _patiently(self, work: Callable[[], Awaitable[T]], divisible: bool = False) -> T:
        for attempt in range(1, _TRIES + 1):
            try:
                return await work()
            except RemoteUnavailable as error:
                wait = error.retry_after if error.retry_after is not None else 2.0 ** (attempt - 1)
                if attempt >= _TRIES or wait > _MAX_RETRY_PAUSE or (divisible and isinstance(error, TooHeavy)):
                    raise
                await self.clock.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311  (a pause, no secret)
        raise AssertionError("unreachable")

    async def _ask(self, document: str, variables: Mapping[str, object], bearable: frozenset[str]) -> GraphQLReply:
        body = {"query": document, "variables": dict(variables)}
        try:
            answer, headers = await self._once("POST", self._graphql, None, body, {})
        except NotFoundError as error:
            raise _unsupported("this server has no GraphQL") from error
        reply = answer.read(GraphQLReply)
        self.points += min(max(reply.part(int, "rateLimit", "cost") or 0, 0), _MAX_POINTS)
        for each in reply.errors or ():
            if each.type not in bearable:
                raise _graphql_failure(each, headers)
        if reply.data is None:
            raise RemoteUnavailable("GitHub answered a GraphQL query with nothing at all")
        return reply

    async def _follow(
        self, method: str, path: str, parameters: Parameters | None, body: object, headers: dict[str, str]
    ) -> Answer:
        """Send, and go where GitHub sends us on to. Such an answer means that nothing was carried out yet."""
        address, moved = path, False
        for _ in range(_MAX_REDIRECTS + 1):
            self.requests += 1
            answer, got = await self._once(method, address, None if moved else parameters, body, headers)
            if answer.status not in _REDIRECTS:
                return answer
            address, moved = self._same_host(got.get("location", "")), True
            self._note_move(path, address)
        raise RemoteUnavailable(f"GitHub sends us round in circles for {method} {path}")

    async def _once(
        self, method: str, address: str, parameters: Parameters | None, body: object, headers: dict[str, str]
    ) -> tuple[Answer, Mapping[str, str]]:
        asked = f"{method} {_short(address)}"
        http = self._http()
        try:
            async with asyncio.timeout(self.settings.timeout_seconds):
                request = http.build_request(
                    method, address, params=dict(parameters) if parameters else None, json=body, headers=headers
                )
                response = await http.send(request, stream=True)
                try:
                    content = await _content(response, asked)
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.TimeoutException):
            raise _silent(f"{asked} in {self.settings.timeout_seconds:g} s", self.settings.url) from None
        except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise _silent(f"{asked}: {plain(str(error)) or type(error).__name__}", self.settings.url) from None
        if response.is_error:
            raise refusal(asked, response.status_code, response.headers, content)
        got = response.headers
        following = response.links.get("next", {}).get("url", "")
        answer = Answer(
            asked=asked,
            status=response.status_code,
            body=content,
            etag=got.get("etag", ""),
            following=self._same_host(following) if following else "",
        )
        return answer, got

    def _same_host(self, address: str) -> str:
        try:
            parts = urlsplit(address)
            same = self._place.covers(parts.scheme, parts.hostname or "", parts.port)
        except ValueError:  # it is no address at all
            same = False
        if not same:
            raise _another_host(address.partition("://")[2].partition("/")[0] or address)
        return address

    def _note_move(self, path: str, address: str) -> None:
        note = f"GitHub answers for {self.settings.repository} under another address: was it renamed or moved?"
        if path.startswith(self.repository()) and not any(message.startswith(note) for message in self.notes):
            self.notes.append(f"{note} ({_short(address)})")


async def _content(response: httpx.Response, asked: str) -> bytes:
    """The whole of an answer, or the beginning of a refusal. Raises TooHeavy where an answer is too large."""
    if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
        raise RemoteUnavailable("GitHub packs its answer in an encoding that was not asked for")
    limit = _MAX_REFUSAL if response.is_error else _MAX_ANSWER
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > limit:
            if response.is_error:
                break
            raise TooHeavy(f"the answer of GitHub to {asked} is larger than {limit // 1024 // 1024} MiB")
    return bytes(read[:limit])


def _silent(what: str, url: str) -> RemoteUnavailable:
    """There is no answer. A wrong tracker.github.url may be the reason, where one is set."""
    if url.rstrip("/") == _GITHUB:
        return RemoteUnavailable(f"GitHub did not answer {what}")
    host = plain(urlsplit(url).netloc.rpartition("@")[2], 100)
    return RemoteUnavailable(
        f"{host} did not answer {what}", hint="does it run? its address is tracker.github.url in .genba/config.yaml"
    )


def _graphql_failure(error: GraphQLError, headers: Mapping[str, str]) -> GenbaError:
    """The exception for an error of GraphQL, which comes with the status 200."""
    words = plain(error.message)
    lower = words.lower()
    if error.type in ("RATE_LIMITED", "RATE_LIMIT") or "rate limit" in lower:
        # The headers tell when the hour is over, which is no matter of a secondary limit.
        known = {name: headers[name] for name in ("retry-after", "date") if name in headers}
        pause = pause_of(known if "secondary" in lower else headers)
        return RateLimited(f"GitHub takes no more GraphQL for now ({words})", retry_after=pause)
    if error.type in ("INSUFFICIENT_SCOPES", "FORBIDDEN"):
        return NotAllowedError(
            f"the credentials do not allow what we ask for ({words})",
            unchanged="nothing was changed on GitHub; what is still to be sent stays in the outbox.",
            hint="gh auth refresh --scopes repo,project",
        )
    if error.type == "NOT_FOUND":
        return NotFoundError(f"GitHub does not find it ({words})", hint="check tracker.github in .genba/config.yaml")
    if (error.extensions or {}).get("code") in _UNKNOWN_FIELDS:
        return _unsupported(f"the GraphQL of this server does not know what we ask for ({words})")
    if error.type in ("RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED") or "timeout" in lower:
        return TooHeavy(f"GitHub did not come to an answer ({words})")
    if error.type in ("UNPROCESSABLE", "VALIDATION", "BAD_USER_INPUT"):
        return Refused(f"GitHub refuses it ({words})", status=422, words=words)
    return RemoteUnavailable(f"GitHub failed at a GraphQL query ({words or error.type})")


def _unsupported(message: str) -> UnrecoverableError:
    return UnrecoverableError(message, hint="check tracker.github.url in .genba/config.yaml")


def _another_host(shown: str) -> RemoteUnavailable:
    return RemoteUnavailable(
        f"GitHub sends us to another host ({plain(shown.rpartition('@')[2], 100)}), which gets no token",
        hint="check tracker.github.url in .genba/config.yaml",
    )


def _short(address: str) -> str:
    """An address as people read it: without host and question."""
    path = urlsplit(address).path if "://" in address else address.partition("?")[0]
    words = path.strip("/").split("/")
    if words[:2] == ["api", "v3"]:
        words = words[2:]
    return "/".join(words[3:] if words[:1] == ["repos"] and len(words) > 3 else words)  # noqa: PLR2004
