"""A real SQLite file, or a real PostgreSQL server, and executors as real processes on it."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import preloaded
from tests.blackboard.conftest import Postgres, postgres
from tests.coordination.waiting import DEADLINE, until
from tests.preloaded import ordinary_environment
from tests.project import furnish

__all__ = ["Executor", "Postgres", "address", "empty", "executor", "executor_at", "orders", "postgres"]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def empty() -> None:
    """For tests of migrations: their database has no tables."""


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database with the tables of a blackboard and of the engine, and with nothing in them."""
    nothing = "empty" in request.fixturenames
    if request.param == "sqlite":
        path = tmp_path / "board.db"
        if not nothing:
            furnish(path, engine=True)
        return str(path)
    server: Postgres = request.getfixturevalue("postgres")
    return server.database() if nothing else server.furnished(engine=True)


class Executor:
    def __init__(self, name: str, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.process = process
        self._folder = folder
        self._told = folder / f"{name}-{process.pid}.told"

    def said(self) -> list[str]:
        return self._told.read_text().splitlines() if self._told.exists() else []

    def news(self) -> list[str]:
        return [line.partition(" ")[0] for line in self.said() if line.startswith("engine.")]

    def is_open(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}: {self.complaint()}")
        return "open" in self.said()

    def complaint(self) -> str:
        return (self._folder / f"{self.name}.stderr").read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)

    def leave(self) -> None:
        """As Ctrl-C does: suspend, and leave."""
        self.process.terminate()
        assert self.process.wait(DEADLINE) == 0, self.complaint()


@pytest.fixture
def executor_at(tmp_path: Path) -> Iterator[Callable[..., Executor]]:
    """Starts executors; those that are left are killed in the end."""
    started: list[Executor] = []

    def start(place: str, name: str = "one", workers: int = 4, wait: bool = True, project: str = "") -> Executor:
        words = [sys.executable, "-m", "tests.coordination.engine_process", place, name, str(workers), str(tmp_path)]
        words += [project] if project else []
        environment = {**ordinary_environment(), "HOME": str(tmp_path)}
        with (tmp_path / f"{name}.stderr").open("ab") as complaint:
            process = preloaded.start(
                words, cwd=ROOT, env=environment, stdout=complaint.fileno(), stderr=complaint.fileno()
            )
        one = Executor(name, tmp_path, process)
        started.append(one)
        if wait:
            until(one.is_open)
        return one

    yield start
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.process.pid, signal.SIGCONT)
        one.kill()


@pytest.fixture
def executor(address: str, executor_at: Callable[..., Executor]) -> Callable[..., Executor]:
    """Starts executors on the database of this test."""
    return partial(executor_at, address)


class Orders:
    """Tells a running executor what to do, and reads what came of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def log(self) -> list[str]:
        """Lines such as `begin a first one`: the workflow, the step, the executor."""
        found = self._folder / "log"
        return found.read_text().splitlines() if found.exists() else []

    def count(self, line: str) -> int:
        return sum(1 for found in self.log() if found.startswith(line))

    def go(self, name: str) -> None:
        (self._folder / f"go-{name}").touch()

    def tell(self, who: Executor, request: dict[str, Any]) -> Path:
        """One call of an engine in another process; where its answer will be."""
        number = len(list(self._folder.glob("ask-*")))
        draft = self._folder / "draft"
        draft.write_bytes(msgspec.json.encode({"to": who.process.pid, **request}))
        draft.rename(self._folder / f"ask-{number}")
        return self._folder / f"answer-{number}"

    def ask(self, who: Executor, request: dict[str, Any]) -> Any:
        answer = self.tell(who, request)
        until(answer.exists)
        return msgspec.json.decode(answer.read_bytes())

    def enqueue(self, who: Executor, name: str, **payload: Any) -> None:
        queue = payload.pop("queue", f"sessions:{who.name}")
        partition = payload.pop("partition", "")
        text = msgspec.json.encode({"name": name, **payload}).decode()
        self.ask(who, {"do": "enqueue", "id": name, "payload": text, "queue": queue, "partition": partition})

    def status(self, who: Executor, name: str) -> str:
        return str(self.ask(who, {"do": "status", "id": name}))


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)
