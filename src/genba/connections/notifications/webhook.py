"""Notices as JSON to an address that the project names.

Laws: the address may hold a secret, so only its host is ever printed. It goes to that host and to no other:
a redirect is refused. What comes back is not read, only its status.
"""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from genba import __version__
from genba.domain.errors import RateLimited, RemoteUnavailable, UnrecoverableError
from genba.domain.fleet.notifications import Notification

SIGNATURE, KEY = "Genba-Signature", "Genba-Notice"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PASSING = (408, 425)
_TOO_MANY, _SERVER_FAULT = 429, 500
_LONGEST_WAIT = 3600.0
_TALKATIVE = ("httpx", "httpcore")


def host_of(url: str) -> str:
    """The part of an address that may be printed."""
    try:
        return urlsplit(url).hostname or "nowhere"
    except ValueError:
        return "nowhere"


def url_problem(url: str, plain_http: bool = False) -> str:
    """Why nothing is sent to an address; empty where it can be. It never contains the address."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "it is no address"
    if parts.scheme not in ("http", "https") or not host:
        return "it is no address that begins with https://"
    if parts.scheme == "http" and host not in _LOOPBACK and not plain_http:
        return f"it is http, and anyone between here and {host} could read it"
    return ""


class WebhookChannel:
    """Posts each notice. Without a secret it is not signed."""

    def __init__(
        self,
        url: str,
        secret: str = "",
        *,
        timeout_seconds: float = 10.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._url = url
        self._secret = secret
        self.timeout_seconds = timeout_seconds
        self.now = now
        self.host = host_of(url)
        for name in _TALKATIVE:  # what they say of a request holds the whole address
            logging.getLogger(name).setLevel(logging.WARNING)

    def __repr__(self) -> str:
        return f"WebhookChannel({self.host})"

    async def send(self, notice: Notification) -> None:
        content = msgspec.json.encode(body_of(notice, self.now()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"genba/{__version__}",
            KEY: notice.key,
            "Idempotency-Key": notice.key,
        }
        if self._secret:
            headers[SIGNATURE] = f"sha256={hmac.new(self._secret.encode(), content, hashlib.sha256).hexdigest()}"
        status, retry_after, location = await self._posted(content, headers)
        if 200 <= status < 300:  # noqa: PLR2004  (the successes of HTTP)
            return
        if status == _TOO_MANY:
            raise RateLimited(f"{self.host} wants fewer notifications", retry_after=retry_after)
        if status in _PASSING or status >= _SERVER_FAULT:
            raise RemoteUnavailable(f"{self.host} answers {status}", retry_after=retry_after)
        if location:
            raise UnrecoverableError(f"{self.host} sends us on to {host_of(location)}, and a notice goes nowhere else")
        raise UnrecoverableError(f"{self.host} refuses it: {status}")

    async def _posted(self, content: bytes, headers: dict[str, str]) -> tuple[int, float | None, str]:
        """The status, the seconds until we may come back, and where we are sent on to."""
        try:
            async with (
                asyncio.timeout(self.timeout_seconds),
                httpx.AsyncClient(
                    follow_redirects=False,
                    timeout=2 * self.timeout_seconds,  # all of it together has its limit above
                    trust_env=self.host not in _LOOPBACK,
                    auth=_auth(self._url),
                ) as client,
                client.stream("POST", self._url, content=content, headers=headers) as answer,
            ):
                location = answer.headers.get("Location", "") if answer.is_redirect else ""
                return answer.status_code, _seconds(answer.headers.get("Retry-After", "")), location
        except TimeoutError as error:
            raise RemoteUnavailable(f"{self.host} did not answer within {self.timeout_seconds:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise RemoteUnavailable(f"{self.host} cannot be reached: {type(error).__name__}") from None


def body_of(notice: Notification, at: datetime) -> dict[str, Any]:
    """A notice as it is sent. `text` is what chats show."""
    return {
        "version": 1,
        "event": "needs_you" if notice.kind is not None else "test",
        "id": notice.key,
        "kind": notice.kind,
        "project": notice.project,
        "task": notice.task,
        "title": notice.title,
        "question": notice.question,
        "command": notice.command,
        "run": notice.run,
        "since": notice.since,
        "reminder": notice.reminder,
        "sent_at": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "text": _text(notice),
    }


def _text(notice: Notification) -> str:
    """The message as a chat shows it, without mentions that notify a whole channel."""
    lines = (notice.headline, notice.title, notice.question, notice.command)
    message = "\n".join(line for line in lines if line)
    return message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _auth(url: str) -> httpx.Auth:
    """What the address itself says; what is in ~/.netrc is for others."""
    found = httpx.URL(url)
    return httpx.BasicAuth(found.username, found.password) if found.userinfo else httpx.Auth()


def _seconds(header: str) -> float | None:
    """A time that the other side names in seconds; what it says in another way is not followed."""
    return min(float(header), _LONGEST_WAIT) if header.isdecimal() else None
