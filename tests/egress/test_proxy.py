import asyncio
import contextlib
import ipaddress
import ssl
import urllib.request
from collections.abc import AsyncIterator

import psutil
import pytest
import trustme

from genba.connections.egress.addresses import AllowList, Denied, parse_entry
from genba.connections.egress.h11_connection import Patience
from genba.connections.egress.proxy import AllowListProxy
from genba.domain.errors import ConfigurationError
from genba.domain.sessions.egress import Verdict
from genba.domain.sessions.sandbox import Network
from tests.egress.places import SOON, Answer, Client, Diary, Far, listening, ok


@contextlib.asynccontextmanager
async def proxied(
    network: Network, *allow: str, patience: Patience | None = None
) -> AsyncIterator[tuple[Client, Diary, AllowListProxy, int]]:
    diary = Diary()
    proxy = AllowListProxy(network, allow, diary.told, patience=patience or Patience())
    async with listening(proxy.serve) as port, Client.at(port) as client:
        yield client, diary, proxy, port


def connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write(b"<end>")
    await writer.drain()


async def test_a_tunnel_to_an_allowed_address_carries_bytes_both_ways_and_ends_with_both() -> None:
    async with listening(echo) as far, proxied(Network.ALLOWLIST, f"127.0.0.1:{far}") as (client, diary, _, _):
        client.writer.write(connect(f"127.0.0.1:{far}") + b"sent ahead,")
        head = await client.until(b"\r\n\r\n")
        client.writer.write(bytes(range(256)) * 4000)
        client.writer.write_eof()
        back = await client.to_end()

    assert head.startswith(b"HTTP/1.1 200 ")
    assert back == b"sent ahead," + bytes(range(256)) * 4000 + b"<end>"
    assert diary.of(Verdict.ALLOWED) == [f"127.0.0.1:{far}"]


async def test_the_client_of_the_standard_library_gets_through_to_a_secure_server() -> None:
    authority, far = trustme.CA(), Far(ok(b"hello from far", b"Connection: close"))
    there, here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(there)
    authority.configure_trust(here)

    def fetch(port: int, gate: int) -> bytes:
        proxies = urllib.request.ProxyHandler({"https": f"http://127.0.0.1:{gate}"})
        opener = urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=here))
        with opener.open(f"https://localhost:{port}/x", timeout=SOON) as answer:
            return bytes(answer.read())

    async with (
        listening(far.serve, there) as port,
        proxied(Network.ALLOWLIST, f"localhost:{port}") as (_, diary, _, gate),
    ):
        assert await asyncio.to_thread(fetch, port, gate) == b"hello from far"
        with pytest.raises(OSError, match="403"):
            await asyncio.to_thread(fetch, port + 1 if port < 65535 else 1, gate)

    assert diary.of(Verdict.ALLOWED) == [f"localhost:{port}"]


async def test_an_old_client_gets_its_tunnel_too() -> None:
    async with listening(echo) as far, proxied(Network.ALLOWLIST, f"localhost:{far}") as (client, _, _, _):
        client.writer.write(f"CONNECT localhost:{far} HTTP/1.0\r\n\r\n".encode())
        await client.until(b"\r\n\r\n")
        client.writer.write(b"hello")

        assert await client.until(b"hello") == b"hello"


async def test_what_is_not_in_the_list_is_denied_reported_once_and_counted() -> None:
    async with proxied(Network.ALLOWLIST, "example.com") as (client, diary, proxy, port):
        answer = await client.ask(connect("evil.example:443"))
        async with Client.at(port) as other:
            await other.ask(connect("EVIL.example.:443"))
        async with Client.at(port) as other:
            plain = await other.ask(b"GET http://evil.example/x HTTP/1.1\r\nHost: example.com\r\n\r\n")

    assert (answer.status, plain.status) == (403, 403)
    assert b"evil.example:443" in answer.body
    assert b"sandbox.allow" in answer.body
    assert diary.of(Verdict.DENIED) == [
        "evil.example:443 it is not in sandbox.allow",
        "evil.example:80 it is not in sandbox.allow",
    ]
    assert sorted(proxy.access_log.counts.values()) == [1, 2]


async def test_endless_targets_do_not_fill_the_diary() -> None:
    async with proxied(Network.NONE) as (_, diary, proxy, port):

        async def ask(number: int) -> None:
            async with Client.at(port) as client:
                await client.ask(connect(f"h{number}.example:443"))

        for start in range(0, 540, 60):
            await asyncio.gather(*(ask(number) for number in range(start, start + 60)))

    assert len(diary.events) == 501
    assert diary.events[-1].detail == "more than can be listed one by one"
    assert sum(proxy.access_log.counts.values()) == 540


async def test_without_a_network_even_the_list_opens_nothing() -> None:
    async with listening(echo) as far, proxied(Network.NONE, f"127.0.0.1:{far}") as (client, diary, _, _):
        answer = await client.ask(connect(f"127.0.0.1:{far}"))

    assert answer.status == 403
    assert b"sandbox.network: none" in answer.body
    assert diary.of(Verdict.ALLOWED) == []


async def test_plain_requests_are_passed_on_one_by_one_on_one_connection() -> None:
    far = Far(ok(b"one", b"Keep-Alive: x", b"Connection: close"), ok(b"two", b"Connection: close"))
    async with listening(far.serve) as port, proxied(Network.ALLOWLIST, f"127.0.0.1:{port}") as (client, _, _, _):
        address = f"http://127.0.0.1:{port}"
        first = await client.ask(
            f"GET {address}/a?b=c#d HTTP/1.1\r\nHost: other\r\nProxy-Connection: keep-alive\r\n"
            "Proxy-Authorization: Basic eA==\r\nAuthorization: mine\r\n\r\n".encode()
        )
        second = await client.ask(
            f"POST {address} HTTP/1.1\r\nHost: other\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            + b"4\r\nbody\r\n0\r\n\r\n"
        )

    assert [first.body, second.body] == [b"one", b"two"]
    assert [(seen.method, seen.target, seen.body) for seen in far.seen] == [
        ("GET", "/a?b=c", b""),
        ("POST", "/", b"body"),
    ]
    assert far.seen[0].headers["host"] == f"127.0.0.1:{port}"
    assert far.seen[0].headers["authorization"] == "mine"
    assert not {"proxy-connection", "proxy-authorization"} & set(far.seen[0].names)
    assert "keep-alive" not in first.headers


def own_address() -> str:
    """An address of this machine that is not the loopback."""
    for each in psutil.net_if_addrs().values():
        for one in each:
            with contextlib.suppress(ValueError):
                address = ipaddress.ip_address(one.address)
                if address.version == 4 and not address.is_loopback:
                    return str(address)
    pytest.skip("not run: this machine has no address but the loopback")


async def test_an_address_of_this_host_is_out_of_reach() -> None:
    async with proxied(Network.FULL) as (client, diary, _, _):
        answer = await client.ask(connect(f"{own_address()}:22"))

    assert answer.status == 403
    assert b"of this host" in answer.body
    assert diary.of(Verdict.ALLOWED) == []


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "127.0.0.1",
        "127.8.9.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "0",
        "0.1.2.3",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[2001:0:808:808:0:0:80ff:fffe]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0177.0.0.1",
        "0x7f000001",
        "017700000001",
        "169.254.43518",
        "2852039166",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "168.63.129.16",
        "[fe80::1]",
        "224.0.0.251",
        "255.255.255.255",
    ],
)
async def test_the_host_and_its_cloud_are_out_of_reach_even_with_the_full_network(host: str) -> None:
    async with proxied(Network.FULL) as (client, diary, _, _):
        answer = await client.ask(connect(f"{host}:80"))

    assert answer.status == 403
    assert len(diary.of(Verdict.DENIED)) == 1


@pytest.mark.parametrize(
    ("network", "allow", "host", "allowed"),
    [
        (Network.FULL, (), "10.1", True),
        (Network.FULL, (), "8.8", True),
        (Network.FULL, (), "100.64.1", True),
        (Network.FULL, (), "64:ff9b::808:808", True),
        (Network.ALLOWLIST, ("10.1",), "10.1", True),
        (Network.ALLOWLIST, ("10.0.0.1",), "10.0.0.1", True),
        (Network.ALLOWLIST, ("*.1",), "10.1", False),
        (Network.ALLOWLIST, ("*.64.1",), "100.64.1", False),
        (Network.ALLOWLIST, ("*.8",), "8.8", True),
        (Network.ALLOWLIST, ("127.1",), "127.1", False),
        (Network.ALLOWLIST, ("127.0.0.1",), "127.0.0.1", True),
        (Network.FULL, ("127.0.0.1",), "127.0.0.1", True),
        (Network.ALLOWLIST, ("localhost",), "localhost", True),
    ],
)
async def test_which_kind_of_entry_leads_to_which_kind_of_address(
    network: Network, allow: tuple[str, ...], host: str, *, allowed: bool
) -> None:
    """Short forms such as `10.1` are names for the proxy, and the system resolves them without asking anybody."""
    table = AllowList(network, allow)
    if allowed:
        assert await table.addresses(host, 443)
    else:
        with pytest.raises(Denied):
            await table.addresses(host, 443)


@pytest.mark.parametrize(
    ("entry", "host", "port", "covered"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "example.com", 80, True),
        ("example.com", "example.com", 8443, False),
        ("example.com", "www.example.com", 443, False),
        ("example.com", "badexample.com", 443, False),
        ("example.com", "example.com.evil.org", 443, False),
        (" Example.COM. ", "example.com", 443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("example.com:8443", "example.com", 8443, True),
        ("example.com:8443", "example.com", 443, False),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("10.1.2.3", "10.1.2.3", 443, True),
        ("[FD00:0::1]:8080", "fd00::1", 8080, True),
        ("fd00::1", "fd00::1", 443, True),
    ],
)
def test_what_an_entry_covers(entry: str, host: str, port: int, *, covered: bool) -> None:
    assert parse_entry(entry).covers(host, port) is covered


@pytest.mark.parametrize(
    "entry", ["", "*", "*.", "http://a.example", "a b", "a..b", "a:0", "a:x", "a:99999", "*.10.1.2.3", "[::1"]
)
def test_an_entry_that_cannot_be_right_is_refused_at_the_start(entry: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sandbox\.allow"):
        AllowListProxy(Network.ALLOWLIST, (entry,), Diary().told)


@pytest.mark.parametrize(
    "raw",
    [
        "GET / HTTP/1.1\r\nHost: example.com",
        "GET https://example.com/ HTTP/1.1\r\nHost: example.com",
        "GET http://u:p@example.com/ HTTP/1.1\r\nHost: example.com",
        "GET http:///x HTTP/1.1\r\nHost: example.com",
        "GET http://[::1/ HTTP/1.1\r\nHost: example.com",
        "GET http://exa%6dple.com/ HTTP/1.1\r\nHost: example.com",
        "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade",
        "POST http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        "CONNECT example.com HTTP/1.1\r\nHost: example.com",
        "CONNECT example.com:0 HTTP/1.1\r\nHost: example.com",
        "CONNECT example.com:443/x HTTP/1.1\r\nHost: example.com",
        "CONNECT exa_!mple.com:443 HTTP/1.1\r\nHost: example.com",
        "CONNECT [fe80::1%25eth0]:443 HTTP/1.1\r\nHost: example.com",
        "\x16\x03\x01\x02\x00",
    ],
)
async def test_what_is_no_request_to_a_proxy_is_refused(raw: str) -> None:
    async with proxied(Network.FULL, "127.0.0.1:1") as (client, diary, _, _):
        answer = await client.ask(f"{raw}\r\n\r\n".encode("latin-1"))

    assert answer.status == 400
    assert diary.of(Verdict.ALLOWED) == []


async def test_a_host_is_left_through_a_parent_proxy_that_its_user_chose() -> None:
    """`8.8` is a public address in short, which the system resolves without asking anybody."""
    asked: list[bytes] = []

    async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        connects = asked[-1].startswith(b"CONNECT")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello" if connects else ok(b"hello", b"Connection: close"))

    async with listening(parent) as port, listening(echo) as local:
        named = {"https_proxy": f"http://u:p@127.0.0.1:{port}", "HTTP_PROXY": f"127.0.0.1:{port}"}
        named["GENBA_PARENT_PROXY"] = "environment"
        diary = Diary()
        proxy = AllowListProxy(Network.ALLOWLIST, ("8.8", f"127.0.0.1:{local}"), diary.told, environment=named)
        async with listening(proxy.serve) as gate, Client.at(gate) as first, Client.at(gate) as other:
            first.writer.write(connect("8.8:443"))
            tunnel = await first.until(b"hello")
            plain = await other.ask(b"GET http://8.8/x HTTP/1.1\r\nHost: x\r\n\r\n")
            async with Client.at(gate) as third, Client.at(gate) as fourth:
                denied = await third.ask(connect("9.9:443"))
                fourth.writer.write(connect(f"127.0.0.1:{local}") + b"near by")
                await fourth.until(b"near by")

    assert tunnel.startswith(b"HTTP/1.1 200 ")
    assert (plain.body, denied.status) == (b"hello", 403)
    assert [head.split(b"\r\n")[0] for head in asked] == [b"CONNECT 8.8:443 HTTP/1.1", b"GET http://8.8/x HTTP/1.1"]
    assert b"proxy-authorization: Basic dTpw" in asked[0]
    assert diary.of(Verdict.ALLOWED) == ["8.8:443", "8.8:80", f"127.0.0.1:{local}"]


async def test_a_proxy_of_the_environment_is_not_used_without_the_users_word() -> None:
    """Every name is resolved and checked here: a name of the metadata service that only a parent could resolve too."""
    asked: list[bytes] = []

    async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")

    async with listening(parent) as port:
        way = f"http://127.0.0.1:{port}"
        names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
        diary = Diary()
        allow = ("internal.invalid", "*.internal.invalid")
        proxy = AllowListProxy(Network.FULL, allow, diary.told, environment=dict.fromkeys(names, way))
        async with listening(proxy.serve) as gate:
            for raw in (
                connect("internal.invalid:443"),
                connect("metadata.internal.invalid:443"),
                b"GET http://internal.invalid/latest/meta-data HTTP/1.1\r\nHost: x\r\n\r\n",
            ):
                async with Client.at(gate) as client:
                    assert (await client.ask(raw)).status == 502
    assert asked == []
    assert all("GENBA_PARENT_PROXY=environment" in message for message in diary.of(Verdict.FAILED))


def test_a_proxy_of_the_host_that_cannot_be_spoken_to_is_refused_at_the_start_without_its_password() -> None:
    with pytest.raises(ConfigurationError) as refused:
        AllowListProxy(Network.FULL, (), Diary().told, environment={"GENBA_PARENT_PROXY": "https://me:secret@p:1"})

    assert "secret" not in str(refused.value)


async def test_a_proxy_of_the_host_that_is_not_there_is_reported() -> None:
    async with listening(echo) as free:
        pass
    diary = Diary()
    named = {"GENBA_PARENT_PROXY": f"http://127.0.0.1:{free}"}
    proxy = AllowListProxy(Network.FULL, (), diary.told, environment=named)
    async with listening(proxy.serve) as gate, Client.at(gate) as client:
        answer = await client.ask(connect("8.8:443"))

    assert answer.status == 502
    assert diary.of(Verdict.FAILED)[0].startswith("8.8:443 the proxy of the host: no connection")


async def test_a_far_side_that_is_not_there_is_reported() -> None:
    async with listening(echo) as free:
        pass
    async with proxied(Network.ALLOWLIST, f"127.0.0.1:{free}") as (client, diary, _, _):
        answer = await client.ask(connect(f"127.0.0.1:{free}"))

    assert answer.status == 502
    assert diary.of(Verdict.FAILED)[0].startswith(f"127.0.0.1:{free} no connection")


async def test_an_idle_tunnel_is_closed() -> None:
    closed = asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        closed.set()

    patience = Patience(tunnel=0.2)
    async with (
        listening(far) as port,
        proxied(Network.ALLOWLIST, f"127.0.0.1:{port}", patience=patience) as (client, _, _, _),
    ):
        client.writer.write(connect(f"127.0.0.1:{port}"))
        await client.until(b"\r\n\r\n")
        assert await client.to_end() == b""
        async with asyncio.timeout(SOON):
            await closed.wait()


async def test_an_instance_that_goes_away_closes_its_tunnel() -> None:
    closed = asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass
        closed.set()

    async with listening(far) as port, proxied(Network.ALLOWLIST, f"127.0.0.1:{port}") as (client, _, _, _):
        client.writer.write(connect(f"127.0.0.1:{port}"))
        await client.until(b"\r\n\r\n")
        client.writer.transport.abort()
        async with asyncio.timeout(SOON):
            await closed.wait()


async def test_garbage_from_one_does_not_disturb_another() -> None:
    far = Far(ok(b"fine", b"Connection: close"))
    async with listening(far.serve) as port, proxied(Network.ALLOWLIST, f"127.0.0.1:{port}") as (_, _, _, gate):

        async def noise(seed: int) -> Answer:
            async with Client.at(gate) as client:
                return await client.ask(bytes((seed * 31 + n * n) % 256 for n in range(3000)) + b"\r\n\r\n")

        async def question() -> Answer:
            async with Client.at(gate) as client:
                return await client.ask(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())

        answers = await asyncio.gather(*(noise(n) for n in range(20)), *(question() for _ in range(10)))

    assert {answer.status for answer in answers[:20]} <= {0, 400}
    assert [answer.body for answer in answers[20:]] == [b"fine"] * 10
