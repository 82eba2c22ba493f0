"""The forward: one port of the host, and no other."""

import asyncio
import contextlib

from genba.connections.egress.port_forward import Forward
from genba.domain.sessions.egress import Verdict
from tests.egress.places import SOON, Client, Diary, listening
from tests.egress.test_proxy import echo


async def test_bytes_go_to_the_one_address_and_come_back() -> None:
    diary = Diary()
    async with (
        listening(echo) as far,
        listening(Forward("127.0.0.1", far, diary.told).serve) as port,
        Client.at(port) as client,
    ):
        client.writer.write(b"\x00\xff" * 500_000)
        client.writer.write_eof()
        back = await client.to_end()

    assert back == b"\x00\xff" * 500_000 + b"<end>"
    assert diary.of(Verdict.ALLOWED) == [f"127.0.0.1:{far}"]


async def test_a_server_that_speaks_first_and_closes_first_is_received() -> None:
    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"welcome, and good bye")

    async with (
        listening(far) as far_port,
        listening(Forward("127.0.0.1", far_port).serve) as port,
        Client.at(port) as client,
    ):
        assert await client.to_end() == b"welcome, and good bye"


async def test_a_server_that_is_not_there_ends_the_connection() -> None:
    diary = Diary()
    async with listening(echo) as free:
        pass
    async with listening(Forward("127.0.0.1", free, diary.told).serve) as port, Client.at(port) as client:
        assert await client.to_end() == b""

    assert diary.of(Verdict.FAILED)


async def test_a_client_that_breaks_off_ends_the_connection_to_the_server() -> None:
    gone, came = asyncio.Event(), asyncio.Event()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        gone.set()

    async with (
        listening(far) as far_port,
        listening(Forward("127.0.0.1", far_port).serve) as port,
        Client.at(port) as client,
        asyncio.timeout(SOON),
    ):
        await came.wait()
        client.writer.transport.abort()
        await gone.wait()
