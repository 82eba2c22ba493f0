"""The output of a process, bounded: kept for its end, reported in batches while it runs, handed on line by line.

Law: whatever a process prints, memory and the number of reports stay bounded, and what is left out is counted. Output
is cut only between lines or words, never inside a word: a secret that is cut in two is not recognised by who redacts.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from genba.domain.processes import AWAITED, LEFT_OUT, LineFilter, OutputListener, left_out_words

_BATCH_BYTES = 4000
"""Of lines that are reported together. The dashboard shows so much of one event."""
_LINE_HEAD, _LINE_TAIL = 48 * 1024, 16 * 1024
"""Of a longer line the middle is left out."""
_EVENT_BYTES = 512
"""A report costs as much room as this at least, which bounds their number."""
_TAIL_BYTES = 256 * 1024
"""Room for the last lines of a process whose output is not reported whole."""
_WORD_BYTES = 4096
"""The longest word that is looked for where output is cut; no secret is longer."""
_LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line that is handed on whole."""
_MANY_LINES = 50_000
"""So many lines are handed on to who reads messages; of the rest only the decisive ones."""
_BYTES_PER_MESSAGE = 256
"""Of decisive lines at most one for so many bytes is read. Those of real tools are longer."""
_BREAKS = (b"\n", b"\r", b" ", b"\t")


class Kept:
    """The beginning and the end of a stream."""

    def __init__(self, head: int, tail: int) -> None:
        self.total = 0
        self._head_bytes, self._tail_bytes = head, tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._in_tail += len(chunk)
            while self._in_tail - len(self._tail[0]) >= self._tail_bytes:
                self._in_tail -= len(self._tail.popleft())

    def is_whole(self) -> bool:
        return self.total == len(self._head) + self._in_tail

    def content(self) -> tuple[bytes, int]:
        """All of it; or beginning and end with a line between them, and how many bytes were left out there."""
        if self.is_whole():
            return bytes(self._head) + b"".join(self._tail), 0
        head, tail = _until_break(bytes(self._head)), _from_break(self._end(self._tail_bytes))
        left_out = self.total - len(head) - len(tail)
        return head + f"\n… {left_out_words(left_out)} …\n".encode() + tail, left_out

    def last(self, count: int) -> bytes:
        """The last bytes, from the beginning of a line or a word; all of them where no more were printed."""
        if count >= self.total and self.is_whole():
            return bytes(self._head) + b"".join(self._tail)
        return _from_break(self._end(count))

    def _end(self, count: int) -> bytes:
        if count <= 0:
            return b""
        head = bytes(self._head) if self._in_tail < count and self.is_whole() else b""
        return (head + b"".join(self._tail))[-count:]


def _until_break(head: bytes) -> bytes:
    """Without the word that is cut at its end."""
    found = max(head.rfind(mark, -_WORD_BYTES) for mark in _BREAKS)
    return head[: found + 1] if found >= 0 else head[:-_WORD_BYTES]


def _from_break(tail: bytes) -> bytes:
    """Without the line that is cut at its beginning, or at least without the word."""
    line = tail.find(b"\n", 0, _WORD_BYTES)
    if line >= 0:
        return tail[line + 1 :]
    found = max(tail.rfind(mark, 0, _WORD_BYTES) for mark in _BREAKS) + 1
    if not found or tail[:found].lower().endswith(b"bearer "):
        found = _WORD_BYTES
    return tail[found:]


class _Stream:
    """How much of one stream was printed, and how much of that was reported."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.pending = Kept(_LINE_HEAD, _LINE_TAIL)
        self.lines = 0
        self.reported = 0
        self.reported_lines = 0


class Reports:
    """Reports whole lines, many at once, until the room is used up; of the rest only the last ones, at the end."""

    def __init__(self, on_output: OutputListener, room: int, kept: dict[str, Kept]) -> None:
        self.on_output = on_output
        self.tail_room = min(_TAIL_BYTES, room // 4)
        self.room = room - self.tail_room
        self.is_full = False
        self.streams = {name: _Stream(each) for name, each in kept.items()}

    def feed(self, name: str, chunk: bytes) -> None:
        stream = self.streams[name]
        stream.lines += chunk.count(b"\n")
        if self.is_full:
            return
        cut = max(chunk.rfind(b"\n"), chunk.rfind(b"\r", 0, len(chunk) - 1)) + 1
        if not cut:
            stream.pending.add(chunk)
            return
        first = min(place for mark in (b"\n", b"\r") if (place := chunk.find(mark, 0, cut)) >= 0) + 1
        pending, stream.pending = stream.pending, Kept(_LINE_HEAD, _LINE_TAIL)
        stream.pending.add(chunk[cut:])
        if pending.total:
            pending.add(chunk[:first])
            self._report_line(name, pending)
            self._report(name, chunk[first:cut])
        else:
            self._report(name, chunk[:cut])

    def finish(self) -> None:
        """Report what is left when the process has ended."""
        for name, stream in self.streams.items():
            if not self.is_full and stream.pending.total:
                self._report_line(name, stream.pending)
        self.is_full = True
        unreported = [name for name, each in self.streams.items() if each.reported < each.kept.total]
        for number, name in enumerate(unreported):
            self.room = self.tail_room // (len(unreported) - number)
            self.tail_room -= self.room
            self._report_end(name)

    def _report_end(self, name: str) -> None:
        """The last lines that there is room for, after a count of what is left out before them."""
        stream = self.streams[name]
        rest = stream.kept.total - stream.reported
        size = min(rest, self.room)
        tail = stream.kept.last(size)
        while tail and _cost(tail.decode("utf-8", errors="replace")) > self.room:
            size //= 2
            tail = stream.kept.last(size)
        lines = stream.lines - stream.reported_lines - tail.count(b"\n")
        if left_out := rest - len(tail):
            self.on_output(LEFT_OUT, f"{name} {left_out} {lines}")
        for chunk in _pieces(tail):
            self.on_output(name, _text(chunk))

    def _report_line(self, name: str, line: Kept) -> None:
        """One line, which may have lost its middle."""
        content, _ = line.content()
        if self._has_room(content):
            self.streams[name].reported += line.total
            self.streams[name].reported_lines += content.endswith(b"\n")
            self.on_output(name, _text(content))

    def _report(self, name: str, block: bytes) -> None:
        stream = self.streams[name]
        for chunk in _pieces(block):
            if not self._has_room(chunk):
                return
            stream.reported += len(chunk)
            stream.reported_lines += chunk.count(b"\n")
            self.on_output(name, _text(chunk))

    def _has_room(self, chunk: bytes) -> bool:
        if not self.is_full:
            self.room -= _cost(_text(chunk))
            self.is_full = self.room < 0
        return not self.is_full


def _pieces(block: bytes) -> "list[bytes]":
    """Whole lines, as many together as one report takes."""
    chunks, at = [], 0
    while at < len(block):
        end = len(block)
        if end - at > _BATCH_BYTES:
            end = _break_before(block, at, at + _BATCH_BYTES)
        chunks.append(block[at:end])
        at = end
    return chunks


def _break_before(block: bytes, start: int, limit: int) -> int:
    """The end of the last line that ends before a limit; else of the first line, however long it is."""
    last = max(block.rfind(b"\n", start, limit), block.rfind(b"\r", start, limit))
    if last >= 0:
        return last + 1
    found = [place for mark in (b"\n", b"\r") if (place := block.find(mark, limit)) >= 0]
    return min(found) + 1 if found else len(block)


def _text(chunk: bytes) -> str:
    """Without the end of its last line."""
    text = chunk.decode("utf-8", errors="replace")
    return text[:-1] if text.endswith(("\n", "\r")) else text


def _cost(text: str) -> int:
    """The room that a report takes: its bytes as JSON, so that no garbage is larger in a journal than here."""
    return len(msgspec.json.encode(text)) + _EVENT_BYTES


class Awaited:
    """Looks for one text in all that is printed, and reports once that it was there."""

    def __init__(self, on_output: OutputListener, text: str) -> None:
        self.on_output = on_output
        self.text = text
        self._wanted = text.encode()
        self._before: dict[str, bytes] = {}

    def feed(self, name: str, chunk: bytes) -> None:
        if not self._wanted:
            return
        before = self._before.get(name, b"")
        joint = before + chunk[: len(self._wanted)]
        if self._wanted in joint or self._wanted in chunk:
            self._wanted = b""
            self.on_output(AWAITED, self.text)
            return
        self._before[name] = (before + chunk[-len(self._wanted) :])[-len(self._wanted) :]


class WholeLines:
    """Hands on whole lines, however they arrive. A line that is too long is left out, and the next one counts again."""

    def __init__(self, lines: Callable[[bytes], None], wanted: LineFilter | None, on_output: OutputListener) -> None:
        self.lines = lines
        self.wanted = wanted
        self.on_output = on_output
        self.count = 0
        self.chunks: list[bytes] = []
        self.length = 0

    def feed(self, chunk: bytes) -> None:
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            self._add(chunk)
            return
        first = chunk.find(b"\n")
        self._add(chunk[:first])
        if 0 < self.length <= _LONGEST_LINE:
            self._hand_on(b"".join(self.chunks))
        self.chunks, self.length = [], 0
        if cut > first + 1:
            self._hand_on(chunk[first + 1 : cut])
        self._add(chunk[cut:])

    def finish(self) -> None:
        self.feed(b"\n")

    def _add(self, chunk: bytes) -> None:
        self.length += len(chunk)
        if self.length > _LONGEST_LINE:
            self.chunks = []
        elif chunk:
            self.chunks.append(chunk)

    def _hand_on(self, block: bytes) -> None:
        """Those lines of a block that are wanted; of a flood only the decisive ones."""
        if self.wanted is None:
            found = [line for line in block.split(b"\n") if line]
        elif self.count <= _MANY_LINES:
            found = _containing(block, (self.wanted.key,))
            self.count += len(found)
            if self.count > _MANY_LINES:
                self.on_output("notice", f"more than {_MANY_LINES:,} messages: from now on only decisive ones are read")
        else:
            found = _containing(block, self.wanted.decisive)[-(len(block) // _BYTES_PER_MESSAGE + 1) :]
        for line in found:
            self.lines(line)


def _containing(block: bytes, words: tuple[bytes, ...]) -> list[bytes]:
    """The lines that contain one of the words, in their order. What is between them costs almost nothing."""
    spans: dict[int, int] = {}
    for word in words:
        at = block.find(word)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            spans[block.rfind(b"\n", 0, at) + 1] = end
            at = block.find(word, end)
    return [block[start:end] for start, end in sorted(spans.items())]
