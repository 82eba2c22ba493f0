"""Whatever an agent sends to its gates is answered or cut off, and nothing of this machine is reached."""

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from genba.connections.egress.broker import Broker
from genba.connections.egress.h11_connection import Patience
from genba.connections.egress.proxy import AllowListProxy
from genba.domain.sessions.sandbox import Network
from tests.egress.brokered import CALLS, KEY, WORD
from tests.egress.places import SOON, Client, Diary, Far, listening, ok
from tests.fuzz.outside import tried

HASTY = Patience(head=2.0, quiet=2.0, answer=5.0, idle=2.0, tunnel=2.0, dial=2.0, linger=0.2)
SELVES = (
    "localhost",
    "LocalHost.",
    "localhost%00.example",
    "127.0.0.1",
    "127.1",
    "0177.0.0.1",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[0:0:0:0:0:0:0:1%25lo]",
    "[64:ff9b::127.0.0.1]",
    "①②⑦.0.0.1",
    "127。0。0。1",
    "user@127.0.0.1",
    "127.0.0.1#@example.org",
    "example.org@127.0.0.1",
    socket.gethostname(),
)
METHODS = ("CONNECT", "GET", "POST", "HEAD", "OPTIONS", "TRACE", "get", "")
LINES = (
    "Host: 127.0.0.1",
    "Host: example.org",
    f"X-Api-Key: {WORD}",
    f"Authorization: Bearer {WORD}",
    "X-Api-Key: wrong",
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "Proxy-Connection: keep-alive",
    "X: " + "a" * 300,
    "X\0: y",
    " folded",
    ":",
    "",
)
heads = st.lists(st.sampled_from(LINES), max_size=5).map("\r\n".join)
bodies = st.sampled_from((b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffff\r\nx", b"\0" * 50))


async def printed(port: int, raw: bytes) -> bytes:
    """Everything that comes back to who says this and no more."""
    async with Client.at(port) as client:
        client.writer.write(raw)
        client.writer.write_eof()
        return await client.to_end()


def in_time(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SOON):
            await work

    asyncio.run(bounded())


def is_an_answer(received: bytes) -> bool:
    return received == b"" or received.startswith(b"HTTP/1.1 ")


@given(
    method=st.sampled_from(METHODS),
    host=st.sampled_from(SELVES),
    scheme=st.sampled_from(("", "", "http://", "HTTP://", "https://", "//", "file://", "http:\\\\")),
    rest=st.sampled_from(("", "/", "/x?y", "\\@example.org", "#", "%00", ":80", " HTTP/1.1")),
    head=heads,
    body=bodies,
)
@example(method="CONNECT", host="127.0.0.1", scheme="", rest="", head="Host: example.org", body=b"")
@example(method="GET", host="localhost", scheme="http://", rest="/", head="Host: example.org", body=b"")
@tried(60)
def test_no_way_of_saying_it_leads_through_the_proxy_to_this_machine(
    method: str, host: str, scheme: str, rest: str, head: str, body: bytes
) -> None:
    async def ask() -> None:
        here = Far(ok())
        diary = Diary()
        proxy = AllowListProxy(Network.FULL, (), diary.told, patience=HASTY)
        async with listening(here.serve) as own, listening(proxy.serve) as port:
            target = f"{scheme}{host}:{own}{rest}"
            received = await printed(
                port, f"{method} {target} HTTP/1.1\r\n{head}\r\n\r\n".encode("utf-8", "replace") + body
            )
        assert here.connections == 0, target
        assert is_an_answer(received)
        assert not received.startswith(b"HTTP/1.1 2")

    in_time(ask())


@given(raw=st.binary(max_size=300))
@example(raw=b"CONNECT [::1:80 HTTP/1.1\r\nHost: x\r\n\r\n")
@example(raw=b"CONNECT :::::: HTTP/1.1\r\nHost: x\r\n\r\n")
@example(raw=b"CONNECT a:99999999999999999999 HTTP/1.1\r\nHost: x\r\n\r\n")
@example(raw=b"GET http://[/ HTTP/1.1\r\nHost: x\r\n\r\n")
@example(raw=b"GET http://a:b/ HTTP/1.1\r\nHost: x\r\n\r\n")
@example(raw=b"GET http://\xe2\x84\x80/ HTTP/1.1\r\nHost: x\r\n\r\n")
@example(raw=b"GET http://" + b"a" * 5_000 + b"/ HTTP/1.1\r\nHost: x\r\n\r\n")
@example(raw=b"CONNECT " + b"a." * 2_000 + b":1 HTTP/1.1\r\nHost: x\r\n\r\n")
@tried(30)
def test_any_bytes_are_answered_by_both_gates(raw: bytes) -> None:
    async def ask() -> None:
        far = Far(ok())
        diary = Diary()
        proxy = AllowListProxy(Network.ALLOWLIST, ("example.org",), diary.told, patience=HASTY)
        async with listening(far.serve) as far_port:
            broker = Broker(
                f"http://127.0.0.1:{far_port}", "x-api-key", KEY, WORD, diary.told, patience=HASTY, calls=CALLS
            )
            for gate in (proxy, broker):
                async with listening(gate.serve) as port:
                    assert is_an_answer(await printed(port, raw))
        assert far.connections == 0

    in_time(ask())


@given(
    method=st.sampled_from(METHODS),
    target=st.sampled_from(
        ("/v1/messages", "/", "*", "//x", "/%2e%2e/x", "http://127.0.0.1/", "/\0", "/x?" + "a" * 500)
    ),
    head=heads,
    body=bodies,
)
@tried(60)
def test_the_broker_passes_on_only_what_carries_the_word_and_never_tells_the_key(
    method: str, target: str, head: str, body: bytes
) -> None:
    async def ask() -> None:
        far = Far(ok(b"the key is " + KEY.encode(), b"X-Echo: " + KEY.encode()))
        diary = Diary()
        async with listening(far.serve) as far_port:
            broker = Broker(
                f"http://127.0.0.1:{far_port}", "x-api-key", KEY, WORD, diary.told, patience=HASTY, calls=CALLS
            )
            async with listening(broker.serve) as port:
                received = await printed(port, f"{method} {target} HTTP/1.1\r\n{head}\r\n\r\n".encode() + body)
        assert is_an_answer(received)
        assert KEY.encode() not in received
        assert WORD in head or far.connections == 0
        for seen in far.seen:
            assert seen.method in {"GET", "HEAD", "POST"}
            assert WORD not in str(seen.headers)

    in_time(ask())
