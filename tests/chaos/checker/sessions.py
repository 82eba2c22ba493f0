"""Sessions and the merge queue, played again from the history."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.chaos.checker.findings import Finding, Law
from tests.chaos.checker.keeping import DOUBLED, STARTS
from tests.chaos.checker.rows import Board, Row
from tests.chaos.plan import End, Plan

_ENDED = ("done", "cancelled")
_CAME_BACK = ("conflict", "failed")
_SETTLED = ("merged", "conflict", "failed", "withdrawn")


class _Session(msgspec.Struct):
    part: int = 0
    status: str = ""
    waits_for: str = ""
    outcome: str | None = None
    rounds: int = 0


def one_at_a_time(board: Board, home: Path, plan: Plan) -> Iterator[Finding]:
    rows = {row["run"]: row for row in board.of("sessions") if row["task_id"] in board.numbers}
    for number in board.tasks:
        values: dict[str, _Session] = {}
        found = [*_played(number, board.events_of[number], values)]
        mine = {run: row for run, row in rows.items() if board.numbers[row["task_id"]] == number}
        for run in sorted({*values, *mine}):
            found += _compared(number, run, values.get(run), mine.get(run))
        found += _attempts(number, list(mine.values()))
        yield from (Finding(Law.SESSIONS, what) for what in found)
    yield from (Finding(Law.SESSIONS, what) for what in _starts(home, board, set(rows), plan))
    doubled = (home / DOUBLED).read_text("utf-8", "replace").splitlines() if (home / DOUBLED).is_file() else []
    for line in doubled:
        yield Finding(Law.SESSIONS, f"an agent began on #{line} while another one was at work on it")


def _played(number: int, events: list[Row], reported: dict[str, _Session]) -> Iterator[str]:
    status = ""
    for event in events:
        kind, data, run, place = event["kind"], event["data"], event["session"], f"#{number}, event {event['id']}"
        if kind == "part_began":
            yield from (f"{place}: {why}" for why in _begins(reported, run, data))
            now = reported.setdefault(run, _Session())
            sent_back = data["cause"] in _CAME_BACK or (data["cause"] == "resumed" and status == "review")
            now.rounds += sent_back
            now.part, now.status, now.waits_for, now.outcome = data["part"], "running", "", None
        elif kind == "part_ended":
            yield from (f"{place}: {why}" for why in _ends(reported, run, data))
            now = reported.setdefault(run, _Session())
            now.status = "waiting" if data["waits_for"] else "ended"
            now.waits_for, now.outcome = data["waits_for"], data["outcome"] or None
        elif kind == "status_changed":
            status = data["to"]
            for each in reported.values() if status in _ENDED else ():
                if each.status == "waiting":  # nothing waits for what is over
                    each.status, each.waits_for = "ended", ""
                    each.outcome = "completed" if status == "done" else "aborted"


def _begins(reported: dict[str, _Session], run: str, data: Row) -> Iterator[str]:
    others = [other for other, each in reported.items() if other != run and each.status != "ended"]
    if others:
        yield f"{run} begins while {others[0]} has not ended"
    before = reported.get(run, _Session())
    if data["part"] != before.part + 1:
        yield f"part {data['part']} of {run} begins after part {before.part}"
    if before.status not in ("", "waiting"):
        yield f"part {data['part']} of {run} begins while it is {before.status}"


def _ends(reported: dict[str, _Session], run: str, data: Row) -> Iterator[str]:
    now = reported.get(run, _Session())
    given_up = now.status == "waiting" and not data["waits_for"]
    if data["part"] != now.part or (now.status != "running" and not given_up):
        yield f"part {data['part']} of {run} ends, and part {now.part} is {now.status or 'not begun'}"


def _compared(number: int, run: str, reported: _Session | None, row: Row | None) -> Iterator[str]:
    if reported is None:
        yield f"#{number}: no history tells that {run} began"
    elif row is None:
        yield f"#{number}: the history tells of {run}, which is not there"
    else:
        for what in ("part", "status", "waits_for", "outcome", "rounds"):
            if row[what] != getattr(reported, what):
                yield f"#{number}: {what} of {run} is {row[what]!r}, and its history says {getattr(reported, what)!r}"
        if (row["ended_at"] is not None) is not (row["status"] == "ended"):
            yield f"#{number}: {run} is {row['status']}, and has {'an' if row['ended_at'] else 'no'} end"


def _attempts(number: int, rows: list[Row]) -> Iterator[str]:
    """Counted from one, without a gap, for each purpose."""
    counted: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        counted[row["purpose"]].append(row["attempt"])
    for purpose, attempts in counted.items():
        if attempts != list(range(1, len(attempts) + 1)):
            yield f"#{number}: the attempts to {purpose} are {attempts}"


def _starts(home: Path, board: Board, runs: set[str], plan: Plan) -> Iterator[str]:
    path = home / STARTS
    lines = [line.split() for line in path.read_text("utf-8", "replace").splitlines()] if path.is_file() else []
    begun = {board.numbers[row["task_id"]] for row in board.of("sessions") if row["task_id"] in board.numbers}
    for line in lines:
        if line and line[0].isdigit() and int(line[0]) not in begun:
            yield f"an agent was started for #{line[0]}, and no session tells of it"
        if len(line) > 1 and line[1] not in runs:
            yield f"an agent was started for {line[1]}, and there is no such run"
    started = {line[0] for line in lines if line}
    external_agents = {board.numbers.get(row["task_id"]) for row in board.of("sessions") if row["external"]}
    for part in plan.parts:
        if part.end is End.MERGED and str(part.number) not in started and part.number not in external_agents:
            yield f"#{part.number} is to be done, and no agent has said in {STARTS} that it was started for it"


# The merge queue


def settled_once(board: Board) -> Iterator[Finding]:
    entries = board.by_task("merge_entries")
    for number in board.tasks:
        found = [*_queue_played(number, board.events_of[number]), *_queue_compared(number, board, entries[number])]
        yield from (Finding(Law.QUEUE, what) for what in found)


def _queue_played(number: int, events: list[Row]) -> Iterator[str]:
    """Each entry goes in once and comes out once; after a merge there is nothing more."""
    state, status = "", ""
    for event in events:
        kind, data, place = event["kind"], event["data"], f"#{number}, event {event['id']}"
        if kind == "status_changed":
            if data["from"] == "review" and state == "queued":
                state = "withdrawn"  # its place is given up with that change
            status = data["to"]
        elif kind == "merge_queued":
            if state in ("queued", "merged"):
                yield f"{place}: it is put into the queue, and was {state}"
            if status != "review":
                yield f"{place}: it is put into the queue, and is {status}"
            state = "queued"
        elif kind == "merge_settled":
            if state != "queued" and (state, data["status"]) != ("withdrawn", "merged"):
                yield f"{place}: it is {data['status']}, and was {state or 'never queued'}"
            state = data["status"] if data["status"] in _SETTLED else state


def _queue_compared(number: int, board: Board, entries: list[Row]) -> Iterator[str]:
    events = board.events_of[number]
    queued = {(each["session"], each["data"]["commit"], each["data"]["round"])
              for each in events if each["kind"] == "merge_queued"}  # fmt: skip
    if queued != (there := {(row["run"], row["commit"], row["round"]) for row in entries}):
        yield f"#{number} has {len(there)} entries in the queue, and its history tells of {len(queued)} or of others"
    if len(there) != len(entries):
        yield f"#{number} has the same entry twice"
    result = Counter(each["data"]["status"] for each in events if each["kind"] == "merge_settled")
    for status in ("merged", "conflict", "failed"):
        count = sum(row["status"] == status for row in entries)
        if count != result[status]:
            yield f"#{number} has {count} entries that are {status}, and its history tells of {result[status]}"
    landed = {each["data"]["landed"] for each in events if each["kind"] == "merge_settled" and each["data"]["landed"]}
    if landed != (rows := {row["landed"] for row in entries if row["landed"]}):
        yield f"#{number} landed as {sorted(rows)}, and its history says {sorted(landed)}"
    for row in entries:
        if (row["finished_at"] is not None) is not (row["status"] in (*_SETTLED, "stuck")):
            yield f"#{number}: an entry is {row['status']}, and has {'an' if row['finished_at'] else 'no'} end"
