"""Rounds in which anybody is killed at any moment. The seed of a round is its number: the same round again is
`GENBA_CHAOS_ROUNDS=N pytest tests/fleet/test_chaos_random.py -k "round N"`.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from genba.blackboard.database.store import Statement
from genba.blackboard.fleet.fleet_board import FleetBoard
from tests.fleet.chaos import Chaos, end
from tests.fleet.yard import Yard

ROUNDS = int(os.environ.get("GENBA_CHAOS_ROUNDS", "3"))
TASKS = 2
VICTIMS = ("worker", "worker", "worker", "agent", "supervisor", "nursery", "everybody")
LONG_LIVED = ("worker", "nursery", "everybody")
_EVENTS = Statement("SELECT count(*) FROM events")
_ALL_EVENTS = 26
_LONGEST_JITTER, _SHORT_JITTER = 0.3, 0.1
_PATIENCE = 120.0


class Round:
    def __init__(self, chaos: Chaos, seed: int) -> None:
        self.chaos = chaos
        self.chance = random.Random(seed)
        self.again = 0
        """How many agents were killed, or lost who held them: so often a question may be put again."""
        self.story: list[str] = []

    def play(self) -> None:
        worker = self._start()
        for _ in range(self.chance.randint(1, 3)):
            victim = self.chance.choice(VICTIMS)
            jitter = self.chance.uniform(0, _LONGEST_JITTER if victim in LONG_LIVED else _SHORT_JITTER)
            self._wait(worker, victim, self.chance.random(), jitter)
            self._kill(victim, worker)
            if worker.poll() == 0:
                return
            if worker.returncode is not None:
                assert worker.returncode == -signal.SIGKILL, self.story
                self.chaos.check_sane()
                worker = self._start()
        assert worker.wait(_PATIENCE) == 0, self.story

    def _start(self) -> "subprocess.Popen[bytes]":
        return self.chaos.yard.start("--until-empty", "--workers", str(TASKS))

    def _wait(self, worker: "subprocess.Popen[bytes]", victim: str, share: float, jitter: float) -> None:
        """Until the victim lives and, where it lives long, a share of the rest has happened; and then a little."""
        with self.chaos.yard.board() as board:
            now = _events(board)
            wanted = now + int(share * max(0, _ALL_EVENTS - now)) if victim in LONG_LIVED else now
            deadline = time.monotonic() + _PATIENCE
            while worker.poll() is None and (_events(board) < wanted or not self._found(victim, worker)):
                assert time.monotonic() < deadline, self.story
                time.sleep(0.005)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(jitter)

    def _found(self, victim: str, worker: "subprocess.Popen[bytes]") -> list[int]:
        alive = [worker.pid] if worker.poll() is None else []
        match victim:
            case "worker":
                return alive
            case "agent":
                return self.chaos.agents()
            case "supervisor":
                return self.chaos.supervisors()
            case "nursery":
                return self.chaos.nurseries()
            case _:
                return alive + self.chaos.nurseries() + self.chaos.supervisors() + self.chaos.agents()

    def _kill(self, victim: str, worker: "subprocess.Popen[bytes]") -> None:
        found = self._found(victim, worker)
        chosen = found if victim == "everybody" else self.chance.sample(found, min(1, len(found)))
        if victim in ("agent", "supervisor", "everybody"):
            self.again += len(self.chaos.supervisors()) if victim == "everybody" else 1
        killed = [process for process in chosen if end(process)]
        self.story.append(f"{victim}: {'killed' if killed else 'nobody there'}")
        if worker.pid in killed:
            worker.wait()


def _events(board: FleetBoard) -> int:
    row = board.store.read(lambda tx: tx.one(_EVENTS))
    return int(row[0]) if row is not None else 0


@pytest.mark.parametrize("seed", range(1, ROUNDS + 1), ids=lambda seed: f"round {seed}")
def test_a_death_at_any_moment_changes_the_end_of_no_task(yard: Yard, seed: int) -> None:
    chaos = Chaos(yard, TASKS, line="sleep 0.2")
    played = Round(chaos, seed)

    played.play()

    sys.stdout.write(f"{played.story}\n")
    chaos.check_done(most=TASKS + played.again)
