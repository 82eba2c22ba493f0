import asyncio
import contextlib
import hashlib
import json

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.connections.egress.broker import Broker
from genba.connections.egress.exchange import SecretScrubber
from genba.connections.egress.h11_connection import Patience
from genba.connections.egress.model_calls import calls_of
from genba.connections.egress.session_token import new_token
from genba.domain.errors import ConfigurationError
from genba.domain.sessions.egress import Verdict
from tests.egress.brokered import CALLS, KEY, WORD, get, post, session
from tests.egress.places import SOON, Client, Diary, Far, listening, ok, read_request


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
async def test_a_client_without_the_token_is_refused_and_informed(line: str) -> None:
    far = Far(ok())
    async with session(far.serve) as here:
        answer = await here.client.ask(f"GET /v1/models HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode())
        async with Client.at(here.port) as other:
            again = await other.ask(get(token="wrong"))

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
        head = (
            f"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: {WORD}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
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
        writer.write(post(b"", path="/v1/messages").replace(b"Content-Length: 0", b"Content-Length: 999000000"))
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
        both = get("/v1/models/a") + get("/v1/models/b")
        bodies.append((await here.client.ask(both)).body)
        bodies.append((await here.client.answer()).body)

    assert bodies == [b"one", b"two", b"three", b"three"]
    assert [seen.target for seen in far.seen] == ["/v1/models", "/v1/messages", "/v1/models/a", "/v1/models/b"]
    assert far.connections == 1


async def test_a_closed_connection_to_the_upstream_is_opened_again() -> None:
    asked = 0

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await read_request(h11.Connection(h11.SERVER), reader)
        asked += 1
        writer.write(ok(b"%d" % asked, b"Connection: close"))

    async with session(far) as here:
        answers = [await here.client.ask(get()) for _ in range(3)]

    assert [answer.body for answer in answers] == [b"1", b"2", b"3"]


async def test_an_upstream_that_closes_silently_in_a_pause_is_dialled_again() -> None:
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


async def test_an_old_version_without_a_distinct_end_is_refused() -> None:
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


async def test_a_sandbox_that_ends_cancels_the_request_at_the_upstream() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(h11.Connection(h11.SERVER), reader)
        asked.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        gone.set()

    async with listening(far) as far_port:
        broker = Broker(f"http://127.0.0.1:{far_port}", "x-api-key", KEY, WORD, Diary().told, calls=CALLS)
        async with asyncio.timeout(SOON):
            async with listening(broker.serve) as port, Client.at(port) as client:
                client.writer.write(get())
                await asked.wait()
            await gone.wait()


async def test_an_upstream_that_is_not_there_is_a_bad_gateway() -> None:
    async with listening(Far(ok()).serve) as free:
        pass
    diary = Diary()
    broker = Broker(f"http://127.0.0.1:{free}", "x-api-key", KEY, WORD, diary.told, calls=CALLS)
    async with listening(broker.serve) as port, Client.at(port) as client:
        answer = await client.ask(get())

    assert answer.status == 502
    assert "could not be reached" in json.loads(answer.body)["error"]["message"]
    [result] = diary.of(Verdict.FAILED)
    assert result.startswith(f"127.0.0.1:{free} ")


async def test_an_upstream_that_keeps_silent_is_a_gateway_timeout() -> None:
    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with session(far, patience=Patience(answer=0.2)) as here:
        answer = await here.client.ask(get())

    assert answer.status == 504


async def test_an_early_answer_reaches_an_instance_that_is_still_sending() -> None:
    received = asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmuch")
        await received.wait()

    async with session(far) as here:
        answer = await here.client.ask(post(b"x" * 20_000_000))
        received.set()

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
        fixed = await here.client.ask(get("/v1/models/a", "Accept-Encoding: gzip"))
        flowing = await here.client.ask(get("/v1/models/b"))

    blot = "*" * len(KEY)
    assert fixed.body == f"key={blot}.".encode()
    assert fixed.whole
    assert fixed.headers["x-echo"] == f"<{blot}>"
    assert not {"set-cookie", "alt-svc"} & set(fixed.headers)
    assert flowing.body == f"you sent {blot} and {blot}{KEY[:-1]}!".encode()
    assert flowing.reason == f"Hello {blot}".encode()
    assert far.seen[0].headers["accept-encoding"] == "identity"


@given(st.text("ab*", min_size=1, max_size=5), st.lists(st.text("ab*", max_size=9)))
def test_a_secret_is_blotted_out_wherever_it_is_cut(secret: str, pieces: list[str]) -> None:
    mask = SecretScrubber(secret.encode())
    passed = [mask.over(piece.encode()) for piece in pieces] + [mask.rest()]

    whole = "".join(pieces)
    assert len(b"".join(passed)) == len(whole)
    if "*" not in secret:
        assert b"".join(passed).decode() == whole.replace(secret, "*" * len(secret))


def test_words_are_long_and_never_the_same() -> None:
    words = {new_token() for _ in range(100)}

    assert len(words) == 100
    assert min(map(len, words)) > 40


# ── only calls of a model ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("provider", "prefix", "method", "path"),
    [
        ("anthropic", "", "POST", "/v1/messages"),
        ("anthropic", "", "POST", "/v1/messages?beta=true"),
        ("anthropic", "", "POST", "/v1/messages/count_tokens"),
        ("anthropic", "", "GET", "/v1/models"),
        ("anthropic", "", "GET", "/v1/models/claude-sonnet-5"),
        ("anthropic", "/v1", "POST", "/messages"),
        ("openai", "/v1", "POST", "/responses"),
        ("openai", "/v1", "POST", "/responses/compact"),
        ("openai", "/v1", "POST", "/chat/completions"),
        ("openai", "", "POST", "/v1/chat/completions"),
        ("openai", "/v1", "GET", "/models?client_version=1"),
        ("openrouter", "/api/v1", "POST", "/chat/completions"),
        ("google", "", "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
        ("google", "/v1beta", "POST", "/models/gemini-2.5-pro:generateContent"),
        ("mine", "/x", "POST", "/v1/messages"),
        ("mine", "/x", "POST", "/chat/completions"),
    ],
)
async def test_calls_of_a_model_are_passed_on(provider: str, prefix: str, method: str, path: str) -> None:
    far = Far(ok(b"{}"))
    async with session(far.serve, prefix=prefix, calls=calls_of(provider, {})) as there:
        raw = get(path) if method == "GET" else post(b"{}", path=path)
        assert (await there.client.ask(raw)).status == 200
    assert [seen.target for seen in far.seen] == [prefix + path]


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "google", "mine"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/files"),
        ("POST", "/v1/files"),
        ("GET", "/v1/files/file-1/content"),
        ("POST", "/v1/messages/batches"),
        ("GET", "/v1/messages/batches"),
        ("POST", "/v1/batches"),
        ("POST", "/v1/fine_tuning/jobs"),
        ("GET", "/v1/organizations/me"),
        ("GET", "/v1/organizations/api_keys"),
        ("GET", "/v1/organization/admin_api_keys"),
        ("GET", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/vector_stores"),
        ("POST", "/v1/assistants"),
        ("GET", "/v1/skills"),
        ("POST", "/v1/uploads"),
        ("GET", "/v1/auth/key"),
        ("GET", "/v1beta/cachedContents"),
        ("POST", "/v1beta/models/gemini-2.5-pro:batchGenerateContent"),
        ("GET", "/"),
        ("GET", "/v1"),
        ("GET", "/v1/"),
        ("GET", "/v1/messages"),
        ("POST", "/v1/models"),
        ("POST", "/api/event_logging/batch"),
        ("POST", "//v1/messages"),
        ("POST", "/v1//messages"),
        ("POST", "/v1/messages/"),
        ("POST", "/v1/messages;x"),
        ("POST", "/V1/messages"),
        ("POST", "/v1%2fmessages"),
        ("POST", "/v1/%6dessages"),
        ("POST", "/v1/messages%3f/../files"),
        ("POST", "/v1/files/../messages"),
        ("POST", "/v1/messages/../files"),
        ("POST", "/v1/messages/%2e%2e/files"),
        ("POST", "/v1/messages\\..\\files"),
        ("GET", "/v1/models/../files"),
        ("GET", "/v1/models/a/b"),
        ("POST", "http://evil.example/v1/messages"),
    ],
)
async def test_nothing_else_gets_the_key(provider: str, method: str, path: str) -> None:
    far = Far(ok(b"{}"))
    async with session(far.serve, calls=calls_of(provider, {})) as there:
        raw = get(path) if method == "GET" else post(b"{}", path=path)
        answer = await there.client.ask(raw)
        assert answer.status in {400, 403}
        result = there.diary.of(Verdict.DENIED)
    assert far.seen == []
    assert len(result) == 1
    assert KEY not in result[0] + answer.body.decode()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_no_other_method_gets_the_key(method: str) -> None:
    far = Far(ok(b"{}"))
    async with session(far.serve) as there:
        raw = get("/v1/models").replace(b"GET", method.encode(), 1)
        assert (await there.client.ask(raw)).status == 405
    assert far.seen == []


async def test_more_calls_are_named_by_the_user_in_the_environment() -> None:
    far = Far(ok(b"{}"))
    named = calls_of("mine", {"GENBA_MODEL_CALLS": "POST /v1/rerank, GET /v1/credits"})
    async with session(far.serve, calls=named) as there:
        assert (await there.client.ask(post(b"{}", path="/v1/rerank"))).status == 200
        assert (await there.client.ask(get("/v1/rerank"))).status == 403
    for wrong in ("/v1/rerank", "DELETE /v1/files", "POST /v1/../files", "POST /v1/a?b", "POST *"):
        with pytest.raises(ConfigurationError, match="GENBA_MODEL_CALLS"):
            calls_of("mine", {"GENBA_MODEL_CALLS": wrong})
