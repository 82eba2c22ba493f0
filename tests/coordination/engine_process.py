"""An executor: `python -m tests.coordination.engine_process ADDRESS NAME WORKERS FOLDER [PROJECT]`.

It answers the questions that are put into the folder for it, and carries out workflows whose payload says what each of
their steps does: write a line, wait for a file, die.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from genba.coordination.engine.durable_engine import Engine
from genba.coordination.engine.engine_log import EngineEvent
from genba.domain.ports import Steps
from tests.coordination.waiting import until_so

NAME = sys.argv[2]
FOLDER = Path(sys.argv[4])
RESULT = FOLDER / f"{NAME}-{os.getpid()}.told"


class Payload(msgspec.Struct):
    name: str
    steps: tuple[str, ...] = ("first", "second", "third")
    hold: str = ""
    die_in: str = ""
    """The step that kills the process, each time."""
    die_after: str = ""
    """The step after which the process dies, once."""


def tell(path: Path, line: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


async def exists(path: Path) -> bool:
    return path.exists()  # noqa: ASYNC240


async def carry_out(text: str, steps: Steps) -> str:
    payload = msgspec.json.decode(text, type=Payload)

    async def work(step: str) -> int:
        tell(FOLDER / "log", f"begin {payload.name} {step} {NAME}")
        if payload.die_in == step:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            if payload.hold == step:
                await until_so(lambda: exists(FOLDER / f"go-{payload.name}"), 600)
        except asyncio.CancelledError:
            tell(FOLDER / "log", f"stopped {payload.name} {step} {NAME}")
            raise
        tell(FOLDER / "log", f"end {payload.name} {step} {NAME}")
        return len(step)

    total = 0
    for step in payload.steps:
        total += await steps.run(step, lambda step=step: work(step), int)  # type: ignore[misc]
        if payload.die_after == step and not (died := FOLDER / f"died-{payload.name}").exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return str(total)


async def answer(engine: Engine, asked: dict[str, Any]) -> Any:
    match asked.pop("do"):
        case "enqueue":
            await engine.enqueue(kind="part", **asked)
        case "cancel":
            await engine.cancel(asked["ids"])
        case "status":
            found = await engine.status(asked["id"])
            return found.status if found else "none"
        case "unfinished":
            return await engine.unfinished(asked["executor"])
        case "dead":
            return await engine.dead(asked["executors"])
        case "take over":
            return await engine.take_over(asked["executor"])
    return None


async def listen(engine: Engine) -> None:
    while True:
        for question in sorted(FOLDER.glob("ask-*")):  # noqa: ASYNC240  (few, and small)
            reply = question.with_name(question.name.replace("ask", "answer"))
            if reply.exists():
                continue
            asked = msgspec.json.decode(question.read_bytes())
            if asked.pop("to") == os.getpid():
                draft = question.with_name(f"{question.name}.draft".replace("ask", "draft"))
                draft.write_bytes(msgspec.json.encode(await answer(engine, asked)))
                draft.rename(reply)
        await asyncio.sleep(0.01)


def hear(news: EngineEvent) -> None:
    tell(RESULT, f"{news.kind} {news.message}")


async def main(address: str, name: str, workers: int, project: str = "") -> None:
    leave = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave.set)
    handlers = {"part": carry_out}
    engine = await Engine.open(
        address, executor=name, workers=workers, handlers=handlers, project=project, poll_seconds=0.05, say=hear
    )
    tell(RESULT, "open")
    listening = asyncio.create_task(listen(engine))
    done, _ = await asyncio.wait(
        {listening, asyncio.create_task(leave.wait()), asyncio.create_task(engine.suspended.wait())},
        return_when=asyncio.FIRST_COMPLETED,
    )
    listening.cancel()
    await engine.close()
    tell(RESULT, "closed")
    for task in done - {listening}:
        task.result()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[5:]))
