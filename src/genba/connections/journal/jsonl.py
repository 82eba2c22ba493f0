"""The journal as a JSONL file: one event per line, appended, never rewritten."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from genba.domain.decoding import fitted, reader
from genba.domain.errors import DiskFullError, is_disk_full
from genba.domain.events import AgentOutput, EgressUsed, Event, Notice, OutputLeftOut, ToolUsed
from genba.domain.long_text import shortened
from genba.domain.redaction import OutputRedactor, Redactor

Listener = Callable[[Event], None]
SUFFIX = ".jsonl"
_OUTPUT_BYTES = 12_000_000
"""The output of agents never makes a journal longer than this; a question gets half of what is left."""
_LEAST_OUTPUT = 4096
"""So that the last lines of an agent are there even then."""
_AGENT_BYTES = 14_000_000
"""From here on nothing is written of what an agent does by itself. What Genba does is always written."""
_LONGEST_EVENT = 1_000_000
_LONG_TEXT = 64 * 1024
_MOST_ENTRIES = 1000
"""Of a list in an event, such as commits and findings."""
_SHORT_TEXT, _SHORTEST_TEXT = 2000, 200
"""Characters of a text in a journal that is long, and in one that is too long."""
_WHOLE = frozenset({"state", "workspace", "started"})
"""What a resumed run needs as it was."""
_OF_AGENTS = (AgentOutput, OutputLeftOut, ToolUsed, EgressUsed)
_FOLLOWED_BYTES = 1024 * 1024
_PRINTED = b'{"event":"agent_output"'


class JsonlJournal:
    """Writes the events of one run, and passes them to listeners."""

    def __init__(
        self,
        path: Path,
        run: str,
        agent: str,
        issue: int | None,
        redactor: Redactor,
        listeners: tuple[Listener, ...],
        before_first: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self.run = run
        self.agent = agent
        self.issue = issue
        self.redactor = redactor
        self.listeners = listeners
        self.before_first = before_first
        self._descriptor: int | None = None
        self._is_begun = False
        self._is_closed = False
        self._output = OutputRedactor(redactor)
        self._size = _size_of(path)
        self._dropped = 0
        """Events of the agent that were not written since the last one that was."""
        self._torn = False
        """Whether the last line was cut off by a full disk: the next one begins a line of its own."""

    def room(self) -> int:
        """Half of what is left: one loud question does not take the room of all that follow."""
        return max(_LEAST_OUTPUT, (_OUTPUT_BYTES - self._size) // 2)

    def emit(self, event: Event) -> None:
        if isinstance(event, _OF_AGENTS) and self._size > _AGENT_BYTES:
            self._dropped += 1
            return
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self.emit(Notice(message=f"{dropped:,} events of the agent left out: the journal is full"))
        if isinstance(event, AgentOutput):
            event = msgspec.structs.replace(event, text=self._output.text(event.stream, event.text))
        stamped = msgspec.structs.replace(
            event,
            time=_now(),
            run=self.run,
            agent=self.agent,
            issue=event.issue if event.issue else self.issue,
        )
        clean, line = _written(_shortened(self.redactor.event(msgspec.to_builtins(stamped)), self._longest()))
        self._write(line)
        if self.listeners:
            self._tell(fitted(clean, Event))

    def _longest(self) -> int:
        """How long a text of an event may be: the longer the journal is, the shorter."""
        if self._size > _AGENT_BYTES:
            return _SHORTEST_TEXT
        return max(_SHORT_TEXT, min(_LONG_TEXT, (_OUTPUT_BYTES - self._size) // 64))

    def _tell(self, event: Event) -> None:
        """A view that can no longer be written to goes quiet; it never hurts the run."""
        for listener in self.listeners:
            try:
                listener(event)
            except OSError:
                self.listeners = tuple(other for other in self.listeners if other is not listener)

    def close(self) -> None:
        """Close the file. An event that comes later opens it again, for itself alone."""
        self._is_closed = True
        self._close_file()

    def _close_file(self) -> None:
        """The number is forgotten first: the system gives it to the next file that is opened."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _opened(self) -> int:
        """The file is made with its first event: a run that is refused leaves none."""
        if self._descriptor is None:
            if not self._is_begun:
                self.before_first()
            self._is_begun = True
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            _close_torn_line(self._descriptor)
            self._size = os.fstat(self._descriptor).st_size
        return self._descriptor

    def _write(self, line: bytes) -> None:
        try:
            descriptor = self._opened()
            whole = b"\n" + line if self._torn else line
            written = os.write(descriptor, whole)
            self._size += written
            self._torn = written != len(whole)
            if self._torn:
                raise OSError(errno.ENOSPC, "short write")
        except OSError as error:
            if is_disk_full(error):
                raise DiskFullError(
                    f"the disk is full: {self.path} cannot grow",
                    hint=f"free some space, then: genba run --resume {self.run}",
                ) from error
            raise
        finally:
            if self._is_closed:
                self._close_file()


def _written(value: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """An event as a line of bounded length: a structured reply that is longer is not in it."""
    clean, line = _encoded(value)
    if len(line) > _LONGEST_EVENT:
        clean, line = _encoded(_shortened(clean, _SHORTEST_TEXT))
    if len(line) > _LONGEST_EVENT and clean.get("structured") is not None:
        return _encoded({**clean, "structured": {"left_out": f"{len(line):,} bytes"}})
    return clean, line


def _encoded(value: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """An event as a line of JSON; what is no text, such as half a character, is replaced."""
    try:
        return value, msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        whole = _whole_text(value)
        return whole, msgspec.json.encode(whole) + b"\n"


def _whole_text(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_whole_text(key): _whole_text(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_text(inner) for inner in value]
    return value


def _shortened(value: Any, longest: int) -> Any:
    """A value without the middle of texts that are too long, after their secrets are gone."""
    if isinstance(value, str):
        return shortened(value, longest)
    if isinstance(value, dict):
        return {key: inner if key in _WHOLE else _shortened(inner, longest) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner, min(longest, _SHORT_TEXT)) for inner in value[:_MOST_ENTRIES]]
    return value


def _size_of(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _close_torn_line(descriptor: int) -> None:
    """A run that was killed in the middle of a line leaves it; the next one starts a new line."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")


def read_journal(path: Path, output: bool = True) -> Iterator[Event]:
    """The events of a journal; a torn or foreign line is passed over, and without `output` what agents printed."""
    with path.open("rb") as file:
        for line in file:
            if not output and line.startswith(_PRINTED):
                continue
            try:
                yield reader(Event).decode(line)
            except (ValueError, RecursionError):
                continue


def follow_journal(path: Path) -> Iterator[list[Event]]:
    """The events of a journal that is being written: what is there, then at each step what came since; never ends."""
    with path.open("rb") as file:
        rest = b""
        while True:
            read = file.read(_FOLLOWED_BYTES)
            *lines, rest = (rest + read).split(b"\n")
            events = []
            for line in lines:
                with contextlib.suppress(ValueError, RecursionError):
                    events.append(reader(Event).decode(line))
            if events or not read:
                yield events


def journal_files(folders: Iterable[Path]) -> list[Path]:
    """Every journal in these folders, newest run first."""
    found = {path for folder in folders if folder.is_dir() for path in folder.glob(f"*{SUFFIX}")}
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


class JournalFiles:
    """The journals of a project, as use cases read them."""

    def in_folders(self, folders: Iterable[Path]) -> list[Path]:
        return journal_files(folders)

    def read(self, path: Path, output: bool = True) -> Iterator[Event]:
        return read_journal(path, output)

    def follow(self, path: Path) -> Iterator[list[Event]]:
        return follow_journal(path)

    def name(self, run: str) -> str:
        return f"{run}{SUFFIX}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
