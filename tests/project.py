"""A project in a temporary folder, and the real `genba` on it: the door through which most tests look."""

import atexit
import functools
import json
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from genba.blackboard.database.connect import open_store
from genba.blackboard.tasks.board import Blackboard
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskDraft, TaskStatus
from tests import preloaded
from tests.fleet import engine_tables
from tests.preloaded import GENBA, ordinary_environment

__all__ = [
    "COMMIT",
    "GENBA",
    "TESTER",
    "Finished",
    "Project",
    "furnish",
    "gated",
    "ordinary_environment",
    "says",
    "until",
]

TESTER = Actor(ActorKind.HUMAN, "tester")
COMMIT = "echo work >> work.txt && git add -A && git commit -qm work"


def furnish(file: Path, engine: bool = False) -> None:
    """The tables of a blackboard, with nothing in them, where there is no file: a copy is quicker than making them.

    With those of the engine, for a project whose fleet is to work: they are not what its test is about.
    """
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_furnished(engine), file)


@functools.cache
def _furnished(engine: bool) -> Path:
    folder = tempfile.TemporaryDirectory(prefix="genba-board-")
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "genba.db"
    open_store(str(file), 30).close()
    if engine:
        engine_tables.make(str(file))
        assert [each.name for each in file.parent.iterdir()] == [file.name], "all of it is in one file"
    return file


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, f"exit {self.code}, and nothing was printed\n{self.err}"
        return json.loads(self.out)


@dataclass
class Project:
    """A repository with agents, issues and settings."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(["git", *words], cwd=cwd or self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def commit(self, message: str = "a change") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def agent(
        self,
        name: str = "worker",
        *,
        completion: dict[str, Any] | None = None,
        script: dict[str, Any] | None = None,
        steps: dict[str, Any] | None = None,
        registry: dict[str, Any] | None = None,
        prompts: dict[str, str] | None = None,
        parameters: dict[str, Any] | None = None,
        commit: bool = True,
        **runner: Any,
    ) -> None:
        """Declare an agent. By default it has one step and one iteration, and its script commits a file."""
        folder = f".agent/{name}"
        turns = {"turns": [{"do": [{"run": COMMIT}], "reply": "done"}], "repeat": True}
        sections = {
            "completion": completion or {"type": "iterationBudget", "config": {"maxIterations": 1}},
            "adapter": {"type": "scripted", "script": "script.yaml"},
            **runner,
        }
        file = {
            "name": name,
            "description": "An agent of the tests",
            "parameters": parameters or {},
            "runner": sections,
        }
        self.write(f"{folder}/agent.json", json.dumps(file))
        self.write(f"{folder}/steps_registry.json", json.dumps({"steps": steps or {"work": {}}, **(registry or {})}))
        self.write(f"{folder}/script.yaml", yaml.safe_dump(script or turns))
        for path, text in {"system.md": "You are an agent of the tests.\n", **(prompts or {})}.items():
            self.write(f"{folder}/prompts/{path}", text)
        if commit:
            self.commit(f"Declare {name}")

    @contextmanager
    def board(self) -> Iterator[Blackboard]:
        """The blackboard of the project, as the commands find it."""
        furnish(self.root / ".genba" / "genba.db")
        board = Blackboard.open(str(self.root / ".genba" / "genba.db"), self.root.name)
        try:
            yield board
        finally:
            board.close()

    def issue(
        self,
        number: int,
        title: str,
        body: str = "",
        state: str = "open",
        labels: tuple[str, ...] = (),
        **draft: Any,
    ) -> None:
        """Put a task on the blackboard."""
        exclude = self.root / ".git" / "info" / "exclude"
        exclude.parent.mkdir(exist_ok=True)
        with exclude.open("a", encoding="utf-8") as file:
            file.write("/.genba/genba.db*\n")
        with self.board() as board:
            board.add(TaskDraft(title=title, body=body, labels=labels, number=number, **draft), TESTER)
            if state == "closed":
                board.change_status(number, StatusChange(to=TaskStatus.CANCELLED, actor=TESTER))

    def issue_front(self, number: int) -> dict[str, Any]:
        """What a tracker shows of an issue."""
        with self.board() as board:
            task = board.get(number)
        state = "closed" if task.status.ended else "open"
        return {"title": task.title, "state": state, "labels": list(task.labels)}

    def sql(self, script: str) -> None:
        """Do to the database what no command would."""
        connection = sqlite3.connect(self.root / ".genba" / "genba.db")
        connection.executescript(script)
        connection.close()

    def task(self, number: int) -> Task:
        with self.board() as board:
            return board.get(number)

    def genba(self, *words: str, cwd: Path | None = None, check: int | None = None, **environment: str) -> Finished:
        """Run the real command line in a process of its own; with `check`, insist on its exit code."""
        done = preloaded.run(
            [str(GENBA), *words],
            cwd=cwd or self.root,
            env={**ordinary_environment(), **self.environment, **environment},
            timeout=300,
        )
        finished = Finished(done.returncode, done.stdout, done.stderr)
        if check is not None:
            assert finished.code == check, f"exit {finished.code}\n{finished.out}\n{finished.err}"
        return finished

    def run(self, *words: str, check: int | None = 0, **environment: str) -> dict[str, Any]:
        """`genba run … --json`, and its result."""
        done = self.genba("run", *words, "--json", check=check, cwd=None, **environment)
        result: dict[str, Any] = done.json
        return result

    def events(self, run: str | None = None) -> list[dict[str, Any]]:
        """The journal of a run; of the newest one by default."""
        if run is None:
            listed = self.genba("logs", "--json", check=0).out.splitlines()
            run = json.loads(listed[0])["run"]
        return [json.loads(line) for line in self.genba("logs", run, "--json", check=0).out.split("\n") if line]

    def printed(self, run: str | None = None) -> list[str]:
        """The lines that the agent printed, as far as the journal has them."""
        texts = [event["text"] for event in self.events(run) if event["event"] == "agent_output"]
        return [line for text in texts for line in text.split("\n")]

    def prompts(self, run: str | None = None) -> list[str]:
        """What the agent was asked, in order."""
        return [event["prompt"] for event in self.events(run) if event["event"] == "iteration_started"]

    def steps_walked(self, run: str | None = None) -> list[str]:
        return [event["step"] for event in self.events(run) if event["event"] == "iteration_finished"]

    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


def gated(*intents: str, **more: Any) -> dict[str, Any]:
    """A structured gate that allows these intents."""
    return {"allowedIntents": list(intents), **more}


def says(action: str, **more: Any) -> dict[str, Any]:
    """A structured reply that names the way on."""
    return {"next_action": {"action": action}, **more}


def until(holds: Callable[[], object], seconds: float = 90.0) -> None:
    """Wait for something that will happen, and no longer than it may take."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
