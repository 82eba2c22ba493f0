"""A repository on a small disk, a database and its tasks, read without the product."""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import yaml

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.goals.goal import FileExists
from genba.domain.tasks.task import TaskDraft
from tests.chaos import cast
from tests.chaos.plan import Kind, Part, Plan
from tests.project import TESTER, furnish

DISK_MB = 192
LEASE = 20
"""Seconds after which an external agent that was killed has left its connection too."""
_LOOK = (
    "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM events WHERE session NOT LIKE 'external-agent-%'),"
    " (SELECT count(*) FROM tasks WHERE status NOT IN ('done', 'blocked')),"
    " (SELECT count(*) FROM sessions WHERE status <> 'ended'),"
    " (SELECT count(*) FROM merge_entries WHERE status IN ('queued', 'merging', 'stuck')),"
    " (SELECT count(*) FROM events WHERE kind IN ('status_changed', 'part_began', 'part_ended', 'verified'))"
)
SETTINGS: dict[str, Any] = {
    "dod": [{"custom_script": f"sh {cast.CHECK}"}],
    "work": {"poll_seconds": 0.1, "min_free_disk_mb": 4, "min_free_memory_mb": 0, "memory_per_worker_mb": 0},
    "attempts": {"max": 2, "per_agent": 2, "backoff_seconds": 0.3},
    "merge": {"retry_seconds": 0.2},
    "workflow": {"wait_seconds": 1, "lease_seconds": LEASE},
    "verification": {"sandbox": False},
}


class Seen(msgspec.Struct, frozen=True):
    """What a look has shown."""

    events: int
    own: int
    """Events that are not of those who came by themselves."""
    open: int
    """Tasks that have no end yet."""
    sessions: int
    entries: int
    steps: int
    """Events that bring a task on. Who only comes and looks makes none."""

    @property
    def over(self) -> bool:
        return not (self.open or self.sessions or self.entries)


class Ground:
    """One round's own. `home` is where the agents leave their witnesses; the repository is on a disk that can fill."""

    def __init__(self, home: Path, plan: Plan, address: str = "") -> None:
        self.home = home
        self.plan = plan
        self.address = address
        self.disk = home / "disk"
        self.root = self.disk / "repository"
        self.file = self.root / ".genba" / "genba.db"
        self.environment = {
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GENBA_SANDBOX": "worktree",
        }
        if address:
            self.environment["GENBA_DATABASE_URL"] = address

    def make(self, begun: Path) -> None:
        """The field of the plan, in a copy of a repository that has just begun."""
        for folder in (self.disk, self.home / "tmp", self.home / "run"):
            folder.mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", str(begun), str(self.root)], check=True)
        cast.furnish(self.root, self.home, self.plan)
        (self.root / ".genba").mkdir()
        (self.root / ".genba" / "config.yaml").write_text(yaml.safe_dump(SETTINGS), encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Begin")
        if not self.address:
            furnish(self.file, engine=True)
        with Blackboard.open(self.address or str(self.file), self.root.name) as board:
            FleetBoard(board)
            for part in self.plan.parts:
                draft = TaskDraft(
                    title=f"Task {part.number}",
                    number=part.number,
                    assignee=external_agent_of(part) or part.kind,
                    dependencies=part.after,
                    goals=(FileExists(path=part.path),),
                )
                board.add(draft, TESTER)

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    @contextmanager
    def watching(self) -> Iterator[Callable[[], Seen | None]]:
        asked = Asked(self.address or str(self.file))
        try:
            yield asked.seen
        finally:
            asked.close()


def external_agent_of(part: Part) -> str:
    return f"external-agent-{part.number}" if part.kind is Kind.ASKING and part.variant % 2 else ""


class Asked:
    """A connection of our own, opened again when it was cut."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._connection: Any = None

    def rows(self, statement: str) -> list[tuple[Any, ...]] | None:
        try:
            if self._connection is None:
                self._connection = self._opened()
            return list(self._connection.execute(statement).fetchall())
        except (sqlite3.Error, psycopg.Error):
            self.close()
            return None

    def _opened(self) -> Any:
        if self.address.startswith("postgres"):
            return psycopg.connect(self.address, autocommit=True)
        return sqlite3.connect(f"file:{self.address}?mode=ro", uri=True, timeout=30)

    def seen(self) -> Seen | None:
        found = self.rows(_LOOK)
        return Seen(*found[0]) if found else None

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error, psycopg.Error):
                self._connection.close()
            self._connection = None


def begin(folder: Path) -> Path:
    """The repository that every round begins as."""
    root = folder / "begun"
    words = ["git", "init", "-q", "-b", "main", str(root)]
    subprocess.run(words, check=True, env={**os.environ, "GIT_TEMPLATE_DIR": ""})
    for name, value in (("user.name", "Chaos"), ("user.email", "chaos@localhost"), ("gc.auto", "0")):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("/.genba/genba.db*\n", encoding="utf-8")
    return root


@contextmanager
def small_disk(place: Path) -> Iterator[bool]:
    """A disk of its own, where this machine lets us have one. Says whether it does."""
    place.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0755", "genba-chaos", str(place)]
    able = os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield able
    finally:
        if able:
            subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)
