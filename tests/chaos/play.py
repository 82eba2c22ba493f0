"""One round: a field, a fleet at work on it, and everything that its seed has in store for them."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from tests import preloaded
from tests.chaos.crowd import Crowd
from tests.chaos.external_agents import Guests
from tests.chaos.ground import LEASE, Asked, Ground, Seen
from tests.chaos.trouble import Kind, Lock, Trouble, Troubles
from tests.faketime import Clock
from tests.fleet.chaos import end
from tests.preloaded import GENBA, ordinary_environment

WORKERS = {1: 6, 3: 3}
"""By the number of processes: the sessions of each."""
_ENDS = (0, 1)
"""With what `genba work` may end: with nothing left to do, or with something that a person has to decide."""
_CUT_OFF = 5
"""With what it ends as well whose connections are cut while it begins."""
PATIENCE = 60.0
"""So long nothing may happen at all, on a machine with much else to do."""
_LOOKS = 0.05
_REST = 0.5
_MOST_RETURNS = 12
_MOST_HITS = 2

_OF_THE_FLEET = re.compile(r"worktrees/genba-(\d+)-|refs/heads/genba/(\d+)-")
"""What is not the user's, and the task that it belongs to."""
_UNFORESEEN = re.compile(r"^Traceback |GENBA_DEBUG|nobody foresaw|unexpected error:")
_BOUND = "SELECT id FROM agent_connections WHERE status = 'active' AND run <> '' AND NOT spawned"
_ASKED = (
    "SELECT t.number, e.question FROM escalations e JOIN tasks t ON t.id = e.task_id"
    " WHERE e.status = 'open' ORDER BY t.number"
)


class Played(msgspec.Struct, kw_only=True):
    """What a round came to, before anybody has judged it."""

    story: list[str] = []
    happened: dict[str, int] = {}
    missed: dict[str, int] = {}
    recovered: list[float] = []
    seconds: float = 0.0
    returns: int = 0
    """How often the fleet had ended by itself with something left, and was started again."""
    approved: int = 0
    died_at: list[str] = []
    problems: list[str] = []
    """What went wrong already while it was played."""


class Worker:
    """One process of the fleet, and those who come in its place."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.boundary = ""
        self.rests = 0.0
        """When it is started again, while there is nothing for it to do."""


class Round:
    """Plays one."""

    def __init__(self, ground: Ground, troubles: Troubles, *, full: bool, clock: Clock | None = None) -> None:
        self.ground = ground
        self.crowd = Crowd(ground.root, ground.home)
        self.waiting = list(troubles.those)
        self.full = full
        """Whether the disk can be filled."""
        self.clock = clock
        self.played = Played()
        self.happened: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.hits: Counter[int] = Counter()
        self.locks: dict[Path, str] = {}
        names = ["host-a", "host-b", "host-c"] if ground.address else [""]
        self.each = WORKERS[len(names)]
        self.workers = [Worker(name, ground.home / f"work{name}.log") for name in names]
        self.began = 0.0
        self.last = (0.0, 0)
        """When a task was brought on last, and how many such events there were then."""
        self.dead_at: tuple[float, int] | None = None
        self.look: Callable[[], Seen | None] = lambda: None
        self.first = troubles.first
        self.threads: list[threading.Thread] = []
        self.external_agents = Guests(ground)

    def play(self) -> Played:
        self.began = time.monotonic()
        try:
            with self.ground.watching() as self.look:
                for worker in self.workers:
                    self._start(worker, self.first if worker is self.workers[0] else "")
                self.external_agents.come()
                self._watch()
            self._stop()
        finally:
            self._end_all()
        self.played.problems += [*self.external_agents.problems, *unforeseen(self.ground.home)]
        self.played.seconds = time.monotonic() - self.began
        self.missed[Kind.BOUNDARY] += sum(bool(worker.boundary) for worker in self.workers)
        self.played.happened, self.played.missed = dict(self.happened), dict(self.missed)
        return self.played

    def _watch(self) -> None:
        due = 0.0
        self.last = (time.monotonic(), 0)
        while True:
            seen = self.look()
            now = time.monotonic()
            if seen is not None and seen.steps != self.last[1]:
                self.last = (now, seen.steps)
            if now - self.last[0] > PATIENCE:
                self.played.problems.append(f"nothing has been brought on for {PATIENCE:g} s: {seen}")
                return
            if seen is not None:
                self._recovered(seen)
                if seen.over:
                    self.missed.update(trouble.kind for trouble in self.waiting)
                    return
                if self.waiting and seen.events >= self.waiting[0].at:
                    due = due or now + self.waiting[0].jitter
                    if now >= due:
                        due = 0.0
                        self._happen(self.waiting.pop(0))
            self._look_after()
            self._look_after_locks()
            self.external_agents.look_after()
            time.sleep(_LOOKS)

    # The fleet

    def _start(self, worker: Worker, boundary: str = "") -> None:
        words = [str(GENBA), "work", "--until-empty", "--workers", str(self.each)]
        if boundary:
            words = [sys.executable, "-m", "tests.chaos.mortal", boundary, str(self.each)]
        self.missed[Kind.BOUNDARY] += bool(worker.boundary)
        worker.boundary = boundary
        environment = {**ordinary_environment(), **self.ground.environment}
        if worker.name:
            environment["GENBA_EXECUTOR"] = worker.name
        with worker.log.open("ab") as log:
            worker.process = preloaded.start(
                words, cwd=self.ground.root, env=environment, stdout=log.fileno(), stderr=log.fileno()
            )

    def _look_after(self) -> None:
        for worker in self.workers:
            code = worker.process.poll() if worker.process is not None else 0
            if code is None or (worker.rests and time.monotonic() < worker.rests):
                continue
            worker.rests = 0.0
            if code == -signal.SIGKILL:
                self._died_at_boundary(worker)
            elif self.external_agents.busy and worker.process is not None:
                worker.rests = time.monotonic() + _REST  # nothing is left but what others do, or a person
                worker.process = None
                self._decide()
                continue
            elif worker.process is not None:
                self._returned(worker, code)
                worker.rests = time.monotonic() + _REST  # what it ended for may take a while
                worker.process = None
                continue
            self._start(worker)

    def _died_at_boundary(self, worker: Worker) -> None:
        if worker.boundary:
            self._tell(Kind.BOUNDARY, f"died at {worker.boundary}")
            self.played.died_at.append(worker.boundary)
            worker.boundary = ""
            self._died()

    def _returned(self, worker: Worker, code: int) -> None:
        """It has ended by itself, and says what a person should do."""
        self.played.returns += 1
        output = worker.log.read_text("utf-8", "replace").splitlines()[-4:]
        self.played.story.append(f"{self._at()} genba work {worker.name} ended with {code}: {' / '.join(output)}")
        if code not in _ENDS and not (code == _CUT_OFF and any("cannot be reached" in line for line in output)):
            self.played.problems.append(f"genba work {worker.name} ended with {code}")
        for lock, name in list(self.locks.items()):
            if not _OF_THE_FLEET.search(name):
                self._remove(lock, "genba work had ended")
        self._decide()
        if self.played.returns > _MOST_RETURNS:
            raise RuntimeError(f"genba work ends again and again: {output}")

    def _decide(self) -> None:
        asked = Asked(self.ground.address or str(self.ground.file))
        found = asked.rows(_ASKED) or []
        asked.close()
        for number, question in found:
            if ".lock'" in question and not _OF_THE_FLEET.search(question):
                self._genba("approve", str(number))
                self.played.approved += 1
                self.played.story.append(f"{self._at()} a person approved #{number}: {question}")

    def _genba(self, *words: str) -> None:
        environment = {**ordinary_environment(), **self.ground.environment}
        done = preloaded.run([str(GENBA), *words], cwd=self.ground.root, env=environment, timeout=PATIENCE)
        if done.returncode:
            self.played.problems.append(f"genba {' '.join(words)} ended with {done.returncode}: {done.stderr}")

    def _stop(self) -> None:
        for worker in self.workers:
            code = self._ended(worker)
            while code == -signal.SIGKILL and worker.boundary:
                self._died_at_boundary(worker)
                self._start(worker)
                code = self._ended(worker)
            if code not in (None, *_ENDS, -signal.SIGKILL):
                self.played.problems.append(f"genba work {worker.name} ended with {code}")
        for thread in self.threads:
            thread.join()
        for lock in list(self.locks):
            self._give_up(lock)
        self._sweep()

    def _ended(self, worker: Worker) -> int | None:
        """With what a worker ends that finds out that there is nothing more to do; None for one that is not there."""
        if worker.process is None:
            return None
        try:
            return worker.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.played.problems.append(f"genba work {worker.name} does not end")
            return None

    def _give_up(self, lock: Path) -> None:
        """The round is over. What is left is a fault of the fleet, but where a task waits for a person as it stands."""
        task, name = _OF_THE_FLEET.search(self.locks[lock]), self.locks[lock]
        if task is not None and lock.exists() and statuses(self.ground).get(int(task[1] or task[2])) != "blocked":
            self.played.problems.append(f"{name} is of the fleet, and the fleet has left it there")
        self._remove(lock, "the round was over")

    def _sweep(self) -> None:
        """Who came by itself and was killed has its connection until its lease is over; the server closes it then."""
        asked = Asked(self.ground.address or str(self.ground.file))
        deadline = time.monotonic() + LEASE + PATIENCE
        while asked.rows(_BOUND) and time.monotonic() < deadline:
            time.sleep(_REST)
        asked.close()

    def _end_all(self) -> None:
        self.external_agents.leave()
        for worker in self.workers:
            if worker.process is not None and worker.process.poll() is None:
                end(worker.process.pid)
                worker.process.wait()

    # What happens to it

    def _happen(self, trouble: Trouble) -> None:
        worker = self.workers[int(trouble.choice * len(self.workers))]
        match trouble.kind:
            case Kind.WORKER | Kind.BOUNDARY:
                boundary = trouble.boundary if trouble.kind is Kind.BOUNDARY else ""
                if self._kill(worker, boundary):
                    self._tell(Kind.WORKER, f"killed {worker.name}{' before ' + boundary if boundary else ''}")
            case Kind.FORK_SERVER:
                self._one_of(trouble, dict.fromkeys(self.crowd.nurseries(), 0))
            case Kind.SUPERVISOR:
                self._one_of(trouble, self.crowd.supervisors())
            case Kind.AGENT:
                self._one_of(trouble, self.crowd.agents())
            case Kind.EVERYBODY:
                self._kill_everybody()
            case Kind.SERVER:
                self._kill_server(trouble)
            case _:
                {
                    Kind.DATABASE: self._cut,
                    Kind.DISK: self._fill,
                    Kind.CLOCK: self._turn,
                    Kind.LOCK: self._leave_lock,
                }[trouble.kind](trouble)

    def _kill(self, worker: Worker, boundary: str = "") -> bool:
        if worker.process is None or worker.process.poll() is not None:
            self.missed[Kind.WORKER] += 1
            return False
        end(worker.process.pid)
        worker.process.wait()
        self._died()
        self._start(worker, boundary)
        return True

    def _one_of(self, trouble: Trouble, found: dict[int, int]) -> None:
        able = sorted(pid for pid, task in found.items() if not task or self.hits[task] < _MOST_HITS)
        if not able:
            self.missed[trouble.kind] += 1
            return
        chosen = able[int(trouble.choice * len(able))]
        self.hits[found[chosen]] += 1
        if end(chosen):
            self._tell(trouble.kind, f"killed that of task {found[chosen]}" if found[chosen] else "killed")
        else:
            self.missed[trouble.kind] += 1

    def _kill_everybody(self) -> None:
        agents, supervisors = self.crowd.agents(), self.crowd.supervisors()
        self.hits.update(set(agents.values()) | set(supervisors.values()))
        for worker in self.workers:
            if worker.process is not None:
                end(worker.process.pid)
        for pid in (*self.crowd.nurseries(), *supervisors, *agents):
            end(pid)
        self.external_agents.kill_all()
        for worker in self.workers:
            if worker.process is not None:
                worker.process.wait()
        self._died()
        for worker in self.workers:
            self._start(worker)
        self._tell(Kind.EVERYBODY, f"killed, with {len(agents)} agents")

    def _kill_server(self, trouble: Trouble) -> None:
        if self.external_agents.kill_server():
            self._tell(trouble.kind, "killed")
        else:
            self.missed[trouble.kind] += 1

    def _cut(self, trouble: Trouble) -> None:
        if self.ground.address:
            with psycopg.connect(self.ground.address, autocommit=True) as connection:
                cut = connection.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                ).fetchone()
            self._tell(trouble.kind, f"{cut[0] if cut else 0} connections were cut")
            return

        def write() -> None:
            with contextlib.closing(sqlite3.connect(self.ground.file, timeout=30, isolation_level=None)) as other:
                try:
                    other.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    return
                time.sleep(trouble.seconds)
                other.execute("ROLLBACK")

        self._meanwhile(write)
        self._tell(trouble.kind, f"somebody else writes for {trouble.seconds:.1f} s")

    def _fill(self, trouble: Trouble) -> None:
        if not self.full:
            self.missed[trouble.kind] += 1
            return
        balloon = self.ground.disk / "balloon"

        def fill() -> None:
            handle = os.open(balloon, os.O_WRONLY | os.O_CREAT)
            try:
                piece = bytes(1 << 20)
                with contextlib.suppress(OSError):
                    while True:
                        os.write(handle, piece)
                time.sleep(trouble.seconds)
            finally:
                os.close(handle)
                balloon.unlink(missing_ok=True)

        self._meanwhile(fill)
        self._tell(trouble.kind, f"no room for {trouble.seconds:.1f} s")

    def _turn(self, trouble: Trouble) -> None:
        if self.clock is None:
            self.missed[trouble.kind] += 1
            return
        self.clock.jump(trouble.hours * 3600)
        self._tell(trouble.kind, f"{trouble.hours:+g} h")

    # Locks of git

    def _leave_lock(self, trouble: Trouble) -> None:
        folder = self.ground.root / ".git"
        match trouble.lock:
            case Lock.TREE:
                able = [tree / "index.lock" for tree in sorted((folder / "worktrees").glob("*"))]
            case Lock.BRANCH:
                able = [ref.with_name(f"{ref.name}.lock") for ref in sorted((folder / "refs/heads/genba").glob("*"))]
            case plain:
                able = [folder / plain]
        if not able:
            self.missed[trouble.kind] += 1
            return
        chosen = able[int(trouble.choice * len(able))]
        try:
            os.close(os.open(chosen, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except OSError:
            self.missed[trouble.kind] += 1
            return
        self.locks[chosen] = str(chosen.relative_to(folder))
        self._tell(trouble.kind, f"{self.locks[chosen]} was left behind")

    def _look_after_locks(self) -> None:
        for lock, name in list(self.locks.items()):
            if not lock.exists():
                self.played.story.append(f"{self._at()} {name} was taken away by the fleet")
                del self.locks[lock]
                continue
            logs = self.external_agents.logs
            if not _OF_THE_FLEET.search(name):
                logs = [worker.log for worker in self.workers] + logs
            if any(str(lock) in log.read_text("utf-8", "replace") for log in logs if log.exists()):
                self._remove(lock, "somebody has told of it")

    def _remove(self, lock: Path, why: str) -> None:
        name = self.locks.pop(lock)
        lock.unlink(missing_ok=True)
        self.played.story.append(f"{self._at()} {name} was taken away by a person: {why}")

    # The story

    def _meanwhile(self, work: Any) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        self.threads.append(thread)

    def _died(self) -> None:
        seen = self.look() if len(self.workers) == 1 else None
        if seen is not None:
            self.dead_at = (self.dead_at[0] if self.dead_at is not None else time.monotonic(), seen.own)

    def _recovered(self, seen: Seen) -> None:
        if self.dead_at is not None and seen.own > self.dead_at[1]:
            self.played.recovered.append(time.monotonic() - self.dead_at[0])
            self.dead_at = None

    def _tell(self, kind: Kind, reported: str) -> None:
        self.happened[kind] += 1
        self.played.story.append(f"{self._at()} {kind}: {reported}")

    def _at(self) -> str:
        return f"{time.monotonic() - self.began:6.2f} s"


def unforeseen(home: Path) -> list[str]:
    found = []
    for log in [*sorted(home.glob("work*.log")), home / "mcp.log"]:
        for line in log.read_text("utf-8", "replace").splitlines() if log.exists() else ():
            if _UNFORESEEN.search(line):
                found.append(f"{log.name}: {line.strip()}")
    return found


def statuses(ground: Ground) -> dict[int, str]:
    asked = Asked(ground.address or str(ground.file))
    try:
        return {int(number): str(status) for number, status in asked.rows("SELECT number, status FROM tasks") or []}
    finally:
        asked.close()
