"""Projects that a fleet is measured on: a repository, an agent that plays a script, and tasks for it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.definitions.project.goal_text import read_goal_line
from genba.domain.fleet.records import MergeEntry
from genba.domain.tasks.task import Actor, ActorKind, TaskDraft, TaskStatus
from genba.testing.conformance import a_move, a_verification

HUMAN = Actor(ActorKind.HUMAN, "bench")
COMMIT = "echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt && git add -A && git commit -qm work"


class Ground:
    """One project, ready for work by any tool."""

    def __init__(self, folder: Path, seconds: float = 0.0, database: str = "") -> None:
        self.root = folder / "repository"
        self.database = database or str(self.root / ".genba" / "genba.db")
        self.turn = folder / "turn.json"
        self.actions: list[dict[str, Any]] = [*([{"sleep": seconds}] if seconds else []), {"run": COMMIT}]
        self._repository()
        work = {"agent": "worker", "memory_per_worker_mb": 0}
        self._write(".genba/config.yaml", yaml.safe_dump({"work": work}))
        self._agent()
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Begin")
        played = {"expect": (), "model": None, "do": self.actions, "asked_model": None, "prompt": ""}
        self.turn.write_text(json.dumps(played))

    def _repository(self) -> None:
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.root)], check=True)
        for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost"), ("gc.auto", "0")):
            self.git("config", name, value)
        with (self.root / ".git" / "info" / "exclude").open("a") as file:
            file.write("/.genba/genba.db*\n/.worktrees/\n")

    def _agent(self) -> None:
        runner = {
            "completion": {"type": "iterationBudget", "config": {"maxIterations": 1}},
            "adapter": {"type": "scripted", "script": "script.yaml"},
        }
        issue = {"issue": {"type": "number"}}
        file = {"name": "worker", "description": "Plays a script", "parameters": issue, "runner": runner}
        self._write(".agent/worker/agent.json", json.dumps(file))
        self._write(".agent/worker/steps_registry.json", json.dumps({"steps": {"work": {}}}))
        self._write(".agent/worker/prompts/system.md", "Be quick.\n")
        turns = {"turns": [{"do": self.actions, "reply": "done"}], "repeat": True}
        self._write(".agent/worker/script.yaml", yaml.safe_dump(turns))

    def tasks(self, count: int, first: int = 1) -> "Ground":
        with self.board() as board:
            for number in range(first, first + count):
                board.add(TaskDraft(title=f"Task {number}", number=number), HUMAN)
        return self

    def branches(self, count: int) -> dict[int, str]:
        """A branch with one commit for each task, made without a checkout; by task, its commit."""
        lines = []
        for task in range(1, count + 1):
            text = f"{task}\n"
            lines += [f"commit refs/heads/genba/{task}", "committer Bench <bench@localhost> 0 +0000", "data 4\nwork"]
            lines += ["from refs/heads/main", f"M 100644 inline task-{task}.txt", f"data {len(text)}\n{text}"]
        self.git("fast-import", "--quiet", stdin="\n".join([*lines, ""]))
        self.git("switch", "--quiet", "--create", "desk")  # so that main lands without a checkout, on both sides
        return {task: self.git("rev-parse", f"genba/{task}") for task in range(1, count + 1)}

    def queued(self, count: int, goal: str = "") -> None:
        """Tasks whose work is verified and waits in the merge queue."""
        commits = self.branches(count)
        with self.board() as board:
            queue = FleetBoard(board)
            for task, commit in commits.items():
                goals = (read_goal_line(goal.format(task=task)),) if goal else ()
                board.add(TaskDraft(title=f"Task {task}", number=task, goals=goals), HUMAN)
                board.change_status(task, a_move(TaskStatus.IN_PROGRESS))
                board.record_verification(task, "", a_verification(commit))
                board.change_status(task, a_move(TaskStatus.REVIEW, commit=commit))
                entry = MergeEntry(
                    task=task, run=f"worker-{task}", branch=f"genba/{task}", commit=commit, target="main"
                )
                queue.enqueue_merge(entry)

    def board(self) -> Blackboard:
        return Blackboard.open(self.database, self.root.name)

    def git(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(["git", *words], cwd=self.root, input=stdin, text=True, check=True, capture_output=True)
        return done.stdout.strip()

    def landed(self) -> int:
        """How many tasks have come onto the base."""
        names = self.git("ls-tree", "--name-only", "main").splitlines()
        return sum(1 for name in names if name.startswith("task-"))

    def bare(self, count: int, parallel: int) -> list[str]:
        """The command that does the least of the same without Genba."""
        script = Path(__file__).with_name("bare_fleet.sh")
        return ["sh", str(script), str(self.root), str(count), str(parallel), str(self.turn), sys.executable]

    def _write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
