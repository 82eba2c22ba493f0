"""Rounds of chaos: `python -m tests.chaos --rounds 20`, or one of them again: `--seed 17 --database sqlite`."""

import argparse
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import msgspec

from tests.chaos.ledger import MANY_ROUNDS, OtherCodeError, keep, measured, played_before, recovery, seeds
from tests.chaos.plan import TASKS
from tests.chaos.play import Played
from tests.chaos.rounds import CLOCK, KEPT, Order, Outcome
from tests.chaos.trouble import boundaries, database_of, draw
from tests.faketime import NOT_RUN, Clock, library
from tests.preloaded import ROOT

DATABASES = ("sqlite", "postgres")
COUNTED = {
    "lost commits": "nothing lost",
    "doubled merges": "merged once",
    "false done": "no false done",
    "leftovers": "nothing left",
}
"""What is counted, by the law of the checker that it breaks."""
_CHANCES = 3
_KEPT = Path(tempfile.gettempdir()) / "genba-chaos-kept"


class Told:
    """What all rounds came to."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.began = time.monotonic()
        self._lock = threading.Lock()

    def tell(self, outcome: Outcome) -> None:
        with self._lock:
            self.outcomes.append(outcome)
            sys.stdout.write(line_of(outcome) + "\n")
            if outcome.findings:
                sys.stdout.write("".join(f"    {line}\n" for line in failed_lines(outcome)))
            sys.stdout.flush()

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.findings]

    def summary(self) -> dict[str, Any]:
        troubles: Counter[str] = Counter()
        for outcome in self.outcomes:
            troubles.update(outcome.played.happened)
        recovered = [seconds for outcome in self.outcomes for seconds in outcome.played.recovered]
        missed: Counter[str] = Counter()
        for outcome in self.outcomes:
            missed.update(outcome.played.missed)
        laws = Counter(law_of(finding) for outcome in self.outcomes for finding in outcome.findings)
        return {
            "rounds": len(self.outcomes),
            "seeds": seeds(outcome.order.seed for outcome in self.outcomes),
            "rounds with findings": len(self.failed),
            "tasks": sum(outcome.order.tasks for outcome in self.outcomes),
            "merges": sum(outcome.merges for outcome in self.outcomes),
            "troubles": dict(troubles.most_common()),
            "missed": {kind: count for kind, count in missed.most_common() if count},
            "boundaries": {
                name: sorted(
                    {at for each in self.outcomes if each.order.database == name for at in each.played.died_at}
                )
                for name in DATABASES
            },
            "approved by a person": sum(outcome.played.approved for outcome in self.outcomes),
            "ended by itself": sum(outcome.played.returns for outcome in self.outcomes),
            **{name: laws[law] for name, law in COUNTED.items()},
            "other findings": laws.total() - sum(laws[law] for law in COUNTED.values()),
            "recovered": recovery(recovered),
            "seconds": round(time.monotonic() - self.began, 1),
            "not run": sorted({kind for outcome in self.outcomes for kind in outcome.left_out}),
        }


def law_of(finding: str) -> str:
    """The law that a finding is about. What never came is another thing than what came twice."""
    law = finding.partition(":")[0]
    return "never merged" if law == "merged once" and re.search(r"never$|: 0 commits| 0 times$", finding) else law


def line_of(outcome: Outcome) -> str:
    order, played = outcome.order, outcome.played
    kinds = ", ".join(kind + (f" x{count}" if count > 1 else "") for kind, count in sorted(played.happened.items()))
    times = ", ".join(f"{name} {seconds:.1f}" for name, seconds in outcome.seconds.items())
    recovered = f", recovered {max(played.recovered):.1f} s at most" if played.recovered else ""
    left_out = f", not run: {', '.join(outcome.left_out)}" if outcome.left_out else ""
    return (
        f"round {order.seed} {order.database} {order.tasks} tasks {sum(played.happened.values())} troubles ({kinds})"
        f" {sum(outcome.seconds.values()):.1f} s ({times}){recovered}{left_out}: {len(outcome.findings)} findings"
    )


def failed_lines(outcome: Outcome) -> list[str]:
    order = outcome.order
    again = f".venv/bin/python -m tests.chaos --seed {order.seed} --tasks {order.tasks} --database {order.database}"
    lines = [*outcome.findings, *outcome.played.story, f"kept in {outcome.kept}", f"again: {again}"]
    return [part for line in lines for part in line.splitlines()]


class Players:
    """Processes that play rounds, as many as there are jobs."""

    def __init__(self, jobs: int, orders: "queue.Queue[tuple[int, str]]", tasks: int, reported: Told) -> None:
        self.orders = orders
        self.tasks = tasks
        self.told = reported
        self.done = [threading.Event() for _ in range(jobs)]
        self.databases: Databases | None = None
        self._here: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def run(self) -> None:
        """Until all is played; safe to repeat with more. Ctrl-c lets those come to their end that are under way; once
        more ends them too.
        """
        for done in self.done:
            done.clear()
            threading.Thread(target=self._play_until, args=(done,)).start()
        try:
            self._wait()
        except KeyboardInterrupt:
            sys.stdout.write("no more rounds; those under way are played to their end (ctrl-c again: ended now)\n")
            sys.stdout.flush()
            self._forget()
            try:
                self._wait()
            except KeyboardInterrupt:
                self._ended = True
                for player in list(self._here):
                    player.terminate()
                self._wait()

    def _wait(self) -> None:
        for done in self.done:
            done.wait()  # a join that was interrupted once holds its thread for ended

    def _forget(self) -> None:
        with suppress(queue.Empty):
            while True:
                self.orders.get_nowait()

    def _tell(self, outcome: Outcome) -> None:
        if not self._ended:
            self.told.tell(outcome)

    def _play_until(self, done: threading.Event) -> None:
        try:
            self._play()
        finally:
            done.set()

    def _play(self) -> None:
        usual: subprocess.Popen[bytes] | None = None
        with suppress(queue.Empty):
            while True:
                seed, database = self.orders.get_nowait()
                address = self.databases.take() if self.databases is not None and database == "postgres" else ""
                order = Order(seed, self.tasks, address)
                if draw(seed, self.tasks).clock and library() is not None:
                    self._tell(self._by_another_clock(order))
                else:
                    usual = usual if usual is not None and usual.poll() is None else self._player({})
                    self._tell(_asked(usual, order))
                if address and self.databases is not None:
                    self.databases.drop(address)
        if usual is not None:
            self._leave(usual)

    def _by_another_clock(self, order: Order) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="genba-clock-") as folder:
            player = self._player(Clock(Path(folder)).environment())
            try:
                return _asked(player, order)
            finally:
                self._leave(player)

    def _player(self, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        own = {name: value for name, value in os.environ.items() if name != CLOCK}
        player = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.rounds"],
            cwd=ROOT,
            env={**own, KEPT: str(_KEPT), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # what is typed here is not for it
        )
        self._here.add(player)
        return player

    def _leave(self, player: "subprocess.Popen[bytes]") -> None:
        assert player.stdin is not None
        with suppress(BrokenPipeError):
            player.stdin.close()
        player.wait()
        self._here.discard(player)
        assert player.stdout is not None
        player.stdout.close()


def _asked(player: "subprocess.Popen[bytes]", order: Order) -> Outcome:
    assert player.stdin is not None
    assert player.stdout is not None
    player.stdin.write(msgspec.json.encode(order) + b"\n")
    player.stdin.flush()
    line = player.stdout.readline()
    if not line:
        return Outcome(order, Played(), [f"play: who played it is gone: {player.wait()}"], 0, [])
    return msgspec.json.decode(line, type=Outcome)


class Databases:
    """One server of PostgreSQL; a database of it for each round."""

    def __init__(self, server: object) -> None:
        self._server = server
        self._lock = threading.Lock()

    def take(self) -> str:
        with self._lock:
            return str(self._server.furnished(engine=True))  # type: ignore[attr-defined]

    def drop(self, address: str) -> None:
        name = address.partition("?")[0].rpartition("/")[2]
        with self._lock:
            self._server.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")  # type: ignore[attr-defined]


@contextmanager
def databases() -> Iterator[Databases]:
    """A server for as long as it is needed, as the tests have it."""
    from tests.blackboard.conftest import served

    with served() as server:
        yield Databases(server)


def main() -> int:
    options = _options()
    wanted = DATABASES if options.database == "both" else (options.database,)
    rounds = options.rounds or (1 if options.seed else 20)
    first = options.seed or 1
    orders: queue.Queue[tuple[int, str]] = queue.Queue()
    for number in range(rounds):
        orders.put((first + number, database_of(first + number, wanted)))
    if options.add and (twice := played_before(range(first, first + rounds))):
        sys.stderr.write(f"error: {twice} were played before, and would be counted twice\n")
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    result, of = Told(), measured()
    if library() is None:
        sys.stdout.write(f"{NOT_RUN}\n")
    players = Players(options.jobs, orders, options.tasks, result)
    with databases() if "postgres" in wanted else nullcontext(None) as players.databases:
        players.run()
        if rounds >= MANY_ROUNDS and len(result.outcomes) == rounds and len(wanted) == len(DATABASES):
            for number in missed(result.outcomes, first + rounds):
                orders.put((number, database_of(number, wanted)))
            players.run()
    found = result.summary()
    at = {name: f"{len(each)} of {len(boundaries())}" for name, each in found["boundaries"].items()}
    shown = {**found, "recovered": {**found["recovered"], "each": "…"}, "boundaries": at}
    sys.stdout.write("".join(f"{name}: {json.dumps(value)}\n" for name, value in shown.items()))
    if options.write_ledger or options.add:
        command = f"make chaos ROUNDS={min(rounds, len(result.outcomes))}" + (f" SEED={first}" if options.seed else "")
        try:
            keep(found, command, of, options.add)
        except OtherCodeError:
            sys.stderr.write("error: src or tests/chaos was changed meanwhile; no ledger was written\n")
            return 1
    return 1 if result.failed or len(result.outcomes) < rounds else 0


def missed(played: list[Outcome], after: int) -> list[int]:
    there = {(each.order.database, at) for each in played for at in each.played.died_at}
    wanted = {(name, at): _CHANCES for name in DATABASES for at in boundaries() if (name, at) not in there}
    found = []
    for seed in range(after, after + _CHANCES * MANY_ROUNDS):
        one = (database_of(seed, DATABASES), draw(seed, TASKS).first)
        if wanted.get(one):
            wanted[one] -= 1
            found.append(seed)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=0, help="how many; by default 20, or one with --seed")
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the others follow")
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--database", choices=(*DATABASES, "both"), default="both")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores + 1, help="rounds at one time; one waits a third of its time")
    parser.add_argument("--write-ledger", action="store_true", help="keep what was found in docs/measured/chaos.json")
    parser.add_argument("--add", action="store_true", help="the same, on top of what was found before of the same code")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
