import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from genba.connections.notifications.webhook import WebhookChannel
from genba.domain.errors import GenbaError, RecoverableError, UnrecoverableError
from genba.testing.notice_conformance import a_notice
from tests.egress.places import listening

SOON = 60.0


@contextlib.asynccontextmanager
async def receiver(raw: bytes, *, endless: bytes = b"", pause: float = 0.0) -> AsyncIterator[tuple[str, list[int]]]:
    came: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(1)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(raw)
            await writer.drain()
            while endless:
                writer.write(endless)
                await writer.drain()
                await asyncio.sleep(pause)  # the pace of the other side

    async with listening(serve) as port:
        yield f"http://127.0.0.1:{port}/hook", came


async def sent(url: str, seconds: float = 20.0) -> GenbaError | None:
    async with asyncio.timeout(SOON):
        try:
            await WebhookChannel(url, timeout_seconds=seconds).send(a_notice())
        except GenbaError as error:
            return error
    return None


async def test_a_body_without_an_end_is_not_read() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with receiver(head, endless=b"4000\r\n" + b"x" * 0x4000 + b"\r\n") as (url, _):
        assert await sent(url) is None


@pytest.mark.parametrize("endless", [b"X: y\r\n", b"a"])
async def test_headers_without_an_end_are_given_up(endless: bytes) -> None:
    async with receiver(b"HTTP/1.1 200 OK\r\n", endless=endless * 1000) as (url, _):
        assert isinstance(await sent(url), RecoverableError)


async def test_an_answer_that_drips_is_not_waited_for_longer_than_the_limit() -> None:
    async with receiver(b"HTTP/1.1 200 OK\r\nX: ", endless=b"a", pause=0.02) as (url, _):
        assert isinstance(await sent(url, 0.3), RecoverableError)


async def test_a_redirect_to_this_machine_is_not_followed() -> None:
    async with (
        receiver(b"") as (inside, came),
        receiver(f"HTTP/1.1 307 Go\r\nLocation: {inside}\r\nContent-Length: 0\r\n\r\n".encode()) as (url, _),
    ):
        assert isinstance(await sent(url), UnrecoverableError)
    assert came == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * 100,
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 999 What\r\n\r\n",
        b"HTTP/1.1 302 Go\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Go\r\nLocation: \xff\xfe\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 Slow\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 Slow\r\nRetry-After: NaN\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 Slow\r\nRetry-After: " + b"9" * 5_000 + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 No\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 No\r\nRetry-After: \xb2\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_what_is_no_good_answer_is_an_error_of_the_house_with_a_bounded_wait(raw: bytes) -> None:
    async with receiver(raw) as (url, _):
        result = await sent(url)

    assert result is not None
    assert 0 <= (getattr(result, "retry_after", None) or 0) <= 3600
