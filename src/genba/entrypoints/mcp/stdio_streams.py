"""MCP over stdin and stdout.

Stdout carries the protocol and nothing else. An unreadable request is answered too, because its sender waits. A line
without an end does not fill the memory, and a client that is gone, or does not read, does not keep this process.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from genba.entrypoints.mcp.guard import LARGEST_BODY

_READ = 65536
_EDGE = 1024
"""So much of the beginning and of the end of a line that is too long is looked at."""
_PARTING_SECONDS = 5.0
_ID = r'"id"\s*:\s*(-?\d{1,15}|"[^"\\\x00-\x1f]{0,200}")'
_ID_FIRST = re.compile(rf'^\s*\{{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,)*\s*{_ID}')
_ID_LAST = re.compile(
    rf'[}}\]"]\s*,(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,)*\s*{_ID}\s*'
    r'(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*)*\}\s*$'
)

T = TypeVar("T")
Reading = MemoryObjectReceiveStream[SessionMessage | Exception]
Writing = MemoryObjectSendStream[SessionMessage]


@contextlib.asynccontextmanager
async def spoken() -> AsyncIterator[tuple[Reading, Writing]]:
    """Streams of messages from stdin and to stdout. The end of either one cancels the block."""
    received, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, output = anyio.create_memory_object_stream[SessionMessage](0)
    with _diverted(0, os.devnull) as coming, _diverted(1, 2) as going:
        voice = _LineWriter(going)
        ended = anyio.Event()
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async with received:
                    await _hear(coming, received, voice)

            async def say() -> None:
                try:
                    async with output:
                        async for each in output:
                            await voice.say(each.message)
                except OSError:
                    group.cancel_scope.cancel()  # the client is gone
                finally:
                    ended.set()

            group.start_soon(listen)
            group.start_soon(say)
            yield reading, writing
            await writing.aclose()
            with anyio.move_on_after(_PARTING_SECONDS):
                await ended.wait()
            group.cancel_scope.cancel()


class _LineWriter:
    """Says one message after the other, each in a line."""

    def __init__(self, going: int) -> None:
        self._going = going
        self._aside = _BlockingThread[None]("genba-mcp-write")

    async def say(self, message: Any) -> None:
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        await self._aside.do(partial(_write, self._going, line))


async def _hear(coming: int, received: MemoryObjectSendStream[SessionMessage | Exception], voice: _LineWriter) -> None:
    """Line by line until stdin ends."""
    aside = _BlockingThread[bytes]("genba-mcp-read")
    kept, first, too_long = bytearray(), b"", False
    while chunk := await aside.do(partial(os.read, coming, _READ)):
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            kept += piece
            if too_long:
                await voice.say(_refusal(_guessed(first, bytes(kept)), INVALID_REQUEST, _TOO_LONG))
            else:
                await _take(bytes(kept), received, voice)
            kept, first, too_long = bytearray(), b"", False
        kept += rest
        if len(kept) > LARGEST_BODY:
            first, too_long = first or bytes(kept[:_EDGE]), True
            del kept[:-_EDGE]
    if kept and not too_long:
        await _take(bytes(kept), received, voice)


async def _take(line: bytes, received: MemoryObjectSendStream[SessionMessage | Exception], voice: _LineWriter) -> None:
    text = line.decode("utf-8", "replace")
    if not text.strip():
        return
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValidationError, ValueError, RecursionError):
        refusal = refusal_of(text)
        if refusal is not None:
            await voice.say(refusal)
        return
    if isinstance(message, JSONRPCNotification) and '"id"' in text and (refusal := refusal_of(text)) is not None:
        await voice.say(refusal)  # it has an id that is none, and was meant as a request
        return
    with contextlib.suppress(anyio.BrokenResourceError):  # the server has ended meanwhile
        await received.send(SessionMessage(message))


_TOO_LONG = f"a request is at most {LARGEST_BODY:,} bytes long; what is long belongs in a file of your branch"


def refusal_of(line: str) -> JSONRPCError | None:
    """The answer to a line that is no message of the protocol; None where no answer is expected."""
    try:
        result = json.loads(line)
    except (ValueError, RecursionError):
        return _refusal(None, PARSE_ERROR, "this line is no JSON that can be read: one message a line")
    if isinstance(result, dict) and "id" not in result and "method" in result:
        return None
    if isinstance(result, dict) and "method" not in result and ("result" in result or "error" in result):
        return None
    number = result.get("id") if isinstance(result, dict) else None
    if isinstance(number, bool) or not isinstance(number, int | str) or _is_halved(str(number)):
        number = None
    why = "half a character is in it, such as \\ud800 without its other half" if _is_halved(line, result) else ""
    return _refusal(number, INVALID_REQUEST, f"this is no request of JSON-RPC 2.0{': ' if why else ''}{why}")


def _is_halved(text: str, value: Any = None) -> bool:
    """Whether half a character is in a text, or in what was read from it."""
    try:
        (text if value is None else json.dumps(value, ensure_ascii=False)).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _guessed(first: bytes, last: bytes) -> int | str | None:
    """The id of a request that was too long to be read: it stands at the beginning of it, or at its end."""
    found = _ID_FIRST.search(first.decode("utf-8", "replace")) or _ID_LAST.search(last.decode("utf-8", "replace"))
    if found is None:
        return None
    number: int | str = json.loads(found[1])
    return number


def _refusal(number: int | str | None, code: int, why: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=why))


class _BlockingThread(Generic[T]):
    """A thread for calls that may last for ever. It is awaited only while its result is needed."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[tuple[Callable[[], T], asyncio.Future[T]]] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def do(self, work: Callable[[], T]) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()
        self._work.put((work, answer))
        return await answer

    def _run(self) -> None:
        while True:
            work, answer = self._work.get()
            try:
                result = partial(_tell, answer, work(), None)
            except OSError as error:
                result = partial(_tell, answer, None, error)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(result)


def _tell(answer: asyncio.Future[Any], value: Any, error: OSError | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(value)
    else:
        answer.set_exception(error)


def _write(going: int, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[os.write(going, left) :]


@contextlib.contextmanager
def _diverted(number: int, elsewhere: str | int) -> Iterator[int]:
    """A standard stream for this line alone: whatever else reads or writes it meets something harmless.

    It is not closed in the end, for a thread may still be in it; the process ends then.
    """
    try:
        own = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:  # there is no stdin or stdout
        yield os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        return
    if isinstance(elsewhere, int):
        os.dup2(elsewhere, number)
    else:
        harmless = os.open(elsewhere, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(harmless, number)
        os.close(harmless)
    try:
        yield own
    finally:
        os.dup2(own, number)
