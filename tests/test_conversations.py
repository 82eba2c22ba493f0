import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.errors import UnrecoverableError
from genba.domain.processes import Command, Ending, Send

ECHO = "import sys\nfor line in sys.stdin: print('heard', line.strip(), flush=True)\nprint('end of input')\n"


def a_talk(
    tmp_path: Path,
    program: str,
    converse: Callable[[Send, "asyncio.Queue[bytes]"], Awaitable[None]],
    seconds: float = 20,
) -> Command:
    output: asyncio.Queue[bytes] = asyncio.Queue()
    return Command(
        argv=(sys.executable, "-c", program),
        workdir=str(tmp_path),
        environment={},
        timeout_seconds=seconds,
        idle_seconds=seconds,
        mark=f"talk-{uuid4().hex}",
        lines=output.put_nowait,
        converse=lambda send: converse(send, output),
    )


def silent(_stream: str, _line: str) -> None:
    return


async def test_the_next_reply_depends_on_the_answer(tmp_path: Path) -> None:
    received: list[bytes] = []

    async def converse(send: Send, reply: "asyncio.Queue[bytes]") -> None:
        await send(b"one\n")
        received.append(await reply.get())
        await send(received[-1] + b" twice\n")
        received.append(await reply.get())

    done = await ProcessSupervisor().run(a_talk(tmp_path, ECHO, converse), silent)

    assert received == [b"heard one", b"heard heard one twice"]
    assert (done.ending, done.code) == (Ending.EXITED, 0)
    assert done.stdout.endswith("end of input\n")


async def test_the_last_output_of_a_process_that_ends_first_is_still_read(tmp_path: Path) -> None:
    received: list[bytes] = []

    async def converse(send: Send, reply: "asyncio.Queue[bytes]") -> None:
        while True:
            received.append(await reply.get())
            await asyncio.sleep(0)

    done = await ProcessSupervisor().run(a_talk(tmp_path, "for n in range(50): print(n)", converse), silent)

    assert done.ending is Ending.EXITED
    assert received == [str(number).encode() for number in range(50)]


async def test_a_process_that_stays_after_the_talk_is_ended_and_that_is_no_timeout(tmp_path: Path) -> None:
    async def converse(send: Send, reply: "asyncio.Queue[bytes]") -> None:
        assert await reply.get() == b"here"

    stubborn = "import time\nprint('here', flush=True)\ntime.sleep(600)"
    done = await ProcessSupervisor().run(a_talk(tmp_path, stubborn, converse, seconds=60), silent)

    assert done.ending is Ending.EXITED
    assert done.code < 0
    assert done.seconds < 30


async def test_an_error_of_the_talk_ends_the_process_and_is_raised(tmp_path: Path) -> None:
    async def converse(send: Send, reply: "asyncio.Queue[bytes]") -> None:
        raise UnrecoverableError("no more of this")

    processes = ProcessSupervisor()
    command = a_talk(tmp_path, "import time\ntime.sleep(600)", converse)
    with pytest.raises(UnrecoverableError, match="no more of this"):
        await processes.run(command, silent)
    assert await processes.sweep(command.mark) == 0


async def test_a_process_that_does_not_listen_runs_into_its_time(tmp_path: Path) -> None:
    async def converse(send: Send, reply: "asyncio.Queue[bytes]") -> None:
        await send(b"x" * 10_000_000)

    deaf = "import time\ntime.sleep(600)"
    done = await ProcessSupervisor().run(a_talk(tmp_path, deaf, converse, seconds=0.5), silent)

    assert done.ending in {Ending.TIMED_OUT, Ending.WENT_SILENT}


async def test_a_process_that_is_gone_can_be_spoken_to_without_harm(tmp_path: Path) -> None:
    async def converse(send: Send, reply: "asyncio.Queue[bytes]") -> None:
        while True:
            await send(b"x" * 100_000)

    done = await ProcessSupervisor().run(a_talk(tmp_path, "print('bye')", converse), silent)

    assert (done.ending, done.stdout) == (Ending.EXITED, "bye\n")
