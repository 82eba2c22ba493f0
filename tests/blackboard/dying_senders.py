"""Sends an outbox in processes that are killed: at one point each, before and after everything that can happen.

python -m tests.blackboard.dying_senders ADDRESS FOLDER first   each point once, with a fresh project each time
python -m tests.blackboard.dying_senders ADDRESS FOLDER often   one project, and death after death until all is sent
python -m tests.blackboard.dying_senders ADDRESS FOLDER race    one project, and several who send at once
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.outbox import Outbox
from genba.connections.clock import SystemClock
from genba.coordination.tracker.outbox_sender import Sender
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.errors import RemoteUnavailable
from genba.domain.tracker.outbox import CloseIssue, PostComment, Relabel, RemoteChange
from genba.testing.doubles import ManualClock
from genba.testing.outbox_doubles import Fault, MemoryChanges
from tests.blackboard.outboxes import NOON

EFFECTS: tuple[tuple[str, RemoteChange], ...] = (
    ("c1", PostComment(issue=1, body="one")),
    ("close", CloseIssue(issue=2)),
    ("labels", Relabel(issue=1, add=("new",))),
    ("c2", PostComment(issue=1, body="two")),
)
RACERS = 4
RACING = -1
"""A life by the real clock, beside others."""
_STEPS = ("claim", "begin", "end", "postpone")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one project."""

    deaths: int
    keys: list[str]
    statuses: list[str]


class DyingOutbox(Outbox):
    def __init__(self, board: Blackboard, clock: Callable[[], datetime] | None, at: Callable[[str], None]) -> None:
        super().__init__(board.store, clock)
        self.at = at

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in _STEPS:
            return found

        def around(*arguments: Any, **named: Any) -> Any:
            self.at(name)
            done = found(*arguments, **named)
            self.at(f"{name} is written")
            return done

        return around


def place_of(address: str, project: str) -> str:
    """A file holds one project, a server many."""
    return address if "://" in address else f"{address}.{project}"


def send(address: str, project: str, file: Path, life: int, deadly: int) -> None:
    """Send all there is, and be killed at one of the points on the way."""
    points = 0

    def at(_point: str) -> None:
        nonlocal points
        points += 1
        if points == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    manual, real = ManualClock(), SystemClock()
    begun = manual.elapsed()
    board = Blackboard.open(place_of(address, project), project)
    changes = MemoryChanges(file=file, issues=(1, 2), at=at)
    if life == 0:
        changes.faults.append(Fault(error=RemoteUnavailable("502 Bad Gateway"), after=True))
    if life == RACING:
        outbox = DyingOutbox(board, None, at)
        settings = GitHubSettings(repository="acme/shop", mutation_pause_seconds=0)
        sender = Sender(outbox, changes, settings, real)
    else:
        outbox = DyingOutbox(board, lambda: NOON + timedelta(seconds=life * 10 + manual.elapsed() - begun), at)
        sender = Sender(outbox, changes, GitHubSettings(repository="acme/shop"), manual)
    asyncio.run(sender.send())
    board.close()


def in_a_process(work: Callable[[], None]) -> bool:
    """Whether it came to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.WEXITSTATUS(status) == 0, "a sender failed"
    return True


def record(address: str, project: str, times: int = 1) -> None:
    with Blackboard.open(place_of(address, project), project) as board:
        outbox = Outbox(board.store)
        for time in range(times):
            for key, change in EFFECTS:
                outbox.record(f"{key}-{time}", change)


def report(address: str, project: str, file: Path, deaths: int) -> Report:
    with Blackboard.open(place_of(address, project), project) as board:
        statuses = [str(entry.status) for entry in Outbox(board.store).list(all=True)]
    return Report(deaths=deaths, keys=MemoryChanges(file=file).keys, statuses=statuses)


def each_point_once(address: str, folder: Path) -> list[Report]:
    found = []
    for deadly in range(1, 200):
        project, file = f"dies-{deadly}", folder / f"effects-{deadly}"
        record(address, project)
        survived = in_a_process(
            lambda project=project, file=file, deadly=deadly: send(address, project, file, 0, deadly)  # type: ignore[misc]
        )
        if not survived:
            in_a_process(lambda project=project, file=file: send(address, project, file, 1, 0))  # type: ignore[misc]
        found.append(report(address, project, file, 0 if survived else 1))
        if survived:
            return found
    raise AssertionError("it never came to its end")


def death_after_death(address: str, folder: Path) -> list[Report]:
    file = folder / "effects"
    record(address, "often", 3)
    for life in range(1, 300):
        if in_a_process(lambda life=life: send(address, "often", file, life, 1 + life * 7 % 13)):  # type: ignore[misc]
            return [report(address, "often", file, life - 1)]
    raise AssertionError("it never came to its end")


def many_at_once(address: str, folder: Path) -> list[Report]:
    file = folder / "effects"
    record(address, "race", 4)
    children = []
    for _ in range(RACERS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                send(address, "race", file, RACING, 0)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert ends == [0] * RACERS, ends
    return [report(address, "race", file, 0)]


if __name__ == "__main__":
    act = {"first": each_point_once, "often": death_after_death, "race": many_at_once}[sys.argv[3]]
    sys.stdout.write(msgspec.json.encode(act(sys.argv[1], Path(sys.argv[2]))).decode())
