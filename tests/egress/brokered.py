"""A client at the port of a broker that leads to some server."""

import contextlib
from collections.abc import AsyncIterator

from genba.connections.egress.broker import Broker
from genba.connections.egress.h11_connection import Patience
from genba.connections.egress.model_calls import ModelCalls, calls_of
from tests.egress.places import Client, Diary, Serve, listening

KEY = "sk-real-7d1f0c2b9a"
CALLS = calls_of("anthropic", {})
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
    far: Serve,
    *,
    prefix: str = "",
    header: str = "x-api-key",
    patience: Patience | None = None,
    calls: ModelCalls = CALLS,
) -> AsyncIterator[Session]:
    diary = Diary()
    async with listening(far) as far_port:
        url = f"http://127.0.0.1:{far_port}{prefix}"
        broker = Broker(url, header, KEY, WORD, diary.told, calls=calls, patience=patience or Patience())
        async with listening(broker.serve) as port, Client.at(port) as client:
            yield Session(client, port, diary, far_port)


def get(path: str = "/v1/models", *lines: str, token: str = WORD) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", f"X-Api-Key: {token}", *lines, "", ""]).encode()


def post(body: bytes, *lines: str, path: str = "/v1/messages") -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"X-Api-Key: {WORD}", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body
