import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from genba.entrypoints.mcp.guard import Guard

CALLS = 10


async def _answers(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _status(guard: Guard, secret: str = "", address: str = "127.0.0.1") -> int:
    lines: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        lines.append(message)

    headers = [(b"authorization", f"Bearer {secret}".encode())] if secret else []
    await guard({"type": "http", "headers": headers, "client": (address, 1)}, receive, send)
    return int(lines[0]["status"])


async def test_a_runaway_client_does_not_limit_others_of_its_address() -> None:
    guard = Guard(_answers, CALLS)

    seen = [await _status(guard, "runaway") for _ in range(100 * CALLS)]

    assert seen.count(200) < 3 * CALLS
    assert await _status(guard, "other") == 200


async def test_changing_secrets_are_limited_by_address() -> None:
    guard = Guard(_answers, CALLS)

    seen = [await _status(guard, f"secret-{number}") for number in range(100 * CALLS)]

    assert seen.count(200) < 20 * CALLS
    assert await _status(guard, "other", "127.0.0.2") == 200


async def test_a_client_that_does_not_send_its_request_in_time_is_disconnected() -> None:
    received: list[str] = []

    async def app(_scope: object, receive: Any, _send: object) -> None:
        while (message := await receive())["type"] == "http.request" and message.get("more_body"):
            received.append(message["type"])
        received.append(message["type"])

    sent = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def slow() -> Any:
        if not sent:
            await asyncio.Event().wait()
        return sent.pop()

    scope = {"type": "http", "headers": [], "client": ("127.0.0.1", 1)}
    await Guard(app, 600, body_seconds=0.05)(scope, slow, _absent)

    assert received == ["http.request", "http.disconnect"]


async def _absent(_message: object) -> None:
    raise AssertionError("nothing is answered to whoever has hung up")
