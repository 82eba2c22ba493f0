"""The broker: the key goes to the one upstream, and to nobody else."""

import asyncio
import contextlib
import hashlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import h11
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from genba.connections.gates.broker import Broker, new_word
from genba.connections.gates.events import GateEvent, Verdict
from genba.connections.gates.exchange import Mask
from genba.connections.gates.upstream import proxy_for
from genba.connections.gates.wire import Patience
from genba.domain.errors import ConfigurationError
from tests.gates.places import SOON, Client, Diary, Far, Serve, listening, ok, read_request

KEY = "sk-real-7d1f0c2b9a"
WORD = "genba-0123456789abcdef0123456789abcdef0123456789abcdef"


class Session:
    """A client at the port of a broker that leads to some server."""

    def __init__(self, client: Client, port: int, diary: Diary, far_port: int) -> None:
        self.client = client
        self.port = port
        self.diary = diary
        self.target = f"127.0.0.1:{far_port}"


@contextlib.asynccontextmanager
async def session(
    far: Serve, *, prefix: str = "", header: str = "x-api-key", patience: Patience | None = None
) -> AsyncIterator[Session]:
    diary = Diary()
    async with listening(far) as far_port:
        url = f"http://127.0.0.1:{far_port}{prefix}"
        broker = Broker(url, header, KEY, WORD, diary.told, patience=patience or Patience())
        async with listening(broker.serve) as port, Client.at(port) as client:
            yield Session(client, port, diary, far_port)


def get(path: str = "/v1/models", *lines: str, word: str = WORD) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", f"X-Api-Key: {word}", *lines, "", ""]).encode()


def post(body: bytes, *lines: str, path: str = "/v1/messages") -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"X-Api-Key: {WORD}", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


async def test_the_upstream_gets_the_key_in_the_place_of_the_word() -> None:
    far = Far(ok(b'{"answer": 42}'))
    async with session(far.serve, prefix="/s/x/") as here:
        answer = await here.client.ask(
            post(b'{"q": 1}', "Cookie: a=b", "Connection: X-Hop", "X-Hop: 1", "X-Note: " + WORD, "Accept: */*")
        )

    assert (answer.status, answer.body, answer.whole) == (200, b'{"answer": 42}', True)
    [seen] = far.seen
    assert (seen.method, seen.target, seen.body) == ("POST", "/s/x/v1/messages", b'{"q": 1}')
    assert seen.headers["host"] == here.target
    assert seen.headers["x-api-key"] == KEY
    assert seen.headers["accept"] == "*/*"
    assert not {"cookie", "x-hop", "x-note", "connection"} & set(seen.names)
    assert WORD not in str(seen.headers)
    assert here.diary.of(Verdict.ALLOWED) == [here.target]


@pytest.mark.parametrize("line", [f"X-Api-Key: {WORD}", f"Authorization: Bearer {WORD}", f"x-goog-api-key: {WORD}"])
async def test_the_word_is_taken_from_any_place_where_tools_put_keys(line: str) -> None:
    far = Far(ok())
    async with session(far.serve, header="authorization") as here:
        answer = await here.client.ask(f"GET /v1/models HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode())

    assert answer.status == 200
    assert far.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert far.seen[0].names.count("authorization") == 1
    assert "x-api-key" not in far.seen[0].names


@pytest.mark.parametrize(
    "line", ["X-Nothing: 1", "X-Api-Key: wrong", f"X-Api-Key: {WORD}0", "X-Api-Key: schlüssel", f"Cookie: {WORD}"]
)
async def test_who_does_not_show_the_word_is_refused_and_told(line: str) -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        answer = await here.client.ask(f"GET /v1/models HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode())
        async with Client.at(here.port) as other:
            again = await other.ask(get(word="wrong"))

    assert (answer.status, again.status) == (401, 401)
    assert json.loads(answer.body)["error"]["type"] == "authentication_error"
    assert far.connections == 0
    assert here.diary.of(Verdict.DENIED) == [
        f"{here.target} the word of this session was not shown in the place of the key"
    ]


async def test_events_of_a_stream_arrive_one_by_one() -> None:
    first_was_read = asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(h11.Connection(h11.SERVER), reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"d\r\ndata: first\n\n\r\n")
        await first_was_read.wait()
        writer.write(b"e\r\ndata: second\n\n\r\n0\r\n\r\n")

    async with session(far) as here:
        here.client.writer.write(post(b"{}"))
        early = await here.client.until(b"first\n\n")
        first_was_read.set()
        late = await here.client.until(b"0\r\n\r\n")

    assert b"text/event-stream" in early
    assert b"data: second" in late


async def test_big_bodies_pass_both_ways_in_pieces() -> None:
    sent = bytes(range(256)) * 40_000
    far = Far(ok(sent))
    async with session(far.serve) as here:
        chunks = b"".join(
            b"%x\r\n%b\r\n" % (len(part), part)
            for part in (sent[at : at + 300_000] for at in range(0, len(sent), 300_000))
        )
        head = f"POST /v1/files HTTP/1.1\r\nHost: x\r\nX-Api-Key: {WORD}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        answer = await here.client.ask(head + chunks + b"0\r\n\r\n")

    assert hashlib.sha256(far.seen[0].body).digest() == hashlib.sha256(sent).digest()
    assert answer.body == sent
    assert answer.whole


async def test_a_body_waits_at_the_instance_while_the_upstream_does_not_read() -> None:
    closing = asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await closing.wait()

    async with session(far) as here:
        writer, taken, piece = here.client.writer, 0, b"x" * 1_000_000
        writer.write(post(b"", path="/v1/files").replace(b"Content-Length: 0", b"Content-Length: 999000000"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                while taken < 200:
                    writer.write(piece)
                    await writer.drain()
                    taken += 1
        writer.transport.abort()
        closing.set()

    assert taken < 100, "the broker took in a body that nobody reads"


async def test_one_connection_carries_many_requests_over_one_connection() -> None:
    far = Far(ok(b"one"), ok(b"two"), ok(b"three"))
    async with session(far.serve) as here:
        bodies = [(await here.client.ask(get())).body, (await here.client.ask(post(b"x"))).body]
        both = get("/v1/a") + get("/v1/b")
        bodies.append((await here.client.ask(both)).body)
        bodies.append((await here.client.answer()).body)

    assert bodies == [b"one", b"two", b"three", b"three"]
    assert [seen.target for seen in far.seen] == ["/v1/models", "/v1/messages", "/v1/a", "/v1/b"]
    assert far.connections == 1


async def test_a_closed_connection_to_the_upstream_is_opened_anew() -> None:
    asked = 0

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await read_request(h11.Connection(h11.SERVER), reader)
        asked += 1
        writer.write(ok(b"%d" % asked, b"Connection: close"))

    async with session(far) as here:
        answers = [await here.client.ask(get()) for _ in range(3)]

    assert [answer.body for answer in answers] == [b"1", b"2", b"3"]


async def test_an_upstream_that_closes_in_a_pause_without_a_word_is_dialled_anew() -> None:
    closed, connections = asyncio.Event(), 0

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_request(h11.Connection(h11.SERVER), reader)
        writer.write(ok(b"%d" % connections))
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        closed.set()

    async with session(far) as here:
        first = await here.client.ask(get())
        async with asyncio.timeout(SOON):
            await closed.wait()
        second = await here.client.ask(get())

    assert (first.body, second.body) == (b"1", b"2")


async def test_an_instance_that_goes_away_ends_the_request_at_the_upstream() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(h11.Connection(h11.SERVER), reader)
        asked.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        gone.set()

    async with session(far) as here:
        here.client.writer.write(post(b"{}"))
        async with asyncio.timeout(SOON):
            await asked.wait()
            here.client.writer.close()
            await gone.wait()


@pytest.mark.parametrize(
    "part",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf",
    ],
)
async def test_an_answer_that_breaks_off_does_not_look_whole(part: bytes) -> None:
    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(h11.Connection(h11.SERVER), reader)
        writer.write(part)

    async with session(far) as here:
        answer = await here.client.ask(get())

    assert (answer.status, answer.whole) == (200, False)
    assert answer.body == b"half"
    assert here.diary.of(Verdict.FAILED)


async def test_an_old_version_in_which_no_end_can_be_told_from_a_cut_is_refused() -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        answer = await here.client.ask(get().replace(b"HTTP/1.1", b"HTTP/1.0"))

    assert answer.status == 505
    assert far.connections == 0


async def test_an_answer_without_a_length_ends_where_the_upstream_ends() -> None:
    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(h11.Connection(h11.SERVER), reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nold and whole")

    async with session(far) as here:
        answers = [await here.client.ask(get()), await here.client.ask(get())]

    assert [(answer.body, answer.whole) for answer in answers] == [(b"old and whole", True)] * 2


async def test_walls_that_come_down_end_the_request_at_the_upstream() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(h11.Connection(h11.SERVER), reader)
        asked.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        gone.set()

    async with listening(far) as far_port:
        broker = Broker(f"http://127.0.0.1:{far_port}", "x-api-key", KEY, WORD, Diary().told)
        async with asyncio.timeout(SOON):
            async with listening(broker.serve) as port, Client.at(port) as client:
                client.writer.write(get())
                await asked.wait()
            await gone.wait()


async def test_an_upstream_that_is_not_there_is_a_bad_gateway() -> None:
    async with listening(Far(ok()).serve) as free:
        pass
    diary = Diary()
    broker = Broker(f"http://127.0.0.1:{free}", "x-api-key", KEY, WORD, diary.told)
    async with listening(broker.serve) as port, Client.at(port) as client:
        answer = await client.ask(get())

    assert answer.status == 502
    assert "could not be reached" in json.loads(answer.body)["error"]["message"]
    [told] = diary.of(Verdict.FAILED)
    assert told.startswith(f"127.0.0.1:{free} ")


async def test_an_upstream_that_keeps_silent_is_a_gateway_timeout() -> None:
    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with session(far, patience=Patience(answer=0.2)) as here:
        answer = await here.client.ask(get())

    assert answer.status == 504


async def test_an_early_answer_reaches_an_instance_that_is_still_sending() -> None:
    heard = asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmuch")
        await heard.wait()

    async with session(far) as here:
        answer = await here.client.ask(post(b"x" * 20_000_000))
        heard.set()

    assert (answer.status, answer.body) == (413, b"much")


async def test_an_instance_that_waits_to_be_asked_for_its_body_is_asked() -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        whole = post(b"body", "Expect: 100-continue")
        here.client.writer.write(whole[:-4])
        await here.client.until(b"100 Continue\r\n\r\n")
        answer = await here.client.ask(b"body")

    assert answer.status == 200
    assert far.seen[0].body == b"body"
    assert "expect" not in far.seen[0].names


async def test_a_head_is_asked_for_and_its_answer_has_no_body() -> None:
    far = Far(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
    async with session(far.serve) as here:
        answers = [
            await here.client.ask(get().replace(b"GET", b"HEAD", 1), method=b"HEAD"),
            await here.client.ask(get("/../x").replace(b"GET", b"HEAD", 1), method=b"HEAD"),
        ]

    assert [(answer.status, answer.body) for answer in answers] == [(200, b""), (400, b"")]
    assert answers[0].headers["content-length"] == "1234"


async def test_a_key_that_the_upstream_echoes_does_not_come_back() -> None:
    pieces = [f"you sent {KEY[:5]}".encode(), f"{KEY[5:]} and {KEY}{KEY[:-1]}".encode(), b"!"]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    far = Far(
        ok(f"key={KEY}.".encode(), f"X-Echo: <{KEY}>".encode(), b"Set-Cookie: s=1", b"Alt-Svc: h3"),
        b"HTTP/1.1 200 Hello %b\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % (KEY.encode(), chunks),
    )
    async with session(far.serve) as here:
        fixed = await here.client.ask(get("/v1/a", "Accept-Encoding: gzip"))
        flowing = await here.client.ask(get("/v1/b"))

    blot = "*" * len(KEY)
    assert fixed.body == f"key={blot}.".encode()
    assert fixed.whole
    assert fixed.headers["x-echo"] == f"<{blot}>"
    assert not {"set-cookie", "alt-svc"} & set(fixed.headers)
    assert flowing.body == f"you sent {blot} and {blot}{KEY[:-1]}!".encode()
    assert flowing.reason == f"Hello {blot}".encode()
    assert far.seen[0].headers["accept-encoding"] == "identity"


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


@pytest.mark.parametrize("target", ["/", "/v1/models?beta=true&x=../..", "/v1/a..b/.c", "/v1/100%25", "//x"])
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
            ignored = await other.ask(get("/v1/a", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"))

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
        await here.client.ask(get("/v1/a", "X-Fold: a", "  X-Api-Key: evil"))

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
    def full(event: GateEvent) -> None:
        raise OSError(28, "No space left on device")

    far = Far(ok())
    async with listening(far.serve) as far_port:
        broker = Broker(f"http://127.0.0.1:{far_port}", "x-api-key", KEY, WORD, full)
        async with listening(broker.serve) as port, Client.at(port) as client:
            answer = await client.ask(get())

    assert answer.status == 0
    assert far.connections == 0


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """A certificate authority that this machine trusts, for the time of a test."""
    made = trustme.CA()
    roots = tmp_path / "roots.pem"
    made.cert_pem.write_to_path(roots)
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    return made


def _server_side(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


async def test_a_secure_upstream_is_reached_and_its_name_is_checked(authority: trustme.CA) -> None:
    far, diary = Far(ok(b"secret talk")), Diary()
    async with listening(far.serve, _server_side(authority, "127.0.0.1")) as far_port:
        broker = Broker(f"https://127.0.0.1:{far_port}/api", "authorization", KEY, WORD, diary.told)
        async with listening(broker.serve) as port, Client.at(port) as client:
            answers = [await client.ask(get()), await client.ask(post(b"x" * 3_000_000))]

    assert [answer.body for answer in answers] == [b"secret talk"] * 2
    assert far.connections == 1
    assert far.seen[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("name", ["other.example", None])
async def test_an_upstream_that_is_not_trusted_does_not_get_the_key(authority: trustme.CA, name: str | None) -> None:
    far, diary = Far(ok()), Diary()
    issuer = authority if name else trustme.CA()
    async with listening(far.serve, _server_side(issuer, name or "127.0.0.1")) as far_port:
        broker = Broker(f"https://127.0.0.1:{far_port}", "authorization", KEY, WORD, diary.told)
        async with listening(broker.serve) as port, Client.at(port) as client:
            answer = await client.ask(get())

    assert answer.status == 502
    assert far.seen == []
    [told] = diary.of(Verdict.FAILED)
    assert "no trusted connection" in told


async def test_a_plain_upstream_behind_the_proxy_of_the_host_is_asked_for_by_its_whole_address() -> None:
    parent, diary = Far(ok(b"via")), Diary()
    async with listening(parent.serve) as parent_port:
        proxy = f"http://me:p%40ss@127.0.0.1:{parent_port}"
        broker = Broker("http://model.example/api", "x-api-key", KEY, WORD, diary.told, proxy=proxy)
        async with listening(broker.serve) as port, Client.at(port) as client:
            answer = await client.ask(get("/v1/models?a=b"))

    assert answer.body == b"via"
    assert parent.seen[0].target == "http://model.example:80/api/v1/models?a=b"
    assert parent.seen[0].headers["host"] == "model.example"
    assert parent.seen[0].headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


async def test_a_secure_upstream_behind_the_proxy_of_the_host_is_reached_through_a_tunnel(
    authority: trustme.CA,
) -> None:
    deep = b"deep" * 2_500_000
    far, diary, asked = Far(ok(deep)), Diary(), []
    async with listening(far.serve, _server_side(authority, "model.example")) as far_port:

        async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", far_port)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

        async with listening(parent) as parent_port:
            proxy = f"127.0.0.1:{parent_port}"
            broker = Broker("https://model.example/api", "x-api-key", KEY, WORD, diary.told, proxy=proxy)
            async with listening(broker.serve) as port, Client.at(port) as client:
                answer = await client.ask(get())

    assert answer.body == deep
    assert asked[0].startswith(b"CONNECT model.example:443 HTTP/1.1\r\n")
    assert KEY.encode() not in asked[0]
    assert far.seen[0].target == "/api/v1/models"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def test_a_proxy_of_the_host_that_says_no_is_named() -> None:
    parent, diary = Far(b"HTTP/1.1 407 Who Are You\r\nContent-Length: 0\r\n\r\n"), Diary()
    async with listening(parent.serve) as parent_port:
        proxy = f"http://127.0.0.1:{parent_port}"
        broker = Broker("https://model.example", "x-api-key", KEY, WORD, diary.told, proxy=proxy)
        async with listening(broker.serve) as port, Client.at(port) as client:
            answer = await client.ask(get())

    assert answer.status == 502
    assert "the proxy of the host answered 407" in diary.of(Verdict.FAILED)[0]


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://a.example/v1", {"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://q:1"}, "http://p:1"),
        ("https://a.example/v1", {"HTTPS_PROXY": "http://p:1", "https_proxy": "http://r:1"}, "http://r:1"),
        ("http://a.example/v1", {"HTTP_PROXY": "http://q:1"}, "http://q:1"),
        ("https://a.example", {"HTTP_PROXY": "http://q:1"}, ""),
        ("https://a.example", {"ALL_PROXY": "http://q:1"}, "http://q:1"),
        ("https://a.example", {"ALL_PROXY": "socks5://q:1"}, ""),
        ("https://a.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "b.example, a.example"}, ""),
        ("https://x.a.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".a.example"}, ""),
        ("https://xa.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example"}, "http://p:1"),
        ("http://127.0.0.1:4711/s", {"HTTP_PROXY": "http://q:1", "NO_PROXY": "127.0.0.1:4711"}, ""),
        ("http://127.0.0.1:4711/s", {"HTTP_PROXY": "http://q:1", "NO_PROXY": "*"}, ""),
    ],
)
def test_the_proxy_of_the_host_is_found_as_every_tool_finds_it(
    url: str, environment: dict[str, str], proxy: str
) -> None:
    assert proxy_for(url, environment) == proxy


@pytest.mark.parametrize(
    ("upstream", "secret"),
    [
        ("ftp://a.example", KEY),
        ("https://user:pw@a.example", KEY),
        ("https://a.example?x=1", KEY),
        ("https://", KEY),
        ("https://a.example:99999", KEY),
        ("https://a.example/ x", KEY),
        ("https://a.example", ""),
        ("https://a.example", "line\r\nX-Evil: 1"),
        ("https://a.example", "clé-secrète"),
    ],
)
def test_an_address_or_a_key_that_cannot_be_right_is_refused_without_showing_it(upstream: str, secret: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Broker(upstream, "x-api-key", secret, WORD, Diary().told)

    assert not secret or secret not in str(refused.value)


@given(st.text("ab*", min_size=1, max_size=5), st.lists(st.text("ab*", max_size=9)))
def test_a_secret_is_blotted_out_wherever_it_is_cut(secret: str, pieces: list[str]) -> None:
    mask = Mask(secret.encode())
    passed = [mask.over(piece.encode()) for piece in pieces] + [mask.rest()]

    whole = "".join(pieces)
    assert len(b"".join(passed)) == len(whole)
    if "*" not in secret:
        assert b"".join(passed).decode() == whole.replace(secret, "*" * len(secret))


def test_words_are_long_and_never_the_same() -> None:
    words = {new_word() for _ in range(100)}

    assert len(words) == 100
    assert min(map(len, words)) > 40
