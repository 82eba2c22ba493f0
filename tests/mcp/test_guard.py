"""The guard of the door: who runs away is stopped, and nobody else."""

from starlette.types import Message, Receive, Scope, Send

from genba.entrypoints.mcp.guard import Guard

CALLS = 10


async def _answers(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _status(guard: Guard, secret: str = "", address: str = "127.0.0.1") -> int:
    told: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        told.append(message)

    headers = [(b"authorization", f"Bearer {secret}".encode())] if secret else []
    await guard({"type": "http", "headers": headers, "client": (address, 1)}, receive, send)
    return int(told[0]["status"])


async def test_whoever_runs_away_with_one_secret_takes_nothing_from_others_of_its_address() -> None:
    guard = Guard(_answers, CALLS)

    seen = [await _status(guard, "runaway") for _ in range(100 * CALLS)]

    assert seen.count(200) < 3 * CALLS
    assert await _status(guard, "other") == 200


async def test_whoever_shows_another_secret_each_time_is_stopped_by_its_address() -> None:
    guard = Guard(_answers, CALLS)

    seen = [await _status(guard, f"secret-{number}") for number in range(100 * CALLS)]

    assert seen.count(200) < 20 * CALLS
    assert await _status(guard, "other", "127.0.0.2") == 200
