import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from genba.connections.egress.h11_connection import Patience
from genba.connections.egress.socket_forward import SocketForward
from genba.domain.sessions.egress import Verdict
from tests.egress.places import SOON, Client, Diary, listening
from tests.egress.test_proxy import echo

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose path is short enough for sockets in it."""
    with tempfile.TemporaryDirectory(prefix="gb") as folder:
        yield Path(folder)


@contextlib.asynccontextmanager
async def served(path: Path, handler: Handler) -> AsyncIterator[None]:
    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handler(reader, writer)
        writer.close()

    server = await asyncio.start_unix_server(handled, str(path))
    async with server:
        yield


def saying(token: bytes) -> Handler:
    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(token)
        await writer.drain()

    return handle


async def test_bytes_go_to_the_socket_and_come_back(place: Path) -> None:
    async with (
        served(place / "s", echo),
        listening(SocketForward(lambda: str(place / "s")).serve) as port,
        Client.at(port) as client,
    ):
        client.writer.write(b"\x00\xff" * 500_000)
        client.writer.write_eof()
        assert await client.to_end() == b"\x00\xff" * 500_000 + b"<end>"


async def test_a_connection_waits_for_a_server(place: Path) -> None:
    async with listening(SocketForward(lambda: str(place / "s")).serve) as port, Client.at(port) as client:
        answer = asyncio.create_task(client.to_end())
        await asyncio.sleep(0)
        async with served(place / "s", saying(b"here I am")):
            async with asyncio.timeout(SOON):
                assert await answer == b"here I am"


async def test_each_connection_leads_to_the_current_server(place: Path) -> None:
    pointer = place / "where"
    async with (
        served(place / "one", saying(b"one")),
        served(place / "two", saying(b"two")),
        listening(SocketForward(lambda: pointer.read_text("utf-8")).serve) as port,
    ):
        for name in ("one", "two"):
            pointer.write_text(str(place / name), encoding="utf-8")
            async with Client.at(port) as client:
                assert await client.to_end() == name.encode()


async def test_without_a_server_the_connection_ends_and_it_is_reported(place: Path) -> None:
    diary = Diary()
    gate = SocketForward(lambda: str(place / "s"), diary.told, patience=Patience(dial=0.3))
    async with listening(gate.serve) as port, Client.at(port) as client:
        assert await client.to_end() == b""
    assert diary.of(Verdict.FAILED)
