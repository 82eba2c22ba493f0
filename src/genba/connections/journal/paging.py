"""Reading a journal piece by piece: its end, what stands before a place, what came after one, one line of it.

Law: nothing here reads more than a bounded piece, however long the journal is.
"""

import os
from pathlib import Path

from genba.domain.views.session import JournalLines

LINES = 500
_MOST_AFTER = 2000
"""A reader that has fallen behind catches up in few steps."""
_BLOCK = 64 * 1024
_MOST_BYTES = 1024 * 1024
_LONGEST_LINE = 16 * 1024 * 1024


def last_lines(path: Path, before: int | None = None, lines: int = LINES) -> JournalLines:
    """The last lines of a journal, or the last before a place where a line begins."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        end = size if before is None else max(0, min(before, size))
        start, read = end, b""
        while start > 0 and len(read) < _MOST_BYTES and read.count(b"\n") <= lines:
            step = min(_BLOCK, start)
            start -= step
            read = os.pread(descriptor, step, start) + read
    finally:
        os.close(descriptor)
    if before is None:  # the line that is being written just now is not one yet
        whole = read.rfind(b"\n") + 1
        end, read = start + whole, read[:whole]
    found = _lines(start, read)
    if start > 0 and found:  # the first may have begun earlier
        found = found[1:] or found
    found = found[-lines:]
    return JournalLines(start=found[0][0] if found else start, end=end, lines=tuple(found))


def lines_after(path: Path, after: int, lines: int = _MOST_AFTER) -> JournalLines:
    """What was written after an offset. A journal that is shorter by now is read from its end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        read = os.pread(descriptor, _MOST_BYTES, after) if after <= size else None
    finally:
        os.close(descriptor)
    if read is None:
        return last_lines(path)
    whole = read.rfind(b"\n") + 1
    if not whole and len(read) == _MOST_BYTES:  # a line without end is passed over
        return JournalLines(start=after, end=after + len(read), more=True)
    found = _lines(after, read[:whole])
    end = after + whole
    if len(found) > lines:
        end, found = found[lines][0], found[:lines]
    return JournalLines(start=after, end=end, lines=tuple(found), more=end < after + whole or len(read) == _MOST_BYTES)


def line_at(path: Path, offset: int) -> bytes:
    """The line that begins at a place; nothing where none does."""
    with path.open("rb") as file:
        if offset < 0 or offset >= os.fstat(file.fileno()).st_size:
            return b""
        if offset > 0:
            file.seek(offset - 1)
            if file.read(1) != b"\n":
                return b""
        return file.readline(_LONGEST_LINE)


def _lines(start: int, read: bytes) -> list[tuple[int, bytes]]:
    found = []
    at = start
    for line in read.split(b"\n"):
        if line:
            found.append((at, line))
        at += len(line) + 1
    return found
