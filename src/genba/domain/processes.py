"""A command to run, and how it ended."""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

import msgspec

from genba.domain.sessions.sandbox import Entry, Violation

Send = Callable[[bytes], Awaitable[None]]
"""Writes to the stdin of a process. A process that no longer reads is no error: its end tells enough."""


OUTPUT_BYTES = 4 * 1024 * 1024
"""Of what a command prints, so many are reported while it runs, unless it says otherwise."""
KEEP_BYTES = 4 * 1024 * 1024
"""Of each stream, so many are kept for its end: the beginning and the end of what was printed."""
AWAITED = "awaited"
"""The stream of the one report that a command has printed what is waited for."""
LEFT_OUT = "left_out"
"""The stream of a record that output was left out: the name of its stream, bytes and lines."""


def left_out_words(count: int) -> str:
    """How a person reads that output was left out."""
    return f"{count:,} bytes of output left out"


def left_out_line(stream: str, size: int, lines: int) -> str:
    """The same of one stream, with the number of lines."""
    return f"… {left_out_words(size)} ({lines:,} lines of {stream}) …"


class LineFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that a reader of messages wants. All others cost nothing."""

    key: bytes
    """What every message contains."""
    decisive: tuple[bytes, ...]
    """What those contain that count even in a flood: results, errors, limits and what was used."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    argv: tuple[str, ...]
    workdir: str
    environment: Mapping[str, str]
    stdin: str = ""
    timeout_seconds: float
    idle_seconds: float
    mark: str
    """Put into the environment of the whole process tree, so that no child can hide from its end."""
    lines: Callable[[bytes], None] | None = None
    """Called with each whole line of stdout, without its end. A line that is too long to be held is left out."""
    wanted: LineFilter | None = None
    """Which lines `lines` is called with; all where there is none."""
    output_bytes: int = OUTPUT_BYTES
    """How much is reported while it runs, as JSON. Of a longer output the beginning and the end are."""
    awaits: str = ""
    """A text: when one of the streams has it, that is reported, however much was printed before."""
    keep_bytes: int = KEEP_BYTES
    """How much of each stream `Exit` has."""
    converse: Callable[[Send], Awaitable[None]] | None = None
    """Talks with the process in place of `stdin`, while `lines` hears what it answers.

    When it returns, stdin is closed and the process has a few seconds to end by itself. What it raises ends the process
    and is raised by the run. It is cancelled soon after the process has ended, when all of its lines were handed on.
    """
    inherited: tuple[int, ...] = ()
    """Open files, by their number, that the process gets from Genba besides its three streams."""
    entry: Entry | None = None
    """Set for a service that Genba asks: a sandbox with a network of its own says there how it is reached."""


VERIFYING = "verify-"
"""How the marks of `genba verify` begin."""
_MERGING = ".merge-"


def service_mark(mark: str) -> str:
    """The mark of the service that a goal with this mark starts."""
    return f"{mark}.service"


def merge_mark(run: str, by: str) -> str:
    """The mark of goals that are checked before the work of a run lands. It is used by one process alone.

    Of two who do that for the same work, since one was held for dead, neither ends the goals of the other.
    """
    return f"{run}{_MERGING}{by}"


def is_of_one_process(mark: str) -> bool:
    """Whether a mark names the one process that had it: when that is dead, what carries the mark can be ended."""
    return mark.startswith(VERIFYING) or _MERGING in mark


def claim_mark(run: str) -> str:
    """The mark of goals that are checked while an instance of the run lives."""
    return f"{run}.claim"


class Ending(StrEnum):
    EXITED = "exited"
    TIMED_OUT = "timed_out"
    WENT_SILENT = "went_silent"
    CANNOT_START = "cannot_start"


_NOT_FOUND = (126, 127)
"""The exit codes of a shell for a command that cannot be run, or is not there."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    ending: Ending
    code: int
    """The exit code; negative for a signal."""
    stdout: str
    stderr: str
    seconds: float
    violations: tuple[Violation, ...] = ()
    """The limits that it passed, and that ended it."""
    left_out: int = 0
    """Bytes of stdout that are not in it. A line in its middle says so."""

    @property
    def never_ran(self) -> bool:
        """Whether there was nothing to run: it could not be started, or a shell did not find it."""
        return self.ending is Ending.CANNOT_START or self.code in _NOT_FOUND


OutputListener = Callable[[str, str], None]
"""Called with the stream and one or more whole lines while a process speaks; with `started` and the pid when it begins.

Lines are joined by their own ends, and the last has none. Where output is left out it is called with `left_out`: the
stream, bytes and lines in one text. An adapter that understands the output adds `tool` with a tool and what it was
used on, and `notice` with a sentence.
"""
