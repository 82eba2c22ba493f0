"""The ground of a soak: a project, its database, the processes that live on it, what is seen from outside."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Protocol

import yaml
from tests.faketime import Clock
from tests.standins.github.server import GitHub

from bench import postgres
from bench.measuring import clean_environment
from genba.blackboard.tasks.board import Blackboard
from genba.domain.sessions.sandbox import SANDBOX_VARIABLE

GENBA = Path(sys.executable).parent / "genba"
TOKEN = "operator-of-the-soak"
DOORS = {"work": ("work", "--workers", "2", "--plain"), "serve": ("serve", "--port", "0"),
         "mcp": ("mcp", "--http", "--port", "0")}  # fmt: skip
"""Who lives for the whole day, by the name that the report gives it."""
_TROUBLE = re.compile(r"Traceback|\block(ed)?\b.*database|database is locked|deadlock|serializ|timed out|Error:", re.I)
_BUSY = """
SELECT (SELECT count(*) FROM sessions WHERE status = 'running')
     + (SELECT count(*) FROM merge_entries WHERE status IN ('queued', 'merging'))
     + (SELECT count(*) FROM notices WHERE status IN ('pending', 'sending'))
     + (SELECT count(*) FROM tracker_state WHERE name = 'lease:sync')
"""
_TICKS = os.sysconf("SC_CLK_TCK")
SHOP, _OCTOCAT = "acme/shop", "token-of-octocat"


# ── the database ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Tables(Protocol):
    """A database, read without Genba."""

    address: str

    def ask(self, question: str) -> list[tuple[Any, ...]]: ...

    def names(self) -> list[str]: ...

    def size(self) -> int: ...


class FileTables:
    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self._line: sqlite3.Connection | None = None

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        if self._line is None:
            self._line = sqlite3.connect(f"file:{self.address}?mode=ro", uri=True, timeout=30, check_same_thread=False)
        return self._line.execute(question).fetchall()

    def names(self) -> list[str]:
        return [name for (name,) in self.ask("SELECT name FROM sqlite_master WHERE type = 'table'")]

    def size(self) -> int:
        """What is in it: a log that is written over again and again does not count."""
        pages, free, each = (self.ask(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size"))
        return int((pages - free) * each)


class ServerTables:
    def __init__(self, address: str) -> None:
        import psycopg  # noqa: PLC0415  (only where there is a server)

        self.address = address
        self._line = psycopg.connect(address, autocommit=True)

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        return self._line.execute(question.encode()).fetchall()

    def names(self) -> list[str]:
        found = self.ask(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        return [f'"{schema}"."{name}"' for schema, name in found]

    def size(self) -> int:
        return int(self.ask("SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relkind IN ('r', 't')")[0][0])


@contextlib.contextmanager
def database(kind: str, root: Path) -> Iterator[Tables]:
    """SQLite beside the project, or a server of its own. A server uses the real clock."""
    if kind == "sqlite":
        yield FileTables(root / ".genba" / "genba.db")
        return
    with postgres.server() as address:
        yield ServerTables(address)


def is_busy(tables: Tables) -> bool:
    """Whether anything is under way that takes real time."""
    return bool(tables.ask(_BUSY)[0][0])


def open_tasks(tables: Tables) -> int:
    return int(tables.ask("SELECT count(*) FROM tasks WHERE status NOT IN ('done', 'cancelled')")[0][0])


def has_asked(tables: Tables, number: int) -> bool:
    return bool(tables.ask(f"SELECT 1 FROM tasks WHERE number = {number:d} AND status = 'blocked'"))


def rows_of(tables: Tables) -> dict[str, int]:
    names = tables.names()
    if not names:
        return {}
    counted = tables.ask(" UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in names))
    found = {name.replace('"', "").removeprefix("public."): int(count) for name, count in counted}
    # A lease is a row that comes and goes with who holds it.
    found["tracker_state"] -= int(tables.ask("SELECT count(*) FROM tracker_state WHERE name LIKE 'lease:%'")[0][0])
    return found


# ── the project ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Ground:
    """A repository with one agent for each way to behave. Every agent writes down that it was started."""

    def __init__(self, folder: Path, tables: Tables, webhook: str, tracker: str = "") -> None:
        self.root = folder / "repository"
        self.starts = folder / "starts.txt"
        self.tables = tables
        self.tracker = tracker
        self._repository()
        self._write(".genba/config.yaml", yaml.safe_dump(self._settings(webhook, tracker)))
        begun = f"echo $GENBA_ISSUE >> {self.starts}"
        work = "echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt; git add -A; git commit -qm work"
        dies = f"test -f {folder}/died-$GENBA_ISSUE || {{ touch {folder}/died-$GENBA_ISSUE; kill -9 $PPID; exit 1; }}"
        asks = {"status": "blocked", "reason": "Which port shall it listen on?"}
        done = {"do": [{"run": f"{begun}; {work}"}], "reply": "done"}
        self._scripted("honest", [done], repeat=True)
        self._scripted("crashing", [{"do": [{"run": f"{begun}; {dies}; {work}"}], "reply": "done"}], repeat=True)
        self._scripted("asking", [{"do": [{"run": begun}], "reply": asks}, {"expect": ["Take 8080."], **done}])
        refused = f"""touch {folder}/refused; printf '{{"text": "", "retry_after": 7200}}' > {{reply_file}}"""
        line = f"{begun}; if [ -f {folder}/refused ]; then {work}; echo done; else {refused}; fi"
        self._agent("limited", {"type": "custom", "command": line})
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Begin")

    def _repository(self) -> None:
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.root)], check=True)
        for name, value in (("user.name", "Soak"), ("user.email", "soak@localhost"), ("gc.auto", "0")):
            self.git("config", name, value)
        with (self.root / ".git" / "info" / "exclude").open("a") as file:
            file.write("/.genba/genba.db*\n/.worktrees/\n")

    @staticmethod
    def _settings(webhook: str, tracker: str) -> dict[str, Any]:
        github = {"repository": SHOP, "url": tracker, "label": "fleet", "sync_seconds": 300}
        return {
            "work": {"agent": "honest", "memory_per_worker_mb": 0},
            "attempts": {"backoff_seconds": 600},
            "notify": {"webhook": {"url": webhook}, "reminder_hours": 6},
            **({"tracker": {"github": github}} if tracker else {}),
        }

    def _scripted(self, name: str, turns: list[dict[str, Any]], repeat: bool = False) -> None:
        self._agent(name, {"type": "scripted", "script": "script.yaml"})
        self._write(f".agent/{name}/script.yaml", yaml.safe_dump({"turns": turns, "repeat": repeat}))

    def _agent(self, name: str, adapter: dict[str, Any]) -> None:
        completion = {"type": "iterationBudget", "config": {"maxIterations": 1}}
        runner = {"completion": completion, "adapter": adapter, "limits": {"retries": 0}}
        issue = {"issue": {"type": "number"}}
        file = {"name": name, "description": "An agent of the soak", "parameters": issue, "runner": runner}
        self._write(f".agent/{name}/agent.json", json.dumps(file))
        self._write(f".agent/{name}/steps_registry.json", json.dumps({"steps": {"work": {}}}))
        self._write(f".agent/{name}/prompts/system.md", "Be quick.\n")

    def _write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, text=True, check=True, capture_output=True)
        return done.stdout.strip()

    @contextlib.contextmanager
    def board(self) -> Iterator[Blackboard]:
        with Blackboard.open(self.tables.address, self.root.name) as board:
            yield board

    def started(self) -> int:
        return len(self.starts.read_text("utf-8").split()) if self.starts.is_file() else 0

    def landed(self) -> list[str]:
        names = self.git("ls-tree", "--name-only", "main").splitlines()
        return sorted(name for name in names if name.startswith("task-"))


# ── who lives there ──────────────────────────────────────────────────────────────────────────────────────────────────


class Seen(NamedTuple):
    """One process as the kernel shows it."""

    pss_kb: int
    files: int
    threads: int
    processor: float


class Household:
    """The processes of the day, all by the same clock, each with a log."""

    def __init__(self, ground: Ground, clock: Clock, postgres: bool) -> None:
        self.ground = ground
        self.clock = clock
        self.folder = ground.root.parent
        self.environment = {
            **clean_environment(),
            **clock.environment(),
            SANDBOX_VARIABLE: "worktree",
            "GENBA_SERVE_TOKEN": TOKEN,
            "GENBA_GITHUB_TOKEN": _OCTOCAT,
            "GENBA_GITHUB_HOST": ground.tracker,
            **({"GENBA_DATABASE_URL": ground.tables.address} if postgres else {}),
        }
        self.doors: dict[str, subprocess.Popen[bytes]] = {}

    def open(self) -> None:
        for name, words in DOORS.items():
            with self.log(name).open("wb") as log:
                self.doors[name] = subprocess.Popen(
                    [str(GENBA), *words],
                    cwd=self.ground.root,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def address(self, name: str) -> str:
        """Where a door listens, as it says in its log."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = re.search(r"http://127\.0\.0\.1:\d+", self.log(name).read_text("utf-8"))
            if found:
                return found[0]
            time.sleep(0.05)
        raise RuntimeError(f"{name} does not listen: {self.log(name).read_text('utf-8')}")

    def genba(self, *words: str) -> str:
        """A command of a person, at the time of the day."""
        done = subprocess.run(
            [str(GENBA), *words],
            cwd=self.ground.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"genba {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def seen(self) -> dict[str, Seen]:
        """Who is there now. What `genba work` keeps beside itself counts as one more."""
        found = {name: _seen(door.pid) for name, door in self.doors.items()}
        beside = [_seen(child) for child in _children(self.doors["work"].pid)]
        if beside:
            sums = [sum(values) for values in zip(*beside, strict=True)]
            found["fork server"] = Seen(int(sums[0]), int(sums[1]), int(sums[2]), float(sums[3]))
        return found

    def close(self) -> dict[str, int]:
        """Ask everybody to leave; by name, how they went. Who does not go is killed, and that shows."""
        for door in self.doors.values():
            door.send_signal(signal.SIGTERM)
        codes = {}
        for name, door in self.doors.items():
            try:
                codes[name] = door.wait(60)
            except subprocess.TimeoutExpired:
                door.kill()
                codes[name] = door.wait()
        return codes

    def left(self) -> list[str]:
        """Processes of this household that are still there. Who is about to go has a moment for it."""
        deadline = time.monotonic() + 10
        while (found := self._living()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def _living(self) -> list[str]:
        mark, found = str(self.clock.path).encode(), []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes():
                        found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        return found

    def trouble(self) -> list[str]:
        """Lines of logs that should not be there."""
        return [
            f"{name}: {line}"
            for name in DOORS
            for line in self.log(name).read_text("utf-8", "replace").splitlines()
            if _TROUBLE.search(line)
        ]


def _seen(process: int) -> Seen:
    place = Path(f"/proc/{process}")
    rollup = (place / "smaps_rollup").read_text("ascii")
    pss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    words = (place / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    processor = (int(words[11]) + int(words[12])) / _TICKS
    return Seen(pss, len(list((place / "fd").iterdir())), int(words[17]), processor)


def _children(process: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += [int(word) for word in (task / "children").read_text("ascii").split()]
    return found


# ── the tracker and the webhook ────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def tracker() -> Iterator[tuple[str, GitHub]]:
    """A GitHub stand-in with three issues outside the project: its address and its requests."""
    with GitHub() as hub:
        hub.add_token(_OCTOCAT, "octocat")
        hub.add_repository(SHOP)
        hub.add_issues(SHOP, 3)
        yield hub.url, hub


@contextlib.contextmanager
def mailbox() -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """A receiver of notifications: its address, and what it got."""
    came: list[Mapping[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name of the one that is overridden)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
