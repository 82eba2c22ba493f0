"""The blackboard beside bare SQL on the same rows."""

import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measuring import Row, clean_environment, side_by_side
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tasks.ready import READY
from genba.domain.tasks.task import Actor, ActorKind, Priority, StatusChange, TaskDraft, TaskStatus

HUMAN, ORCHESTRATOR = Actor(ActorKind.HUMAN, "bench"), Actor(ActorKind.ORCHESTRATOR, "bench")
CHANGES = 400
WRITERS, EACH = 16, 40
TASKS = 10_000


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="genba-bench-") as folder:
        return [_status_changes(Path(folder)), _writers(Path(folder)), _ready(Path(folder))]


def _status_changes(folder: Path) -> Row:
    """open → in_progress → open through the gateway; bare: the same rows by hand, no law and no check."""
    path = str(folder / "changes.db")
    board = Blackboard.open(path, "bench")
    number = board.add(TaskDraft(title="one"), HUMAN).number

    def gateway() -> None:
        for at in range(CHANGES):
            to = TaskStatus.OPEN if at % 2 else TaskStatus.IN_PROGRESS
            board.change_status(number, StatusChange(to=to, actor=ORCHESTRATOR))

    bare = _Bare(path)
    found = side_by_side(7, genba=gateway, bare=lambda: bare.changes(CHANGES))
    board.close()
    figure = f"{CHANGES / found['genba']:.0f} a second beside {CHANGES / found['bare']:.0f} bare transactions"
    return Row("a status change / a bare sqlite3 transaction", figure, found["genba"] / found["bare"], 10.0)


class _Bare:
    """The least that could be called a status change: read the row, write it with its version, write the event."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.task, self.project = self.connection.execute("SELECT id, project_id FROM tasks").fetchone()

    def changes(self, count: int) -> None:
        run = self.connection.execute
        for at in range(count):
            to = "open" if at % 2 else "in_progress"
            run("BEGIN IMMEDIATE")
            status, version = run("SELECT status, version FROM tasks WHERE id = ?", (self.task,)).fetchone()
            run("UPDATE tasks SET status = ?, version = version + 1 WHERE id = ? AND version = ?",
                (to, self.task, version))  # fmt: skip
            run("INSERT INTO events (project_id, task_id, kind, actor_kind, actor_name, version, data, created_at)"
                " VALUES (?, ?, 'status_changed', 'orchestrator', 'bench', ?, ?, '2026-01-01T00:00:00+00:00')",
                (self.project, self.task, version + 1, json.dumps({"from": status, "to": to})))  # fmt: skip
            run("COMMIT")


def _writers(folder: Path) -> Row:
    """Sixteen processes write at once, each to a task of its own and all of them to one."""
    path = str(folder / "writers.db")
    board = Blackboard.open(path, "bench")
    shared = board.add(TaskDraft(title="shared"), HUMAN).number
    own = [board.add(TaskDraft(title=f"task {at}"), HUMAN).number for at in range(WRITERS)]
    words = [sys.executable, "-m", "bench.writer", path, str(shared)]
    writers = [
        subprocess.Popen([*words, str(number), str(EACH)], env=clean_environment(), stderr=subprocess.PIPE, text=True)
        for number in own
    ]
    failed = [
        output.strip().splitlines()[-1]
        for writer in writers
        if (output := writer.communicate()[1]) or writer.returncode
    ]
    labels = len(board.get(shared).labels)
    versions = [board.get(number).version for number in own]
    lost = WRITERS * EACH - labels + sum(1 + 2 * EACH - version for version in versions)
    board.close()
    figure = f"{WRITERS * EACH * 3} writes, {len(failed)} errors, {lost} lost updates" + (
        f": {failed[0]}" if failed else ""
    )
    return Row("16 writing processes", figure, float(len(failed) + abs(lost)), 0.0)


def _ready(folder: Path) -> Row:
    path = str(folder / "ready.db")
    board = Blackboard.open(path, "bench")
    numbers: list[int] = []
    ranks = list(Priority)
    for at in range(TASKS):
        waits = (numbers[at // 2],) if at % 3 == 0 and numbers else ()
        draft = TaskDraft(title=f"task {at}", priority=ranks[at % len(ranks)], dependencies=waits)
        numbers.append(board.add(draft, HUMAN).number)
    connection = sqlite3.connect(path)
    project = connection.execute("SELECT id FROM projects").fetchone()[0]

    def first() -> None:
        Blackboard(board.store).ready()

    def bare() -> None:
        connection.execute(READY.sqlite, {"project": project, "limit": -1}).fetchall()

    def again() -> None:
        board.ready()

    count = len(board.ready())
    found = side_by_side(9, first=first, again=again, bare=bare)
    board.close()
    figure = f"{found['first'] * 1000:.0f} ms beside {found['bare'] * 1000:.0f} ms for {count} of {TASKS} tasks; "
    figure += f"asked again {found['again'] * 1000:.0f} ms"
    return Row("the ready tasks / the same SQL, bare", figure, found["first"] / found["bare"], 2.0)
