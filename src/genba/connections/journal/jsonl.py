"""The journal as a JSONL file: one event per line, appended, never rewritten."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from genba.connections.journal.redaction import Redactor
from genba.domain.errors import DiskFullError, is_disk_full
from genba.domain.events import Event
from genba.domain.reading import fitted, reader

Listener = Callable[[Event], None]
SUFFIX = ".jsonl"
_LONGEST_LINE = 16 * 1024


class JsonlJournal:
    """Writes the events of one run, and tells them to whoever listens."""

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
        self._torn = False
        """Whether the last line was cut off by a full disk: the next one begins a line of its own."""

    def emit(self, event: Event) -> None:
        stamped = msgspec.structs.replace(
            event,
            time=_now(),
            run=self.run,
            agent=self.agent,
            issue=event.issue if event.issue else self.issue,
        )
        clean, line = _encoded(_shortened(self.redactor.event(msgspec.to_builtins(stamped))))
        self._write(line)
        if self.listeners:
            self._tell(fitted(clean, Event))

    def _tell(self, event: Event) -> None:
        """A view that can no longer be written to goes quiet; it never hurts the run."""
        for listener in self.listeners:
            try:
                listener(event)
            except OSError:
                self.listeners = tuple(other for other in self.listeners if other is not listener)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _opened(self) -> int:
        """The file is made with its first event: a run that is refused leaves none."""
        if self._descriptor is None:
            self.before_first()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            _close_torn_line(self._descriptor)
        return self._descriptor

    def _write(self, line: bytes) -> None:
        try:
            descriptor = self._opened()
            whole = b"\n" + line if self._torn else line
            written = os.write(descriptor, whole)
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


def _shortened(value: dict[str, Any]) -> dict[str, Any]:
    """A line of output without end is cut, after its secrets are gone."""
    text = value.get("text")
    if isinstance(text, str) and len(text) > _LONGEST_LINE:
        value["text"] = f"{text[:_LONGEST_LINE]} … ({len(text)} characters)"
    return value


def _close_torn_line(descriptor: int) -> None:
    """A run that was killed in the middle of a line leaves it; the next one begins anew."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")


def read_journal(path: Path) -> Iterator[Event]:
    """The events of a journal; a torn or foreign line is passed over."""
    with path.open("rb") as file:
        for line in file:
            try:
                yield reader(Event).decode(line)
            except (ValueError, RecursionError):
                continue


def journal_files(folders: Iterable[Path]) -> list[Path]:
    """Every journal in these folders, newest run first."""
    found = {path for folder in folders if folder.is_dir() for path in folder.glob(f"*{SUFFIX}")}
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
