"""What Genba adds to a real agent: `genba run` with Claude Code beside the bare binary, asked by the same model."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.standins.model_server import ModelServer, Run, Say, Write

from bench.measuring import Contestant, Row, clean_environment, side_by_side

ROUNDS = 11
LIMIT = 1.5
BIN = Path(sys.executable).parent
PROMPT = "Write hello.txt and commit it."
TASK = (
    Run("ls"),
    Run("cat .agent/bench/agent.json"),
    Write("hello.txt", "hello"),
    Run("cat hello.txt"),
    Run("git status --short"),
    Run("git add -A && git commit -q --allow-empty -m hello"),
    Say("done"),
)
"""A small task as agents do them: look around, write, look at it, commit. The model itself takes no time."""


def rows() -> list[Row]:
    what = f"genba run with Claude Code, {len(TASK) - 1} tool calls / the bare binary"
    claude = BIN.parent / "clis" / "node_modules" / ".bin" / "claude"
    if not claude.exists():
        return [Row(what, "not run: make clis installs it")]
    with ModelServer() as model, tempfile.TemporaryDirectory(prefix="genba-bench-") as folder:
        url = model.scenario("bench", *TASK)
        home = Path(folder)
        repository = _repository(home, claude)
        found = side_by_side(
            ROUNDS,
            bare=_bare(home, repository, claude, url),
            sandboxed=_genba(repository, url, "bubblewrap" if shutil.which("bwrap") else "worktree"),
            plain=_genba(repository, url, "worktree"),
        )
    rows = []
    for name, kind in (("sandboxed", "bubblewrap" if shutil.which("bwrap") else "no sandbox"), ("plain", "no sandbox")):
        figure = f"{found[name] * 1000:.0f} ms beside {found['bare'] * 1000:.0f} ms"
        rows.append(Row(f"{what}, {kind}", figure, found[name] / found["bare"], LIMIT))
    return rows


def _environment(url: str, **more: str) -> dict[str, str]:
    return {**clean_environment(), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-bench", **more}


def _bare(home: Path, repository: Path, claude: Path, url: str) -> Contestant:
    """The binary alone, as its own documentation starts it, in a checkout of its own."""
    checkout = home / "bare"
    subprocess.run(["git", "clone", "-q", str(repository), str(checkout)], check=True)
    for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost")):
        subprocess.run(["git", "config", name, value], cwd=checkout, check=True)
    (home / "home").mkdir()
    lean = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "HOME": str(home / "home")}
    words = [str(claude), "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits",
             "--allowedTools", "Write,Bash", "--model", "haiku"]  # fmt: skip

    def call() -> None:
        subprocess.run(
            words, input=PROMPT.encode(), cwd=checkout, env=_environment(url, **lean), check=True, capture_output=True
        )

    return call


def _genba(repository: Path, url: str, sandbox: str) -> Contestant:
    def call() -> None:
        subprocess.run(
            [str(BIN / "genba"), "run", "bench", "--quiet", "--sandbox", sandbox],
            cwd=repository,
            env=_environment(url),
            check=True,
            capture_output=True,
        )

    return call


def _repository(home: Path, claude: Path) -> Path:
    root = home / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost"), ("gc.auto", "0")):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
    folder = root / ".agent" / "bench"
    (folder / "prompts").mkdir(parents=True)
    runner = {
        "completion": {"type": "iterationBudget", "config": {"maxIterations": 1}},
        "adapter": {"type": "claude-code", "command": os.fspath(claude)},
        "boundaries": {"allowedTools": ["Write", "Bash"]},
        "flow": {"defaultModel": "haiku"},
    }
    file = {"name": "bench", "description": PROMPT, "runner": runner}
    (folder / "agent.json").write_text(json.dumps(file))
    (folder / "steps_registry.json").write_text(json.dumps({"steps": {"work": {}}}))
    (folder / "prompts" / "system.md").write_text("Be quick.\n")
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "Begin"], cwd=root, check=True)
    return root
