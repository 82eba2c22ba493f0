"""Model calls while idle: counted at a model on the loopback, which every agent of the project would ask.

All long-running parts of Genba run at once: the fleet, the dashboard with a browser, the MCP server, the facilitator.
There are tasks, and none can start. As a control, the same count is taken while the same fleet does one task with a
real Claude Code.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml
from tests.standins.model_server import ModelServer, Run, Say

from bench.fleet import until
from bench.fleet_ground import HUMAN
from bench.measuring import Measured, Row, clean_environment
from genba.blackboard.tasks.board import Blackboard
from genba.domain.sessions.sandbox import SANDBOX_VARIABLE
from genba.domain.tasks.task import TaskDraft, TaskStatus

BIN = Path(sys.executable).parent
HERE = Path(__file__).parent
CLAUDE = BIN.parent / "clis" / "node_modules" / ".bin" / "claude"
SECONDS = 8.0
POLL_SECONDS = 0.05
WATCH_MINUTES = 0.02
WAITING = 20
"""Tasks that cannot start: each waits for one in the backlog."""
_TOKEN = "operator-of-the-bench"
_WHAT = "model calls while idle: genba work, serve, mcp, facilitate / 1 task that is done"
_PAGES = ("/", "/board", "/graph", "/api/tasks")


class Idle(NamedTuple):
    calls: int
    looks: int
    """Of the orchestrator."""
    facilitated: int
    """Looks of the facilitator."""
    pages: int
    """Opened pages of the dashboard."""


def rows() -> Measured:
    if not CLAUDE.exists():
        return Measured([Row(_WHAT, "not run: make clis installs Claude Code")])
    with (
        ModelServer() as model,
        tempfile.TemporaryDirectory(prefix="genba-bench-", ignore_cleanup_errors=True) as folder,
    ):
        url = model.scenario("bench", Run("echo work > work.txt && git add -A && git commit -qm work"), Say("done"))
        root = _repository(Path(folder))
        environment = _environment(url)
        idle = _idle(root, environment, model)
        print(f"  idle: {idle}", flush=True)
        busy = _busy(root, environment, model)
    figure = f"{idle.calls} calls beside {busy}; in {SECONDS:g} s and more, {idle.looks} looks of the orchestrator, "
    figure += f"{idle.facilitated} of the facilitator and {idle.pages} pages, with {WAITING} tasks that wait"
    counted = {"idle_calls": idle.calls, "looks": idle.looks, "calls_of_one_task": busy}
    if not busy:
        raise RuntimeError("one task was done and no call was counted: the count is worth nothing")
    return Measured([Row(_WHAT, figure, idle.calls / busy, 0.0)], counted)


def _idle(root: Path, environment: dict[str, str], model: ModelServer) -> Idle:
    genba, before = str(BIN / "genba"), len(model.requests)
    with ExitStack() as stack:

        def start(*words: str) -> Path:
            return stack.enter_context(_running(list(words), root, environment))

        fleet = start(sys.executable, "-m", "bench.ticks", "idle")
        serve = start(genba, "serve", "--port", "0")
        mcp = start(genba, "mcp", "--http", "--port", "0")
        watch = start(genba, "facilitate", "--watch", str(WATCH_MINUTES), "--json")
        for each in (fleet, serve, mcp, watch):
            until(lambda each=each: "\n" in each.read_text("utf-8"))  # type: ignore[misc]
        address = serve.read_text("utf-8").partition("/enter")[0]
        pages, deadline = 0, time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            pages += sum(_seen(address + page) for page in _PAGES)
            time.sleep(0.2)
    looks = json.loads(fleet.read_text("utf-8").splitlines()[-1])["looks"]
    return Idle(len(model.requests) - before, looks, len(watch.read_text("utf-8").splitlines()), pages)


def _busy(root: Path, environment: dict[str, str], model: ModelServer) -> int:
    """The calls of one task, from its start until it has landed."""
    before = len(model.requests)
    with _board(root) as board:
        board.add(TaskDraft(title="Write work.txt"), HUMAN)
    words = [str(BIN / "genba"), "work", "--until-empty", "--plain"]
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=False)
    landed = subprocess.run(
        ["git", "ls-tree", "--name-only", "HEAD"], cwd=root, check=True, capture_output=True, text=True
    )
    if "work.txt" not in landed.stdout.split():
        raise RuntimeError(f"the task did not land\n{done.stdout}{done.stderr}")
    return len(model.requests) - before


def _seen(url: str) -> int:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {_TOKEN}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()
    return 1


@contextmanager
def _running(words: list[str], root: Path, environment: dict[str, str]) -> Iterator[Path]:
    """A process that is stopped, and the file with its output."""
    number, name = tempfile.mkstemp(dir=root.parent, prefix="output-")
    errors = Path(f"{name}.errors")
    with os.fdopen(number, "w") as output, errors.open("w") as wrong:
        process = subprocess.Popen(words, cwd=root, env=environment, stdout=output, stderr=wrong)
    try:
        yield Path(name)
        if process.poll() is not None:
            raise RuntimeError(f"{' '.join(words[1:3])} ended by itself\n{errors.read_text('utf-8')}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _environment(url: str) -> dict[str, str]:
    """The only model of the project."""
    return {
        **clean_environment(),
        "PYTHONPATH": str(HERE.parent),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-bench",
        "GENBA_SERVE_TOKEN": _TOKEN,
        SANDBOX_VARIABLE: "worktree",
    }


def _board(root: Path) -> Blackboard:
    return Blackboard.open(str(root / ".genba" / "genba.db"), root.name)


def _repository(folder: Path) -> Path:
    root = folder / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost"), ("gc.auto", "0")):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
    with (root / ".git" / "info" / "exclude").open("a") as file:
        file.write("/.genba/genba.db*\n/.worktrees/\n")
    work = {"agent": "coder", "poll_seconds": POLL_SECONDS, "memory_per_worker_mb": 0}
    _write(root / ".genba" / "config.yaml", yaml.safe_dump({"work": work}))
    runner = {
        "completion": {"type": "iterationBudget", "config": {"maxIterations": 1}},
        "adapter": {"type": "claude-code", "command": os.fspath(CLAUDE)},
        "boundaries": {"allowedTools": ["Write", "Bash"]},
        "flow": {"defaultModel": "haiku"},
    }
    issue = {"issue": {"type": "number"}}
    agent = {"name": "coder", "description": "Writes", "parameters": issue, "runner": runner}
    _write(root / ".agent" / "coder" / "agent.json", json.dumps(agent))
    _write(root / ".agent" / "coder" / "steps_registry.json", json.dumps({"steps": {"work": {}}}))
    _write(root / ".agent" / "coder" / "prompts" / "system.md", "Be quick.\n")
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "Begin"], cwd=root, check=True)
    with _board(root) as board:
        first = board.add(TaskDraft(title="Not yet", status=TaskStatus.BACKLOG), HUMAN).number
        for number in range(1, WAITING):
            board.add(TaskDraft(title=f"After it, {number}", dependencies=(first,)), HUMAN)
    return root


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
