"""Deaths of a fleet, and what must be true after any of them."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from genba.connections.detached.job_dir import questions
from genba.connections.git.repository.layout import RepositoryLayout
from genba.domain.fleet.records import EntryStatus
from genba.domain.tasks.task import TaskStatus
from tests import preloaded
from tests.fleet.yard import Yard
from tests.project import ordinary_environment

T = TypeVar("T")
SOON = 60.0
"""How long something may take that will happen, on a machine with much else to do."""
AGENT = (
    "echo $GENBA_ISSUE >> {home}/starts.txt; {line}; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt;"
    " git add -A; git commit -qm work && git rev-parse HEAD >> {home}/commits.txt; echo done"
)
"""Says that it began, does what its task is about, and says which commit it made."""


class Chaos:
    """A yard in which anybody may be killed."""

    def __init__(
        self,
        yard: Yard,
        tasks: int = 1,
        line: str = ":",
        completion: dict[str, Any] | None = None,
        **settings: object,
    ) -> None:
        self.yard = yard
        self.tasks = range(1, tasks + 1)
        self.home = yard.project.root.parent
        self.seen: set[str] = set()
        """Commits that were reachable at some time."""
        command = AGENT.format(home=self.home, line=line)
        yard.settings.update(settings)
        yard.set()
        adapter, limits = {"type": "custom", "command": command}, {"retryDelaySeconds": 0.01}
        yard.agent(adapter=adapter, limits=limits, completion=completion)
        for number in self.tasks:
            yard.task(number)

    # Who there is

    def die_at(self, boundary: str, record: Path | None = None) -> int:
        """Work until this boundary is reached, and die there; says how the process ended."""
        words = [sys.executable, "-m", "tests.fleet.dying", boundary, *([str(record)] if record is not None else [])]
        done = preloaded.run(
            words,
            cwd=self.yard.project.root,
            env={**ordinary_environment(), **self.yard.project.environment},
            timeout=150,
            start_new_session=True,
        )
        self.said = done.stdout + done.stderr
        return done.returncode

    def supervisors(self) -> list[int]:
        """Those who hold an agent right now."""
        root = self.yard.project.root
        runs = RepositoryLayout(root, root / ".git", root / ".git").run_folder("any").parent
        folders = list(runs.iterdir()) if runs.is_dir() else []
        holders = [question.holder() for folder in folders for question in questions(folder) if question.is_held()]
        return [holder.process for holder in holders if holder is not None]

    def agents(self) -> list[int]:
        """Processes of agents, the first of each. Commands of goals are none."""
        mark, inside = b"GENBA_ISSUE=", str(self.home).encode()
        found = [pid for pid, environment, command in processes() if mark in environment and inside in environment]
        return [pid for pid in found if parent(pid) not in found]

    def nurseries(self) -> list[int]:
        holders = set(self.supervisors())
        mark = f"HOME={self.home}\0".encode()
        return [
            pid
            for pid, environment, command in processes()
            if mark in environment and b"genba.wiring.sessions.fork_server" in command and pid not in holders
        ]

    def anybody(self) -> list[str]:
        """Everybody who was started for this project."""
        mark = f"HOME={self.home}\0".encode()
        return [
            f"{pid} {command.replace(bytes(1), b' ').decode('utf-8', 'replace')}"
            for pid, environment, command in processes()
            if mark in environment or (b"GENBA_RUN=" in environment and str(self.home).encode() in environment)
        ]

    # What must be true

    def check_sane(self) -> None:
        """Right after a death: nothing is broken, and everybody can look."""
        self._check_whole()
        self.yard.genba("sessions")
        self.seen |= self._reachable()
        merged = self.merges()
        assert all(count == 1 for count in merged.values()), merged
        with self.yard.board() as board:
            for number in self.tasks:
                task = board.board.get(number)
                running = [session for session in board.sessions(number) if session.status == "running"]
                assert len(running) <= 1, running
                assert task.status is not TaskStatus.DONE or merged[number] == 1

    def _check_whole(self) -> None:
        """An agent that still commits may come between what git lists and what it follows. What is broken stays so."""
        words = ["git", "fsck", "--connectivity-only", "--no-dangling", "--no-progress"]
        for _ in range(5):
            done = subprocess.run(words, cwd=self.yard.project.root, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
        raise AssertionError(done.stdout + done.stderr)

    def check_done(self, starts: int | None = None, most: int | None = None) -> None:
        """In the end: every task is done as if nothing had happened."""
        yard = self.yard
        assert set(yard.statuses().values()) == {TaskStatus.DONE}, yard.statuses()
        assert self.merges() == Counter(self.tasks), yard.landed()
        for number in self.tasks:
            assert yard.project.git("show", f"main:task-{number}.txt") == str(number)
            assert yard.project.read(f"task-{number}.txt") == f"{number}\n"
        began = Counter(int(word) for word in yard.started())
        if starts is not None:
            assert began == Counter(dict.fromkeys(self.tasks, starts)), began
        assert all(began[number] >= 1 for number in self.tasks), began
        assert most is None or began.total() <= most, began
        self.check_commits()
        trees = yard.project.git("worktree", "list", "--porcelain").split("\n\n")
        assert len(trees) == 1, trees
        assert yard.project.branches() == ["main"]
        assert yard.project.git("status", "--porcelain") == ""
        self._check_rows()
        self.check_no_process()

    def check_commits(self) -> None:
        """What an agent has committed, and what a ref ever led to, can be reached."""
        made = self.home / "commits.txt"
        wanted = self.seen | set(made.read_text("utf-8").split() if made.is_file() else ())
        lost = wanted - self._reachable()
        assert not lost, [self.yard.project.git("log", "-1", "--format=%h %an %s", commit) for commit in lost]

    def _reachable(self) -> set[str]:
        return set(self.yard.project.git("rev-list", "--all").split())

    def check_no_process(self) -> None:
        deadline = time.monotonic() + SOON
        while left := self.anybody() + self.yard.left_running():
            assert time.monotonic() < deadline, left
            time.sleep(0.01)

    def _check_rows(self) -> None:
        with self.yard.board() as board:
            for number in self.tasks:
                sessions = board.sessions(number)
                assert [session.outcome for session in sessions] == ["completed"], sessions
                assert [session.status for session in sessions] == ["ended"], sessions
            entries = board.entries(open_only=False)
        assert sorted(entry.task for entry in entries) == list(self.tasks), entries
        for entry in entries:
            assert entry.status is EntryStatus.MERGED, entry
            assert self.yard.project.git("merge-base", entry.landed, "main") == entry.landed

    def merges(self) -> Counter[int]:
        """How often each task has come onto main."""
        subjects = [line for line in self.yard.landed() if line.startswith("Merge")]
        return Counter(int(line.rpartition("#")[2].rstrip(")")) for line in subjects)


def on_both(deaths: Sequence[T]) -> list[tuple[str, T]]:
    """Each death on each database; `tests/tiers.py` says which of them are quick."""
    return [(database, death) for death in deaths for database in ("sqlite", "postgres")]


def end(process: int) -> bool:
    """Kill a process; False when it was gone already."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def processes() -> Iterator[tuple[int, bytes, bytes]]:
    """Everybody on this machine who lets us look: the process, its environment, its command."""
    for entry in os.listdir("/proc"):  # noqa: PTH208  (hundreds of times a round)
        if entry.isdigit():
            try:
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                yield int(entry), environment, Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0
