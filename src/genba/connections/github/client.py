"""The one way to GitHub: requests that are counted, bounded and translated.

Laws: only what looks is asked again by itself; what changes something is sent once. A token leaves for one host only.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec
from githubkit import GitHub, TokenAuthStrategy
from githubkit.exception import GitHubException, RequestError, RequestFailed, RequestTimeout

from genba import __version__
from genba.connections.github.access.authentication import strategy_of
from genba.connections.github.access.credentials import Credentials
from genba.connections.github.errors import NoGraphQL, Refused, TooHeavy, pause_of, plain, refusal
from genba.connections.github.settings import GitHubSettings
from genba.domain.decoding import fitted, leniently_read
from genba.domain.errors import (
    GenbaError,
    NotAllowedError,
    NotFoundError,
    RateLimited,
    RemoteUnavailable,
)
from genba.domain.ports import Clock

T = TypeVar("T")

_TRIES = 3
_LARGEST_ANSWER = 64 * 1024 * 1024
_LARGEST_REFUSAL = 1024 * 1024
_MOST_POINTS = 1_000_000
_ENCODINGS = ("", "identity", "gzip")
"""An answer that is packed twice unpacks to a thousand thousand times its size, before anybody can count it."""
_MOST_REDIRECTS = 3
_REDIRECTS = (301, 302, 307, 308)
_NOT_MODIFIED = 304
_LONGEST_OWN_PAUSE = 10.0
_GITHUB = "https://api.github.com"
_HEADERS = {
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
    moved: bool = False
    """GitHub sent us on to another address."""

    @property
    def unchanged(self) -> bool:
        return self.status == _NOT_MODIFIED

    def read(self, kind: type[T]) -> T:
        try:
            return leniently_read(self.body, kind)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise RemoteUnavailable(f"the answer of GitHub to {self.asked} is not as it should be: {error}") from error


class Trouble(msgspec.Struct, frozen=True):
    """One error in an answer of GraphQL."""

    type: str | None = None
    message: str = ""
    path: list[str | int] | None = None
    extensions: dict[str, Any] | None = None


class Told(msgspec.Struct, frozen=True):
    """What GraphQL answered; `errors` are only those that whoever asked can bear."""

    data: dict[str, Any] | None = None
    errors: list[Trouble] | None = None

    def part(self, kind: type[T], *path: str) -> T | None:
        """What stands at a path, read as `kind`; None where nothing stands."""
        found: Any = self.data
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if found is None:
            return None
        return shaped(found, kind)


def shaped(found: object, kind: type[T]) -> T:
    try:
        return fitted(found, kind, strict=False)
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
        self._without_graphql = False
        self._place = credentials.destination
        self._strategy = strategy_of(credentials)
        self._github = _Connected(
            self._strategy,
            base_url=self._place.url,
            user_agent=f"genba/{__version__}",
            follow_redirects=False,
            trust_env=self._place.by_tls,  # a proxy of the environment sees nothing of TLS, and all of plain text
            async_event_hooks={"request": [self._before_sending]},
            timeout=settings.timeout_seconds,
            async_transport=transport,
            http_cache=False,
            auto_retry=False,
        )
        url = self._place.url
        self._graphql = f"{url.removesuffix('/v3')}/graphql" if url.endswith("/api/v3") else f"{url}/graphql"

    async def close(self) -> None:
        await self._github.disconnect()

    async def _before_sending(self, request: httpx.Request) -> None:
        """The last look at where a request goes, whoever made it: it carries the token."""
        url = request.url
        if url.userinfo or not self._place.covers(url.scheme, url.host, url.port):
            raise _another_host(url.host)

    async def token(self) -> str:
        """A token that is good for the next minutes, for git, which asks for one itself."""
        strategy = self._strategy
        if isinstance(strategy, TokenAuthStrategy):
            return strategy.token
        if not strategy.fresh:
            await self.get(self.repository())
        return strategy.token

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
    ) -> Told:
        """Ask by GraphQL. Errors of the kinds that are bearable are handed back beside what was found.

        What is too heavy is not asked again as it is, where whoever asks can divide it.
        """
        return await self._patiently(lambda: self._ask(document, variables, bearable), divisible)

    async def mutate(self, document: str, variables: Mapping[str, object]) -> Told:
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
                if attempt >= _TRIES or wait > _LONGEST_OWN_PAUSE or (divisible and isinstance(error, TooHeavy)):
                    raise
                await self.clock.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311  (a pause, no secret)
        raise AssertionError("unreachable")

    async def _ask(self, document: str, variables: Mapping[str, object], bearable: frozenset[str]) -> Told:
        if self._without_graphql:
            raise NoGraphQL("this server has no GraphQL")
        body = {"query": document, "variables": dict(variables)}
        try:
            answer, headers = await self._once("POST", self._graphql, None, body, {})
        except NotFoundError as error:
            self._without_graphql = True
            raise NoGraphQL("this server has no GraphQL") from error
        output = answer.read(Told)
        self.points += min(max(output.part(int, "rateLimit", "cost") or 0, 0), _MOST_POINTS)
        for trouble in output.errors or ():
            if trouble.type not in bearable:
                raise _trouble(trouble, headers)
        if output.data is None:
            raise RemoteUnavailable("GitHub answered a GraphQL query with nothing at all")
        return output

    async def _follow(
        self, method: str, path: str, parameters: Parameters | None, body: object, headers: dict[str, str]
    ) -> Answer:
        """Send, and go where GitHub sends us on to. Such an answer means that nothing was carried out yet."""
        address, moved = path, False
        for _ in range(_MOST_REDIRECTS + 1):
            self.requests += 1
            answer, got = await self._once(method, address, None if moved else parameters, body, headers)
            if answer.status not in _REDIRECTS:
                return msgspec.structs.replace(answer, moved=True) if moved else answer
            address, moved = self._same_host(got.get("location", "")), True
            self._note_move(path, address)
        raise RemoteUnavailable(f"GitHub sends us round in circles for {method} {path}")

    async def _once(
        self, method: str, address: str, parameters: Parameters | None, body: object, headers: dict[str, str]
    ) -> tuple[Answer, Mapping[str, str]]:
        asked = f"{method} {_short(address)}"
        try:
            async with asyncio.timeout(self.settings.timeout_seconds):
                response = await self._github.arequest(
                    method,
                    address,
                    params=dict(parameters) if parameters else None,
                    json=body,
                    headers={**_HEADERS, **headers},
                    stream=True,
                )
                try:
                    read = await _bounded(response.aiter_bytes(), asked)
                finally:
                    await response.raw_response.aclose()
        except RequestFailed as error:
            raw = error.response.raw_response
            raise refusal(asked, raw.status_code, raw.headers, raw.content) from None
        except (TimeoutError, RequestTimeout):
            raise _silent(f"{asked} in {self.settings.timeout_seconds:g} s", self.settings.url) from None
        except RequestError as error:
            raise _cut(asked, error.exc, self.settings.url) from None
        except GitHubException as error:
            raise RemoteUnavailable(f"{asked} failed: {type(error).__name__}") from None
        except (OSError, httpx.HTTPError) as error:
            raise _cut(asked, error, self.settings.url) from None
        except (ValueError, OverflowError, TypeError):
            # The client could not read the time in the answer of a limit, or make a time of it.
            raise RateLimited("GitHub takes no more requests for now", retry_after=pause_of({})) from None
        got = response.headers
        following = response.raw_response.links.get("next", {}).get("url", "")
        answer = Answer(
            asked=asked,
            status=response.status_code,
            body=read,
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


class _Connected(GitHub[Any]):
    """githubkit with one set of connections for all requests of an event loop, whoever sends them.

    It reads the whole of an answer that is an error; so that is read here first, and no more of it than is told.
    """

    _kept: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None

    @asynccontextmanager
    async def get_async_client(self) -> AsyncIterator[httpx.AsyncClient]:
        loop = asyncio.get_running_loop()
        if self._kept is None or self._kept[0] is not loop:
            self._kept = (loop, await self._create_async_client())
        yield self._kept[1]

    async def _arequest(self, *args: Any, **kwargs: Any) -> httpx.Response:
        response = await super()._arequest(*args, **kwargs)
        if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
            await response.aclose()
            raise RemoteUnavailable("GitHub packs its answer in a way that nobody asked for")
        if response.is_error and kwargs.get("stream"):
            response._content = await _beginning(response.aiter_bytes())  # what `aread` would set
            await response.aclose()
        return response

    async def disconnect(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] is asyncio.get_running_loop():
            await kept[1].aclose()


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    read = bytearray()
    async for chunk in chunks:
        read += chunk
        if len(read) > _LARGEST_REFUSAL:
            break
    return bytes(read[:_LARGEST_REFUSAL])


async def _bounded(chunks: AsyncIterator[bytes], asked: str) -> bytes:
    read = bytearray()
    async for chunk in chunks:
        read += chunk
        if len(read) > _LARGEST_ANSWER:
            raise TooHeavy(f"the answer of GitHub to {asked} is larger than {_LARGEST_ANSWER // 1024 // 1024} MiB")
    return bytes(read)


def _cut(asked: str, cause: BaseException, url: str) -> GenbaError:
    if isinstance(cause, GenbaError):
        return cause
    return _silent(f"{asked}: {plain(str(cause)) or type(cause).__name__}", url)


def _silent(what: str, url: str) -> RemoteUnavailable:
    """Nobody answers. Where another address was set than that of GitHub itself, that may be why."""
    if url.rstrip("/") == _GITHUB:
        return RemoteUnavailable(f"GitHub did not answer {what}")
    host = plain(urlsplit(url).netloc.rpartition("@")[2], 100)
    return RemoteUnavailable(
        f"{host} did not answer {what}", hint="does it run? its address is tracker.github.url in .genba/config.yaml"
    )


def _trouble(trouble: Trouble, headers: Mapping[str, str]) -> GenbaError:
    """What an error of GraphQL means. They come with the status 200."""
    words = plain(trouble.message)
    lower = words.lower()
    if trouble.type in ("RATE_LIMITED", "RATE_LIMIT") or "rate limit" in lower:
        # The headers tell when the hour is over, which is no matter of a secondary limit.
        known = {name: headers[name] for name in ("retry-after", "date") if name in headers}
        pause = pause_of(known if "secondary" in lower else headers)
        return RateLimited(f"GitHub takes no more GraphQL for now ({words})", retry_after=pause)
    if trouble.type in ("INSUFFICIENT_SCOPES", "FORBIDDEN"):
        return NotAllowedError(
            f"the credentials do not allow what we ask for ({words})",
            unchanged="nothing was changed on GitHub; what is still to be sent stays in the outbox.",
            hint="gh auth refresh --scopes repo,project",
        )
    if trouble.type == "NOT_FOUND":
        return NotFoundError(f"GitHub does not find it ({words})", hint="check tracker.github in .genba/config.yaml")
    if (trouble.extensions or {}).get("code") in _UNKNOWN_FIELDS:
        return NoGraphQL(f"the GraphQL of this server does not know what we ask for ({words})")
    if trouble.type in ("RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED") or "timeout" in lower:
        return TooHeavy(f"GitHub did not come to an answer ({words})")
    if trouble.type in ("UNPROCESSABLE", "VALIDATION", "BAD_USER_INPUT"):
        return Refused(f"GitHub refuses it ({words})", status=422, words=words)
    return RemoteUnavailable(f"GitHub failed at a GraphQL query ({words or trouble.type})")


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
