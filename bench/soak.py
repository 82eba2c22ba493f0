"""A simulated day of a fleet: `python -m bench.soak [--hours 24] [--speed 300]`.

`genba work`, `genba serve` and `genba mcp --http` run through a day of tasks, questions, refusals and an idle night.
The clock runs at normal speed while work is in progress, and 300 times as fast while idle. Each full hour is measured.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.faketime import NOT_RUN, Clock, library

from bench import ledgers, machine, page
from bench.fleet_ground import HUMAN
from bench.measuring import Row, report
from bench.soak_day import HOUR, Deed, Guest, Kind, Onlooker, is_idle, plan
from bench.soak_ground import (
    Ground,
    Household,
    Seen,
    Tables,
    database,
    has_asked,
    is_busy,
    mailbox,
    open_tasks,
    rows_of,
    tracker,
)
from genba.domain.tasks.task import TaskDraft

DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
SPEED = 300.0
GROWS, FILES = 1.2, 1.2
IDLE_PERCENT = 2.0
"""Of one core, for all processes together, while idle."""
_ABOUT = (
    "A simulated day: the clock runs at normal speed while work is in progress, and {speed:g} times as fast while"
    " idle. A task arrives every quarter of an hour of the working day; some agents crash, some ask and get their"
    " answer after an hour, one is rate-limited for two hours. `genba serve` has an open browser, `genba mcp` an "
    "external agent every two hours; the tracker is synced every five minutes."
)
_LOOK_SECONDS = 0.01
_CALM_LOOKS = 3
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Look:
    """What was there at the end of an hour."""

    hour: int
    idle: bool
    seen: dict[str, Seen]
    rows: dict[str, int]
    database: int
    git_genba: int
    journals: int
    started: int


@dataclass
class Day:
    """What one day came to."""

    kind: str
    looks: list[Look] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Sentences. There should be none."""
    tasks: int = 0
    drawn: int = 0
    notices: int = 0
    synced: int = 0
    """Requests to the tracker."""
    seconds: float = 0.0
    """Real ones."""


class Governor:
    """Lets the clock run while nothing is under way."""

    def __init__(self, clock: Clock, tables: Tables, speed: float) -> None:
        self.clock = clock
        self.tables = tables
        self.speed = speed
        self.calm = 0
        """Looks in a row at which nothing was under way."""
        self._holding = threading.Lock()
        self._leaving = threading.Event()
        self._now = 1.0
        self._thread = threading.Thread(target=self._govern, daemon=True)

    def __enter__(self) -> "Governor":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """As long as the block lasts the clock goes as a real one."""
        with self._holding:
            self._go(1.0)
            self.calm = 0
            yield

    def wait_until(self, moment: float) -> None:
        while self.clock.monotonic() < moment:
            time.sleep(_LOOK_SECONDS)

    def wait_while(self, holds: Callable[[], bool]) -> None:
        """Until it holds no more, or will for ever."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while holds() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)

    def wait_for_calm(self) -> bool:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self.calm < _CALM_LOOKS and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        return self.calm >= _CALM_LOOKS

    def _govern(self) -> None:
        while not self._leaving.wait(_LOOK_SECONDS):
            with self._holding:
                self.calm = 0 if is_busy(self.tables) else self.calm + 1
                self._go(1.0 if self.calm < _CALM_LOOKS else self.speed)

    def _go(self, speed: float) -> None:
        if speed != self._now:
            self._now = speed
            self.clock.speed(speed)


class Soak:
    """One day on one database."""

    def __init__(self, kind: str, hours: float, speed: float, folder: Path) -> None:
        self.day = Day(kind)
        self.hours = hours
        self.speed = speed
        self.folder = folder
        self.clock = Clock(folder)

    def live(self) -> Day:
        began = time.monotonic()
        root = self.folder / "repository"
        with tracker() as (github, hub), mailbox() as (webhook, came), database(self.day.kind, root) as tables:
            self.ground = Ground(self.folder, tables, webhook, github)
            with self.ground.board():
                pass  # its tables are made
            self.household = Household(self.ground, self.clock, self.day.kind == "postgres")
            try:
                self.household.open()
                self._live(tables)
            finally:
                self._end(tables)
            self.day.notices, self.day.synced = len(came), len(hub.requests)
        self.day.seconds = time.monotonic() - began
        return self.day

    def _live(self, tables: Tables) -> None:
        onlooker = Onlooker(self.household.address("serve"))
        self.guest = Guest(self.household.address("mcp"), self.household.genba("agent", "register", "guest"))
        begun = self.clock.monotonic()
        events, end = plan(self.hours), self.hours * HOUR
        with Governor(self.clock, tables, self.speed) as governor:
            for hour in range(max(1, round(self.hours))):
                until = min((hour + 1) * HOUR, end)
                for deed in [one for one in events if hour * HOUR <= one.at < until]:
                    governor.wait_until(begun + deed.at)
                    self._do(deed, governor)
                governor.wait_until(begun + until)
                if not is_idle(hour, self.hours) and (until == end or is_idle(hour + 1, self.hours)):
                    # A machine with much else to do is late: then the night begins later.
                    governor.wait_while(lambda: open_tasks(tables) > 0)
                    begun = max(begun, self.clock.monotonic() - until)
                if not governor.wait_for_calm():
                    self.day.wrong.append(f"something is under way for ever in hour {hour + 1}")
                with governor.holding():
                    self._look(hour + 1, tables)
        self.day.drawn = onlooker.drawn
        if onlooker.cut_off:
            self.day.wrong.append(f"the line to the browser broke {onlooker.cut_off} times")
        onlooker.leave()

    def _do(self, deed: Deed, governor: Governor) -> None:
        if deed.kind is Kind.ANSWER:
            governor.wait_while(lambda: not has_asked(governor.tables, deed.number))
        with governor.holding():
            match deed.kind:
                case Kind.ANSWER:
                    self.household.genba("answer", str(deed.number), "Take 8080.")
                case Kind.CLEARING:
                    self.household.genba("gc", "--keep-days", "0")
                case Kind.GUEST:
                    if (result := self.guest.come()) != "exit":
                        self.day.wrong.append(f"the external agent got {result}, with no work for it")
                case _:
                    self.day.tasks += 1
                    with self.ground.board() as board:
                        draft = TaskDraft(title=f"Task {deed.number}", number=deed.number, assignee=str(deed.kind))
                        board.add(draft, HUMAN)

    def _look(self, hour: int, tables: Tables) -> None:
        look = Look(
            hour=hour,
            idle=is_idle(hour - 1, self.hours),
            seen=self.household.seen(),
            rows=rows_of(tables),
            database=tables.size(),
            git_genba=_size(self.ground.root / ".git" / "genba"),
            journals=_size(self.ground.root / "tmp"),
            started=self.ground.started(),
        )
        self.day.looks.append(look)
        work = look.seen["work"]
        print(
            f"{DATABASES[self.day.kind]:<10} hour {hour:>2}  {'night' if look.idle else 'work ':<5}"
            f"  tasks {self.day.tasks:>3}  starts {look.started:>3}  rows {sum(look.rows.values()):>6}"
            f"  database {look.database / 1024:>6.0f} kB  work {work.pss_kb / 1024:>5.1f} MB {work.files} files"
            f" {work.threads} threads {work.processor:.1f} s",
            flush=True,
        )

    def _end(self, tables: Tables) -> None:
        codes = self.household.close()
        wrong = self.day.wrong
        wrong += [f"{name} ended with {code}" for name, code in codes.items() if code not in (0, -15, 143)]
        wrong += [f"left running: {command}" for command in self.household.left()]
        wrong += [f"in the log of {line}" for line in self.household.trouble()]
        statuses = tables.ask("SELECT number, status FROM tasks ORDER BY number")
        wrong += [f"task {number} is {status}" for number, status in statuses if status != "done"]
        wanted = sorted(f"task-{number}.txt" for number, _ in statuses)
        if self.ground.landed() != wanted:
            wrong.append("what landed is not what was done")


def _size(folder: Path) -> int:
    return sum(
        (Path(place) / name).lstat().st_size
        for place, _, names in os.walk(folder)
        for name in names
        if (Path(place) / name).exists()
    )


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def laws(day: Day) -> list[Row]:
    """What must hold of a day."""
    where = DATABASES[day.kind]
    early, late = day.looks[min(1, len(day.looks) - 1)], day.looks[-1]
    found = [_memory(where, name, early, late) for name in late.seen if name in early.seen]
    files = {look.hour: sum(seen.files for seen in look.seen.values()) for look in (early, late)}
    figure = f"{files[late.hour]} beside {files[early.hour]}"
    found.append(Row(_grown(where, "open files", early, late), figure, files[late.hour] / files[early.hour], FILES))
    nights = [(before, after) for before, after in zip(day.looks, day.looks[1:], strict=False) if after.idle]
    if nights:
        found += _nights(where, nights)
    message = f"{day.tasks} tasks ended as they should, {day.drawn} pages drawn, {day.notices} notices sent"
    message += f", {day.synced} requests to the tracker"
    wrong = f"; {day.wrong[0]}" if day.wrong else ""
    found.append(Row(f"{where}: things that went wrong in {late.hour} hours", message + wrong, len(day.wrong), 0))
    return found


def _memory(where: str, name: str, early: Look, late: Look) -> Row:
    before, after = (look.seen[name].pss_kb / 1024 for look in (early, late))
    figure = f"{after:.1f} MB beside {before:.1f} MB"
    return Row(_grown(where, f"memory of {name}", early, late), figure, after / before, GROWS)


def _grown(where: str, what: str, early: Look, late: Look) -> str:
    return f"{where}: {what} after hour {late.hour} / after hour {early.hour}"


def _nights(where: str, nights: Sequence[tuple[Look, Look]]) -> list[Row]:
    hours = len(nights)
    more = {
        name: grown
        for name in nights[-1][1].rows
        if (grown := sum(after.rows[name] - before.rows.get(name, 0) for before, after in nights))
    }
    added = sum(more.values())
    names = ", ".join(f"{name} {count:+d}" for name, count in more.items()) or "none in any table"
    size = sum(after.database - before.database for before, after in nights)
    started = sum(after.started - before.started for before, after in nights)
    taken = sum(
        seen.processor - before.seen[name].processor
        for before, after in nights
        for name, seen in after.seen.items()
        if name in before.seen
    )
    share = taken / (hours * HOUR)
    return [
        Row(f"{where}: rows that came in {hours} idle hours", names, float(added), 0),
        Row(f"{where}: kB that the database grew in {hours} idle hours", f"{size / 1024:.0f} kB", size / 1024, 64),
        Row(f"{where}: agents started in {hours} idle hours", str(started), float(started), 0),
        Row(
            f"{where}: percent of a core that all processes take in an idle hour",
            f"{taken / hours:.1f} s of the hour",
            100 * share,
            IDLE_PERCENT,
        ),
    ]


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def main(words: Sequence[str]) -> int:
    asked = _asked(words)
    if library() is None:
        print(NOT_RUN)
        return 1
    facts, days = machine.facts(), []
    for kind in asked.databases:
        with tempfile.TemporaryDirectory(prefix="genba-soak-", ignore_cleanup_errors=True) as folder:
            days.append(Soak(kind, asked.hours, asked.speed, Path(folder)).live())
    rows = [row for day in days for row in laws(day)]
    for day in days:
        for wrong in day.wrong:
            print(f"{DATABASES[day.kind]}: {wrong}")
    if not asked.no_ledger:
        series = {day.kind: [_kept(look) for look in day.looks] for day in days}
        seconds = {day.kind: round(day.seconds) for day in days}
        about = _ABOUT.format(speed=asked.speed)
        ledgers.write("soak", about, "make soak", rows, machine=facts, hours=series, seconds=seconds)
        page.write()
    return report(rows)


def _kept(look: Look) -> dict[str, Any]:
    result = asdict(look)
    result["rows"] = sum(look.rows.values())
    result["seen"] = {name: seen._asdict() for name, seen in look.seen.items()}
    return result


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="A day in the life of a fleet.")
    parser.add_argument("--hours", type=float, default=24.0, help="how long the day is, by its own clock")
    parser.add_argument("--speed", type=float, default=SPEED, help="how fast the clock runs while nothing is under way")
    parser.add_argument("--databases", nargs="+", choices=list(DATABASES), default=list(DATABASES))
    parser.add_argument("--no-ledger", action="store_true", help="measure, and keep nothing")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
