"""The way from the broker to the upstream: certificates, proxies of the host, addresses."""

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest
import trustme

from genba.connections.egress.broker import Broker
from genba.connections.egress.upstream import proxy_for
from genba.domain.errors import ConfigurationError
from genba.domain.sessions.egress import Verdict
from tests.egress.brokered import CALLS, KEY, WORD, get, post
from tests.egress.places import Client, Diary, Far, listening, ok


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
        broker = Broker(f"https://127.0.0.1:{far_port}/api", "authorization", KEY, WORD, diary.told, calls=CALLS)
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
        broker = Broker(f"https://127.0.0.1:{far_port}", "authorization", KEY, WORD, diary.told, calls=CALLS)
        async with listening(broker.serve) as port, Client.at(port) as client:
            answer = await client.ask(get())

    assert answer.status == 502
    assert far.seen == []
    [result] = diary.of(Verdict.FAILED)
    assert "no trusted connection" in result


async def test_a_plain_upstream_behind_the_proxy_of_the_host_is_asked_for_by_its_whole_address() -> None:
    parent, diary = Far(ok(b"via")), Diary()
    async with listening(parent.serve) as parent_port:
        proxy = f"http://me:p%40ss@127.0.0.1:{parent_port}"
        broker = Broker("http://model.example/api", "x-api-key", KEY, WORD, diary.told, proxy=proxy, calls=CALLS)
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
            broker = Broker("https://model.example/api", "x-api-key", KEY, WORD, diary.told, proxy=proxy, calls=CALLS)
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
        broker = Broker("https://model.example", "x-api-key", KEY, WORD, diary.told, proxy=proxy, calls=CALLS)
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
        Broker(upstream, "x-api-key", secret, WORD, Diary().told, calls=CALLS)

    assert not secret or secret not in str(refused.value)
