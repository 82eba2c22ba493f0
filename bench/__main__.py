"""`make bench`: the cost of Genba, as ratios to a minimal alternative in the same run."""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench import (
    blackboard,
    field,
    fleet,
    growth,
    idle_calls,
    large_trees,
    ledgers,
    machine,
    mcp,
    output,
    real_agents,
    real_commits,
    sandbox,
    truth,
    verification,
    web,
    workers,
    workers_memory,
)
from bench.measuring import Measured, Row, clean_environment, command, report, side_by_side

BIN = Path(sys.executable).parent
HERE = Path(__file__).parent
WORK = "echo work >> work.txt && git add -A && git commit -qm work"
ITERATIONS = 20


def main() -> int:
    """Measure all parts and write ledgers and page; or named parts, which are written only with `--write`."""
    if any(name.startswith("PYTHON") for name in os.environ):  # measured as an ordinary shell would start it
        os.execve(sys.executable, [sys.executable, "-m", "bench", *sys.argv[1:]], clean_environment())
    os.environ.setdefault("GENBA_SANDBOX", "worktree")  # the sandbox has rows of its own
    named = [word for word in sys.argv[1:] if word != "--write"]
    strange = [name for name in named if name not in PARTS]
    if strange:
        print(f"error: there is no part {strange[0]}\nhint: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    broken = []
    for name in named or PARTS:
        try:
            rows += _alone(name, write=not named or "--write" in sys.argv)
        except Exception:  # noqa: BLE001  (a part that breaks takes no other with it)
            traceback.print_exc()
            broken.append(name)
    missed = report(rows)
    if broken:
        print(f"not measured because of an error: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else missed


def _alone(name: str, write: bool) -> list[Row]:
    """Measure one part in its own process, so that parts do not affect each other."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("fork")) as process:
        return process.submit(_measured, name, write).result()


def _measured(name: str, write: bool) -> list[Row]:
    """Measure one part and write its ledger."""
    about, measure = PARTS[name]
    print(f"{name}: {about}", file=sys.stderr, flush=True)
    began, facts = time.monotonic(), machine.facts()
    found = measure()
    if not isinstance(found, Measured):
        found = Measured(found)
    if write:
        ledgers.write(name, about, f"make bench PARTS={name}", found.rows, machine=facts, **found.more)
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found.rows


def _one_run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="genba-bench-") as folder:
        repository = _repository(Path(folder))
        return [_start_up(), *_whole_run(repository), *_iteration(repository)]


def _repository(folder: Path) -> Path:
    root = folder / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost"), ("gc.auto", "0")):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
    _agent(root, "quick", ["sh", "-c", WORK], 1)
    _agent(root, "idle-once", ["true"], 1)
    _agent(root, "idle-often", ["true"], 1 + ITERATIONS)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "Begin"], cwd=root, check=True)
    return root


def _agent(root: Path, name: str, argv: list[str], iterations: int) -> None:
    folder = root / ".agent" / name
    (folder / "prompts").mkdir(parents=True)
    runner = {
        "completion": {"type": "iterationBudget", "config": {"maxIterations": iterations}},
        "adapter": {"type": "custom", "command": argv},
    }
    file = {"name": name, "description": "An instant agent", "runner": runner}
    (folder / "agent.json").write_text(json.dumps(file))
    (folder / "steps_registry.json").write_text(json.dumps({"steps": {"work": {}}}))
    (folder / "prompts" / "system.md").write_text("Be quick.\n")


def _start_up() -> Row:
    found = side_by_side(
        25, genba=command(str(BIN / "genba"), "--version"), python=command(sys.executable, "-c", "pass")
    )
    figure = f"{found['genba'] * 1000:.0f} ms beside {found['python'] * 1000:.0f} ms"
    return Row("genba --version / python -c pass", figure, found["genba"] / found["python"], 2.5)


def _whole_run(repository: Path) -> list[Row]:
    found = side_by_side(
        15,
        genba=command(str(BIN / "genba"), "run", "quick", "--quiet", cwd=str(repository)),
        same=command("sh", str(HERE / "same_commands.sh"), str(repository), WORK),
        fewest=command("sh", str(HERE / "fewest_commands.sh"), str(repository), WORK),
    )
    rows = []
    for name, what, limit in (("same", "same git commands", 3.0), ("fewest", "fewest git commands", None)):
        figure = f"{found['genba'] * 1000:.0f} ms beside {found[name] * 1000:.0f} ms"
        rows.append(Row(f"genba run, instant agent / {what}", figure, found["genba"] / found[name], limit))
    return rows


def _iteration(repository: Path) -> list[Row]:
    """The cost of an iteration: many against one, without the agent processes."""
    genba, root = str(BIN / "genba"), str(repository)

    def bare() -> None:
        for _ in range(ITERATIONS):
            subprocess.run(["true"], check=True)

    found = side_by_side(
        7,
        once=command(genba, "run", "idle-once", "--quiet", cwd=root),
        often=command(genba, "run", "idle-often", "--quiet", cwd=root),
        bare=bare,
    )
    beyond = (found["often"] - found["once"] - found["bare"]) / ITERATIONS
    process = found["bare"] / ITERATIONS
    figure = f"{beyond * 1000:.1f} ms for prompt, evidence, verdict and journal; "
    figure += f"a bare process takes {process * 1000:.1f} ms"
    return [Row("one iteration beyond its process", figure)]


PARTS: dict[str, tuple[str, Callable[[], list[Row] | Measured]]] = {
    "truth": ("Lying and honest agents, judged in four ways", truth.rows),
    "real_commits": ("Real commits and the built-in checks", real_commits.rows),
    "run": ("One session", _one_run),
    "blackboard": ("The blackboard, beside bare SQL", blackboard.rows),
    "verification": ("A repeated verification", verification.rows),
    "sandbox": ("Start of a command in a sandbox", sandbox.rows),
    "output": ("100 MB of output, beside cat > file", output.rows),
    "large_trees": ("A worktree of 50,000 files, beside git worktree add", large_trees.rows),
    "real_agents": ("A real agent, beside its bare binary", real_agents.rows),
    "mcp": ("A request for the next action, beside a minimal MCP tool", mcp.rows),
    "fleet": ("A fleet, beside a minimal shell script", fleet.rows),
    "field": ("The facilitator on 10,000 issues, beside git log", field.rows),
    "web": ("The dashboard in a browser, large beside small", web.rows),
    "workers": ("From 1 to 100 workers, beside a parallel shell script", workers.rows),
    "memory": ("Memory of a worker, idle and at work", workers_memory.rows),
    "idle_calls": ("Model calls while idle", idle_calls.rows),
    "growth": ("From 10 to 10,000 tasks", growth.rows),
}
"""The parts, with their titles on the page."""

if __name__ == "__main__":
    sys.exit(main())
