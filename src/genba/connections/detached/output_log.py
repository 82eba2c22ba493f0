"""What an agent says on its way from the supervisor, who writes it down, to the worker, who tells it."""

import asyncio
import os
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

import msgspec

from genba.connections.detached.job_dir import Attempt
from genba.connections.detached.process_lock import telling_of_full_disks
from genba.connections.detached.results import whole_text
from genba.domain.decoding import reader
from genba.domain.events import Event
from genba.domain.processes import LEFT_OUT, OutputListener

_EVENT = "event"
"""The stream of what is no word of the agent's: an event of its egress ports, as JSON."""
_OUTPUT = ("stdout", "stderr")
_MOST_BYTES = 16_000_000
"""Of one question. Who runs the agent reports less than that; this holds whatever an adapter does."""
_CHUNK = 256 * 1024
_NUMBER_WIDTH = 20


class Redact(Protocol):
    """Hides the secrets of what is printed, which arrives in pieces."""

    def text(self, stream: str, text: str) -> str: ...


class Recorder:
    """Writes output, one line of JSON each, without the secrets of the environment."""

    def __init__(self, attempt: Attempt, redactor: Redact) -> None:
        self.path = attempt.output
        self.redactor = redactor
        self._written = 0
        self._left_out: dict[str, list[int]] = {}
        with telling_of_full_disks(self.path):
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def on_output(self, stream: str, line: str) -> None:
        if self._written > _MOST_BYTES:
            counted = self._left_out.setdefault(stream, [0, 0])
            counted[0] += len(line)
            counted[1] += line.count("\n") + 1
            return
        plain = stream in ("started", LEFT_OUT)
        self._write(stream, line if plain else self.redactor.text(stream, line))

    def emit(self, event: Event) -> None:
        self._write(_EVENT, msgspec.json.encode(event).decode())

    def close(self) -> None:
        for stream in _OUTPUT:
            if stream in self._left_out:
                size, lines = self._left_out[stream]
                self._write(LEFT_OUT, f"{stream} {size} {lines}")
        os.close(self._descriptor)

    def _write(self, stream: str, line: str) -> None:
        """One write for each line: who reads meanwhile sees whole lines, and an end that is still to come."""
        try:
            content = msgspec.json.encode((stream, line))
        except UnicodeEncodeError:
            content = msgspec.json.encode((stream, whole_text(line)))
        with telling_of_full_disks(self.path):
            self._written += len(content) + 1
            view = memoryview(content + b"\n")
            while view:
                view = view[os.write(self._descriptor, view) :]


class OutputReader:
    """Tells what was written down, from where the last listener stopped: nothing is left out."""

    def __init__(self, attempt: Attempt, on_output: OutputListener, emit: Callable[[Event], None]) -> None:
        self.attempt = attempt
        self.on_output = on_output
        self.emit = emit
        self._file: int | None = None
        with telling_of_full_disks(attempt.offset):
            self._offset_file = os.open(attempt.offset, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._offset = int(os.pread(self._offset_file, _NUMBER_WIDTH, 0) or b"0")

    def __enter__(self) -> "OutputReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._offset_file)
        if self._file is not None:
            os.close(self._file)

    async def tell(self) -> None:
        """Pass on the whole lines that are there, a limited number at a time, so that others get their turn."""
        pending = b""
        while chunk := self._read(self._offset + len(pending)):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._tell(line)
            self._offset += sum(len(line) + 1 for line in lines)
            if lines:
                with telling_of_full_disks(self.attempt.offset):
                    os.pwrite(self._offset_file, str(self._offset).zfill(_NUMBER_WIDTH).encode(), 0)
            await asyncio.sleep(0)

    def _read(self, offset: int) -> bytes:
        if self._file is None:
            try:
                self._file = os.open(self.attempt.output, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return b""
        return os.pread(self._file, _CHUNK, offset)

    def _tell(self, line: bytes) -> None:
        try:
            stream, text = reader(tuple[str, str]).decode(line)
            if stream == _EVENT:
                self.emit(reader(Event).decode(text))
            else:
                self.on_output(stream, text)
        except (ValueError, RecursionError):
            return  # torn by the fall of a machine: the rest still counts
