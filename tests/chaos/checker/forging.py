"""A copy of a field that all is well with, and hands to make one thing wrong in it."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.chaos.checker import Finding, check
from tests.chaos.plan import Plan

TARGET = "refs/heads/main"
_NOT_COPIED = shutil.ignore_patterns("objects", "hooks", "runs", "goals")


class Forged:
    """One copy. The objects of git are borrowed, everything else is its own."""

    def __init__(self, of: Path, place: Path, plan: Plan) -> None:
        self.home = place
        self.plan = plan
        shutil.copytree(of, place, symlinks=True, ignore=_NOT_COPIED)
        self.repository = place / "repository"
        self.folder = self.repository / ".git"
        borrowed = self.folder / "objects" / "info" / "alternates"
        borrowed.parent.mkdir(parents=True)
        borrowed.write_text(f"{of}/repository/.git/objects\n", "utf-8")
        self.database = self.repository / ".genba" / "genba.db"
        self.ends: list[Callable[[], object]] = []
        """What is to be done when it was looked at."""

    def check(self) -> list[Finding]:
        try:
            return check(self.repository, str(self.database), self.plan, self.home, patience=0)
        finally:
            for end in self.ends:
                end()

    # Git

    def git(self, *words: str, result: str = "") -> str:
        who = {f"GIT_{role}_{what}": "forger" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", *words],
            cwd=self.repository,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", **who},
            input=result,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def tip(self) -> str:
        return self.git("rev-parse", TARGET)

    def write(self, path: str, text: str) -> None:
        (self.repository / path).write_text(text, "utf-8")

    def commit(self, message: str, **files: str | None) -> str:
        """A commit of the user's own on the target, with these files; None takes one away."""
        for name, text in files.items():
            path = self.repository / f"{name.replace('_', '-')}.txt"
            path.unlink() if text is None else path.write_text(text, "utf-8")
        self.git("add", "-A", "-f", *(f"{name.replace('_', '-')}.txt" for name in files))
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.tip()

    def bring_forward(self, commit: str) -> None:
        self.git("reset", "-q", "--hard", commit)

    def log_as_if_it_had_never_been_elsewhere(self) -> None:
        """Git's log of the target tells of one move: to where it is now."""
        log = self.folder / "logs" / TARGET
        log.write_text(f"{'0' * 40} {self.tip()} forger <forger> 1 +0000\tforged\n", "utf-8")

    def landing_of(self, number: int) -> str:
        """The commit on the target that landed a task."""
        return self.git("log", "--first-parent", "-1", "--format=%H", f"--grep=^Issue: {number}$", TARGET)

    def object_file(self, name: str) -> Path:
        return self.folder / "objects" / name[:2] / name[2:]

    # SQL

    def sql(self, statement: str, *values: Any) -> list[Any]:
        connection = sqlite3.connect(self.database)
        try:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            with connection:
                return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    def one(self, statement: str, *values: Any) -> Any:
        return self.sql(statement, *values)[0][0]

    def events(self, number: int, kind: str, result: str = "%") -> list[int]:
        """The ids of events of a task, whose data is like this. The id of a task is its number here."""
        found = self.sql(
            "SELECT id FROM events WHERE task_id = ? AND kind = ? AND data LIKE ? ORDER BY id", number, kind, result
        )
        return [row[0] for row in found]

    def drop(self, event: int) -> None:
        """Without a gap in the numbers."""
        self.sql("DELETE FROM events WHERE id = ?", event)
        self._renumber()

    def double(self, event: int) -> None:
        """The same line once more, right after it."""
        self.sql("UPDATE events SET id = -id WHERE id > ?", event)
        self.sql(
            "INSERT INTO events (id, project_id, task_id, kind, actor_kind, actor_name, session, version, data,"
            " created_at) SELECT id + 1, project_id, task_id, kind, actor_kind, actor_name, session, version, data,"
            " created_at FROM events WHERE id = ?",
            event,
        )
        self.sql("UPDATE events SET id = 1 - id WHERE id < 0")

    def move(self, events: Sequence[int], after: int) -> None:
        """Lines to another place."""
        order = [row[0] for row in self.sql("SELECT id FROM events ORDER BY id") if row[0] not in events]
        at = order.index(after) + 1
        self._renumber([*order[:at], *events, *order[at:]])

    def tell(self, number: int, kind: str, data: str) -> None:
        """One more line at the end."""
        self.sql(
            "INSERT INTO events (project_id, task_id, kind, actor_kind, actor_name, session, version, data, created_at)"
            " SELECT project_id, id, ?, 'orchestrator', 'forger', '', version, ?, updated_at FROM tasks"
            " WHERE number = ?",
            *(kind, data, number),
        )

    def rename(self, old: str, new: str) -> None:
        """Wherever a commit is named, another one is."""
        places = {
            "events": ("data",),
            "merge_entries": ("commit", "landed", "tried_on"),
            "verifications": ("commit", "data"),
            "sessions": ("verified", "base", "state"),
            "artifacts": ("data",),
        }
        for table, columns in places.items():
            for column in columns:
                self.sql(f'UPDATE {table} SET "{column}" = replace("{column}", ?, ?)', old, new)

    def _renumber(self, order: Sequence[int] = ()) -> None:
        order = order or [row[0] for row in self.sql("SELECT id FROM events ORDER BY id")]
        connection = sqlite3.connect(self.database)
        try:
            with connection:
                connection.execute("UPDATE events SET id = -id")
                connection.executemany(
                    "UPDATE events SET id = ? WHERE id = ?", [(at, -old) for at, old in enumerate(order, 1)]
                )
        finally:
            connection.close()
