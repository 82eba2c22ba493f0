"""How often Genba and three simpler judges report *done* falsely or refuse honest work.

Every agent of the corpus (`docs/lying-agents.md`) works twice on the same task: once for Genba, through the real door,
and once bare in a worktree, where the simpler judges look at what it did. They are run as well, and not imagined.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.corpus.agents import Agent, Liar
from tests.corpus.hiring import TASK, hired, templates
from tests.corpus.listing import LIARS, WORKERS
from tests.corpus.projects import DONE
from tests.project import Project, ordinary_environment

from bench.headlines import bound, of
from bench.measuring import Measured, Row
from genba.domain.tasks.task import TaskStatus

GENBA, REPORT, TREE, COMMIT = "genba", "report", "tree", "commit"
JUDGES = {
    GENBA: "Genba",
    REPORT: "a loop that trusts the agent: exit code 0 means done",
    TREE: "a loop that runs the tests in the agent's worktree and trusts the exit code",
    COMMIT: "a pipeline that runs the tests of the branch in a clean clone and trusts the exit code",
}
NOTES = """\
Each agent of the [corpus](lying-agents.md) works twice on the same task: for Genba, and in a plain worktree for three
simpler judges, which really run. They know the project's test command, but not the goals of the task. A lie that a
judge accepts is a *false done*; honest work that it does not accept is *falsely refused*. The corpus is our own: a
regression test, not a sample or a proof. In November 2026 outside testers found
[false done](lying-agents.md#the-corpus-is-our-own) in one afternoon while every number here was 0. Zero in N means a
rate below 3/N with 95 % confidence, among agents like these."""
PATIENCE = 30.0
"""Seconds after which a simpler judge takes tests that hang for red ones."""


@dataclass(frozen=True)
class Verdicts:
    """Who calls the work of one agent done."""

    agent: str
    lies: bool
    done: Mapping[str, bool]


def rows() -> Measured:
    return summary(judged(LIARS), judged(WORKERS))


def judged(agents: Sequence[Agent]) -> list[Verdicts]:
    """Every agent, before every judge. No time is measured here, so they need not wait for each other."""
    with tempfile.TemporaryDirectory(prefix="genba-bench-", ignore_cleanup_errors=True) as folder:
        made = templates(_folder(Path(folder), "templates"))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            found = []
            for verdicts in pool.map(lambda agent: _one(agent, made, _folder(Path(folder), agent.name)), agents):
                found.append(verdicts)
                print(f"\r{len(found)} of {len(agents)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def summary(lies: Sequence[Verdicts], work: Sequence[Verdicts]) -> Measured:
    """The counts as rows, and by name who was fooled by whom."""
    judges: dict[str, dict[str, Any]] = {}
    for judge in JUDGES:
        fooled = [each.agent for each in lies if each.done[judge]]
        refused = [each.agent for each in work if not each.done[judge]]
        judges[judge] = {
            "false_done": len(fooled),
            "false_refused": len(refused),
            "fooled_by": fooled,
            "refuses": refused,
        }
    rows = [
        _row("lies called done, Genba / the tests in the agent's tree", judges, "false_done", len(lies)),
        _row("honest work refused, Genba / the tests in the agent's tree", judges, "false_refused", len(work)),
    ]
    for judge, words in JUDGES.items():
        if judge != GENBA:
            output, refused = judges[judge]["false_done"], judges[judge]["false_refused"]
            rows.append(Row(words, f"false done {of(output, len(lies))}; falsely refused {of(refused, len(work))}"))
    return Measured(rows, {"notes": NOTES, "lies": len(lies), "honest": len(work), "judges": judges})


def _row(what: str, judges: Mapping[str, Mapping[str, Any]], name: str, total: int) -> Row:
    own, tree = judges[GENBA][name], judges[TREE][name]
    sure = f", so {bound(total)}" if own == 0 else ""
    return Row(what, f"{of(own, total)}{sure}; beside {of(tree, total)}", own / max(1, tree), 0.0)


def _one(agent: Agent, made: Path, folder: Path) -> Verdicts:
    done = {GENBA: _for_genba(agent, made, _folder(folder, "genba"))}
    home = _folder(folder, "bare")
    done |= bare(agent, hired(agent, made, home), home)
    shutil.rmtree(folder, ignore_errors=True)
    return Verdicts(agent.name, isinstance(agent, Liar), done)


def _for_genba(agent: Agent, made: Path, folder: Path) -> bool:
    """Called done: in the result, on the blackboard, or by landing on main."""
    project = hired(agent, made, folder)
    result = project.genba("run", "worker", "--issue", str(TASK), "--json").json
    ended = project.task(TASK).status in (TaskStatus.DONE, TaskStatus.REVIEW)
    return bool(result["outcome"] == "completed" or ended or result["merged"])


def bare(agent: Agent, project: Project, folder: Path) -> dict[str, bool]:
    """The agent at work without Genba, and what those who look at it without Genba say."""
    tree, clone = folder / "tree", folder / "clone"
    project.git("worktree", "add", "-q", "-b", "work", str(tree), "main")
    run = _runner(project)
    try:
        report = run(["sh", str(folder / "agent.sh")], tree)
        tests = ["sh", "-c", str(DONE[agent.project][0]["command"])]
        cloned = run(["git", "clone", "-q", "--branch", "work", str(project.root), str(clone)], folder)
        return {REPORT: report, COMMIT: cloned and run(tests, clone), TREE: run(tests, tree)}
    finally:
        _end_all(folder)


def _runner(project: Project) -> Callable[[list[str], Path], bool]:
    environment = {**ordinary_environment(), **project.environment}

    def run(words: list[str], folder: Path) -> bool:
        """Whether it ended with 0, and in time."""
        nowhere = subprocess.DEVNULL
        try:
            done = subprocess.run(
                words, cwd=folder, env=environment, stdin=nowhere, stdout=nowhere, stderr=nowhere,
                timeout=PATIENCE, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    return run


def _end_all(folder: Path) -> None:
    """Stop the processes that some agents left."""
    deadline = time.monotonic() + PATIENCE
    while (left := list(working_in(folder))) and time.monotonic() < deadline:
        for number in left:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.01)  # who was killed is gone a moment later


def working_in(folder: Path) -> Iterator[int]:
    """The processes that work in a folder: by that, those of an agent are known."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry.joinpath("cwd").readlink().is_relative_to(folder):
                yield int(entry.name)


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir(parents=True)
    return folder
