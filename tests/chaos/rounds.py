"""Rounds, one after the other, each whole: made, played, judged, taken away. `python -m tests.chaos.rounds` hears one
order a line and answers with one line for each.
"""

import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psycopg

from tests.chaos.checker import check
from tests.chaos.ground import Ground, begin, small_disk
from tests.chaos.plan import End, plan
from tests.chaos.play import Played, Round
from tests.chaos.trouble import draw
from tests.faketime import Clock

CLOCK = "GENBA_TEST_CLOCK"
KEPT = "GENBA_CHAOS_KEPT"
"""The folder that rounds with findings are kept in."""

_ROOM = 512 << 20
_KEPT_TABLES = (
    "events",
    "tasks",
    "sessions",
    "merge_entries",
    "escalations",
    "agent_connections",
    "dbos.workflow_status",
)
"""Of a database on a server, which is dropped after the round."""


class Order(msgspec.Struct, frozen=True):
    """A round that is to be played."""

    seed: int
    tasks: int
    address: str = ""
    """Of an empty PostgreSQL database with its tables; else it is a file."""

    @property
    def database(self) -> str:
        return "postgres" if self.address else "sqlite"


class Outcome(msgspec.Struct, frozen=True):
    """What a round came to."""

    order: Order
    played: Played
    findings: list[str]
    """Each begins with what it is about, and a colon."""
    merges: int
    left_out: list[str]
    """Kinds of trouble that this machine does not let us make."""
    kept: str = ""
    """Where its folder was kept, if anything was found."""
    seconds: dict[str, float] = {}
    """Where its time went."""


def play(order: Order, kept: Path | None = None, clock: Clock | None = None) -> Outcome:
    """One round."""
    field, troubles = plan(order.seed, order.tasks), draw(order.seed, order.tasks)
    first = time.monotonic()
    with _folder() as home, small_disk(home / "disk") as full:
        ground = Ground(home, field, order.address)
        ground.make(begin(home))
        round_ = Round(ground, troubles, full=full, clock=clock)
        began = time.monotonic()
        try:
            played = round_.play()
            findings = [f"play: {problem}" for problem in played.problems]
        except Exception:  # noqa: BLE001  (whatever it is, the round has failed and is kept)
            played, findings = round_.played, [f"play: {traceback.format_exc()}"]
        judging = time.monotonic()
        found = check(ground.root, order.address or str(ground.file), field, home)
        findings += [f"{finding.law}: {finding.what}" for finding in found]
        return Outcome(
            order=order,
            played=played,
            findings=findings,
            merges=sum(part.end is End.MERGED for part in field.parts),
            left_out=[*([] if full else ["disk"]), *(["clock"] if troubles.clock and clock is None else [])],
            kept=_keep(home, order, kept, played, findings) if findings and kept is not None else "",
            seconds={"making": began - first, "playing": judging - began, "judging": time.monotonic() - judging},
        )


@contextmanager
def _folder() -> Iterator[Path]:
    """In memory, where there is such a place."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    place = memory if roomy else None
    folder = Path(tempfile.mkdtemp(prefix="genba-chaos-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(home: Path, order: Order, kept: Path, played: Played, findings: list[str]) -> str:
    """Everything of a round that has failed, with its story."""
    place = kept / f"{order.database}-{order.seed}"
    shutil.rmtree(place, ignore_errors=True)
    kept.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(home), str(place)], check=False)
    if order.address:
        with psycopg.connect(order.address) as connection:
            for table in _KEPT_TABLES:
                rows = connection.execute(f"SELECT to_jsonb(t)::text FROM {table} t ORDER BY 1".encode()).fetchall()
                (place / f"{table}.jsonl").write_text("".join(f"{row[0]}\n" for row in rows), encoding="utf-8")
    (place / "story.txt").write_text("\n".join([*findings, "", *played.story, ""]), encoding="utf-8")
    return str(place)


class Handed(Clock):
    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._shown = mmap.mmap(file.fileno(), 0)
        self._set = (time.monotonic_ns(), 0, 0, 1.0)
        self._count = 1


def main() -> None:
    kept = Path(os.environ[KEPT]) if os.environ.get(KEPT) else None
    clock = Handed(Path(os.environ[CLOCK])) if os.environ.get(CLOCK) else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was mounted and started is taken away
    for line in sys.stdin.buffer:
        outcome = play(msgspec.json.decode(line, type=Order), kept, clock)
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
