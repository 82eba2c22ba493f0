"""Clients that try to lead the broker astray, to overload it, or to read what is not theirs."""

import asyncio
import contextlib

import pytest

from genba.connections.egress.broker import Broker
from genba.connections.egress.h11_connection import Patience
from genba.domain.sessions.egress import EgressEvent, Verdict
from tests.egress.brokered import CALLS, KEY, WORD, get, post, session
from tests.egress.places import Client, Far, listening, ok


@pytest.mark.parametrize(
    "target",
    [
        "/../admin",
        "/v1/../../admin",
        "/v1/..",
        "/./v1",
        "/%2e%2e/admin",
        "/v1/%2E%2e%2fadmin",
        "/%252e%252e/admin",
        "/%25252e%25252e/admin",
        "/%2525252525252e/admin",
        "/..;a=b/admin",
        "/..\\admin",
        "/v1/..%5cadmin",
        "http://evil.example/v1/messages",
        "https://evil.example/",
        "//evil.example/../x",
        "evil.example:443",
        "*",
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused(target: str) -> None:
    far = Far(ok())
    async with session(far.serve, prefix="/s/x") as here:
        answer = await here.client.ask(get(target))

    assert answer.status == 400
    assert far.connections == 0
    assert here.diary.of(Verdict.DENIED)


@pytest.mark.parametrize(
    "target", ["/v1/models?beta=true&x=../..", "/v1/models/a..b", "/models?a=%2F%2e", "/v1/models/a.b-c_d"]
)
async def test_a_path_below_the_upstream_is_passed_on_as_it_is(target: str) -> None:
    far = Far(ok())
    async with session(far.serve, prefix="/s/x") as here:
        await here.client.ask(get(target))

    assert [seen.target for seen in far.seen] == ["/s/x" + target]


@pytest.mark.parametrize(
    ("request_line", "status"),
    [("DELETE /v1/files/1", 405), ("CONNECT evil.example:443", 405), ("TRACE /", 405), ("OPTIONS *", 405)],
)
async def test_only_questions_are_passed_on(request_line: str, status: int) -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        answer = await here.client.ask(f"{request_line} HTTP/1.1\r\nHost: x\r\nX-Api-Key: {WORD}\r\n\r\n".encode())

    assert answer.status == status
    assert far.connections == 0


async def test_a_websocket_is_refused_so_that_tools_fall_back() -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        wanted = get("/v1/responses", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x")
        answer = await here.client.ask(wanted)
        async with Client.at(here.port) as other:
            ignored = await other.ask(get("/v1/models", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"))

    assert answer.status == 426
    assert ignored.status == 200
    assert "upgrade" not in far.seen[0].names


SMUGGLED = f"GET /v1/smuggled HTTP/1.1\r\nHost: x\r\nX-Api-Key: {WORD}\r\n\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length : 5",
        "Content-Length: +5",
        "Content-Length: 5, 6",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding: gzip",
        "Host: evil.example",
        "X: a\rX-Api-Key: b",
        "X: a\x00b",
        "no colon here",
    ],
)
async def test_a_request_that_can_be_read_in_two_ways_is_read_in_none(lines: str) -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        head = f"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: {WORD}\r\n{lines}\r\n\r\n"
        answer = await here.client.ask((head + "0\r\n\r\n" + SMUGGLED).encode("latin-1"))

    assert answer.status in {400, 501}
    assert far.seen == []


async def test_a_request_behind_another_needs_the_word_as_well() -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        behind = SMUGGLED.replace(WORD, "wrong").encode()
        first = await here.client.ask(post(b"0\r\n\r\n") + behind)
        second = await here.client.answer()

    assert (first.status, second.status) == (200, 401)
    assert [seen.body for seen in far.seen] == [b"0\r\n\r\n"]


async def test_a_line_that_is_folded_stays_one_header() -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        await here.client.ask(get("/v1/models", "X-Fold: a", "  X-Api-Key: evil"))

    assert far.seen[0].headers["x-fold"] == "a X-Api-Key: evil"
    assert far.seen[0].headers["x-api-key"] == KEY


async def test_endless_headers_end_and_others_go_on() -> None:
    far = Far(ok())
    async with session(far.serve) as here, Client.at(here.port) as other:
        here.client.writer.write(b"GET / HTTP/1.1\r\nX: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                here.client.writer.write(b"a" * 10_000)
                await here.client.writer.drain()
        answer = await here.client.answer()
        fine = await other.ask(get())

    assert answer.status in {0, 431}
    assert fine.status == 200


async def test_a_head_that_trickles_is_not_waited_for() -> None:
    far = Far(ok())
    async with session(far.serve, patience=Patience(head=0.3, linger=0.1)) as here, Client.at(here.port) as other:

        async def trickle() -> None:
            with contextlib.suppress(ConnectionError):
                here.client.writer.write(b"GET / HTTP/1.1\r\n")
                for _ in range(1000):
                    here.client.writer.write(b"a")
                    await here.client.writer.drain()
                    await asyncio.sleep(0.01)  # this is the pace of the attack

        attack = asyncio.create_task(trickle())
        answer = await here.client.answer()
        fine = await other.ask(get())
        attack.cancel()
        await asyncio.gather(attack, return_exceptions=True)

    assert answer.status == 408
    assert fine.status == 200


async def test_a_connection_that_asks_nothing_is_closed() -> None:
    async with session(Far(ok()).serve, patience=Patience(idle=0.1)) as here:
        assert await here.client.to_end() == b""


async def test_too_many_connections_are_turned_away_and_the_first_go_on() -> None:
    far = Far(ok())
    async with session(far.serve) as here, contextlib.AsyncExitStack() as stack:
        first = await here.client.ask(get())
        crowd = [await stack.enter_async_context(Client.at(here.port)) for _ in range(140)]
        last = await crowd[-1].to_end()
        again = await here.client.ask(get())

    assert (first.status, last, again.status) == (200, b"", 200)
    assert here.diary.of(Verdict.DENIED) == ["more than 128 connections at once"]


async def test_a_diary_that_cannot_be_written_ends_the_connection_and_nothing_else() -> None:
    def full(event: EgressEvent) -> None:
        raise OSError(28, "No space left on device")

    far = Far(ok())
    async with listening(far.serve) as far_port:
        broker = Broker(f"http://127.0.0.1:{far_port}", "x-api-key", KEY, WORD, full, calls=CALLS)
        async with listening(broker.serve) as port, Client.at(port) as client:
            answer = await client.ask(get())

    assert answer.status == 0
    assert far.connections == 0
