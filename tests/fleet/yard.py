"""A project, its fleet, and what the tests ask of both."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.domain.tasks.task import Task, TaskDraft, TaskStatus
from tests import preloaded
from tests.project import GENBA, TESTER, Finished, Project, furnish, ordinary_environment

STARTS = "starts.txt"
"""In the folder above the repository: one line for each start of an agent, written by the agent itself."""


class Yard:
    def __init__(self, project: Project, address: str = "") -> None:
        self.project = project
        self.address = address
        self.settings: dict[str, Any] = {
            "work": {"agent": "worker", "poll_seconds": 0.1},
            "attempts": {"backoff_seconds": 0},
        }
        if address:
            project.environment["GENBA_DATABASE_URL"] = address
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    @property
    def starts(self) -> Path:
        return self.project.root.parent / STARTS

    def started(self) -> list[str]:
        """The tasks whose agents were started, in order; one line for each start."""
        return self.starts.read_text("utf-8").split() if self.starts.is_file() else []

    def set(self, **sections: dict[str, Any]) -> None:
        """Add to the settings of the project, and commit them with everything else."""
        for name, values in sections.items():
            self.settings[name] = {**self.settings.get(name, {}), **values}
        self.project.write(".genba/config.yaml", yaml.safe_dump(self.settings))
        self.project.commit("Set up the fleet")

    def agent(self, name: str = "worker", script: str = "", **more: Any) -> None:
        """An agent that says that it began, does what the shell script says, and commits a file of its task."""
        line = script or "echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt"
        run = f"echo $GENBA_ISSUE >> {self.starts}; {line}; git add -A; git commit -qm work || true"
        turns = {"turns": [{"do": [{"run": run}], "reply": "done"}], "repeat": True}
        self.project.agent(name, **{"script": turns, "parameters": {"issue": {"type": "number"}}, **more})

    def task(self, number: int, title: str = "", **draft: Any) -> None:
        with self.board() as board:
            board.board.add(TaskDraft(title=title or f"Task {number}", number=number, **draft), TESTER)

    def enable_agent_commands(self, number: int) -> None:
        """Let goals that agents write for a task run programs, as a person does."""
        with self.board() as board:
            board.board.enable_agent_commands(number, True, TESTER)

    @contextmanager
    def board(self) -> Iterator[FleetBoard]:
        where = self.address or str(self.project.root / ".genba" / "genba.db")
        if not self.address:
            exclude = self.project.root / ".git" / "info" / "exclude"
            exclude.parent.mkdir(exist_ok=True)
            if "/.genba/genba.db*" not in (exclude.read_text("utf-8") if exclude.is_file() else ""):
                with exclude.open("a", encoding="utf-8") as file:
                    file.write("/.genba/genba.db*\n")
            furnish(Path(where), engine=True)
        with Blackboard.open(where, self.project.root.name) as board:
            yield FleetBoard(board)

    def look(self, number: int) -> Task:
        with self.board() as board:
            return board.board.get(number)

    def statuses(self) -> dict[int, TaskStatus]:
        with self.board() as board:
            return {task.number: task.status for task in board.board.find()}

    def work(self, *words: str, check: int | None = 0, **environment: str) -> Finished:
        """`genba work --until-empty --json`, to its end."""
        return self.project.genba("work", "--until-empty", "--json", *words, cwd=None, check=check, **environment)

    def genba(self, *words: str, check: int | None = 0) -> Finished:
        return self.project.genba(*words, check=check)

    def start(self, *words: str, **environment: str) -> "subprocess.Popen[bytes]":
        """`genba work` in the background; what it says is in `work-N.log` beside the repository."""
        return self.begin("work", *words, **environment)

    def begin(self, *words: str, **environment: str) -> "subprocess.Popen[bytes]":
        """Any command of `genba` in the background."""
        log = (self.project.root.parent / f"work-{len(self._processes)}.log").open("wb")
        process = preloaded.start(
            [str(GENBA), *words],
            cwd=self.project.root,
            env={**ordinary_environment(), **self.project.environment, **environment},
            stdout=log.fileno(),
            stderr=log.fileno(),
        )
        log.close()
        self._processes.append(process)
        return process

    def kill(self, process: "subprocess.Popen[bytes]", number: signal.Signals = signal.SIGKILL) -> None:
        os.kill(process.pid, number)
        process.wait(120)

    def log(self, number: int = 0) -> str:
        return (self.project.root.parent / f"work-{number}.log").read_text("utf-8", "replace")

    def landed(self, target: str = "main") -> list[str]:
        """The subjects of what came onto the target, oldest first."""
        return self.project.git("log", "--reverse", "--first-parent", "--format=%s", target).splitlines()

    def files(self, commit: str = "main") -> list[str]:
        return self.project.git("ls-tree", "-r", "--name-only", commit).splitlines()

    def unreachable(self) -> list[str]:
        """Commits that no ref leads to."""
        lines = self.project.git("fsck", "--unreachable", "--no-reflogs", "--no-progress").splitlines()
        return [line for line in lines if line.startswith("unreachable commit")]

    def left_running(self) -> list[str]:
        """Processes of agents that are still there."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / "environ").read_bytes()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            mark = str(self.project.root).encode()
            if b"GENBA_RUN=" in environment and mark in environment + command:
                found.append(command.replace(b"\0", b" ").decode("utf-8", "replace"))
        return found


def summary(done: Finished) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(done.out)
    return values
