"""How the outbox looks: what is to be sent, what holds it, and when it goes on."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from genba.blackboard.tracker.outbox_order import NextSend
from genba.domain.tracker.outbox import OutboxEntry, OutboxStatus
from genba.domain.tracker.outbox_text import body_of, in_words, subject_of
from genba.entrypoints.cli.rendering.columns import cell, cut, rows_of
from genba.entrypoints.cli.rendering.fleet_views import ago
from genba.entrypoints.cli.rendering.printable import printable

MARKS = {
    OutboxStatus.PENDING: "○",
    OutboxStatus.SENDING: "◐",
    OutboxStatus.DONE: "●",
    OutboxStatus.FAILED: "✗",
    OutboxStatus.DROPPED: "–",
}
_WIDE = (6, 10, 18, 56)


def outbox_lines(entries: Sequence[OutboxEntry], now: datetime, columns: int) -> Iterator[str]:
    """One line for each, in the order in which they are sent."""
    behind = _behind(entries)
    rows = [
        (
            str(entry.id),
            f"{MARKS[entry.status]} {entry.status}",
            subject_of(entry.change),
            in_words(entry.change),
            _note(entry, behind.get(entry.id), now),
        )
        for entry in entries
    ]
    for line in rows_of(rows, _WIDE):
        yield cut(line.rstrip(), columns)


def outbox_page(entry: OutboxEntry, behind: int | None, now: datetime) -> Iterator[str]:
    """Everything about one."""
    what = f"{cell(subject_of(entry.change))} {cell(in_words(entry.change))}"
    yield f"{MARKS[entry.status]} {entry.id} {entry.status}   {what}"
    facts = [
        ("recorded", ago(entry.created_at, now)),
        ("run", entry.run),
        ("key", entry.key),
        (
            "tried",
            f"{entry.attempts} times, last {ago(entry.sent_at, now)}" if entry.attempts and entry.sent_at else "",
        ),
        ("again", f"not before {clock(entry.not_before)}" if entry.not_before else ""),
        ("waits for", f"entry {behind}" if behind is not None else ""),
        ("error", entry.error),
        ("made", _made(entry)),
        ("but", entry.receipt.note if entry.receipt is not None else ""),
    ]
    yield ""
    for name, value in facts:
        if value:
            yield f"  {name.ljust(9)}  {cell(value)}"
    yield from _body(entry, "  ")


def dry_lines(entries: Sequence[OutboxEntry]) -> Iterator[str]:
    """What would be sent, in its order, with its words."""
    for entry in entries:
        yield f"{entry.id}  {cell(subject_of(entry.change))}  {cell(in_words(entry.change))}"
        yield from _body(entry, "   ")


def sent_line(entry: OutboxEntry) -> str:
    message = f"{MARKS[entry.status]} {entry.id}  {cell(subject_of(entry.change))}  {cell(in_words(entry.change))}"
    if entry.status is OutboxStatus.FAILED:
        return f"{message}   {cell(entry.error)}"
    if entry.receipt is not None and (entry.receipt.existed or entry.receipt.note):
        return f"{message}   {cell(entry.receipt.note) or 'was there already'}"
    return message


def waiting_words(turn: NextSend) -> str:
    """What everything waits for, and until when."""
    if not turn.until:
        return ""
    return f"{cell(turn.why) or 'something'}; it goes on at {clock(turn.until)}"


def held(entries: Sequence[OutboxEntry]) -> dict[int, int]:
    """By the number of an entry, the failed one that it waits behind."""
    failed = {entry.id for entry in entries if entry.status is OutboxStatus.FAILED}
    return {number: before for number, before in _behind(entries).items() if before in failed}


def clock(text: str) -> str:
    """A time of the blackboard in local time, to the second."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return text


def _behind(entries: Sequence[OutboxEntry]) -> dict[int, int]:
    """By the number of an entry, the first one of its lane that has not ended, where that is another one."""
    first: dict[str, int] = {}
    found = {}
    for entry in entries:
        if entry.status.ended:
            continue
        head = first.setdefault(entry.lane, entry.id)
        if head != entry.id:
            found[entry.id] = head
    return found


def _note(entry: OutboxEntry, behind: int | None, now: datetime) -> str:
    if entry.status is OutboxStatus.DONE:
        return _made(entry) or ago(entry.ended_at, now)
    if behind is not None:
        return f"waits for {behind}"
    return entry.error or ("" if entry.status is OutboxStatus.SENDING else ago(entry.created_at, now))


def _made(entry: OutboxEntry) -> str:
    if entry.receipt is None:
        return ""
    there = " (was there already)" if entry.receipt.existed else ""
    return f"{entry.receipt.address or entry.receipt.commit[:12]}{there}".strip()


def _body(entry: OutboxEntry, margin: str) -> Iterator[str]:
    body = body_of(entry.change)
    if body:
        yield ""
        for line in printable(body).splitlines():
            yield f"{margin}| {line}".rstrip()
        yield ""
