"""The same through the front door: real processes, their exit codes, what they say and what they leave."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

from tests import preloaded
from tests.fuzz import corpus
from tests.fuzz.histories import HistoryPlan, Repository, histories
from tests.fuzz.mutation import json_files, yaml_files
from tests.fuzz.targets import REPLY_FILE, WITHOUT_WAIT, Target, agent_folders, folder
from tests.preloaded import GENBA, ordinary_environment
from tests.project import Project

CODES = range(7)
REFUSED = (2, 3, 4)
SECONDS = 100.0
CUSTOM = '{"agents": {"default": {"adapter": {"type": "custom", "command": "echo done"}}}, "limits": {"retries": 0}}'


@contextmanager
def project() -> Iterator[Path]:
    with folder() as home:
        root = home / "repository"
        words = ["git", "init", "-q", "-b", "main", "--template=", str(root)]
        subprocess.run(words, check=True, capture_output=True)
        for setting in (("user.name", "T"), ("user.email", "t@localhost")):
            subprocess.run(["git", "-C", str(root), "config", *setting], check=True, capture_output=True)
        yield root


def commit(root: Path) -> None:
    for words in (("add", "-A", "-f"), ("commit", "-q", "--allow-empty", "-m", "Begin")):
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def genba(root: Path, *words: str) -> int:
    """Call it, and hold it to the law of every command."""
    before = everything(root)
    environment = {**ordinary_environment(), "HOME": str(root.parent), "GENBA_SANDBOX": "worktree", "NO_COLOR": "1"}
    done = preloaded.run([str(GENBA), *words], cwd=root, env=environment, timeout=SECONDS)
    message = f"genba {' '.join(words)}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert done.returncode in CODES, message
    for stream in (done.stdout, done.stderr):
        assert "Traceback" not in stream, message
        assert "GENBA_DEBUG" not in stream, f"nobody foresaw this: {message}"
        assert "\x1b" not in stream, message
    if done.returncode in REFUSED:
        assert done.stderr.strip(), message
        assert everything(root) == before, f"refused, and something was changed: {message}"
    return done.returncode


def everything(root: Path) -> tuple[bytes, dict[str, bytes]]:
    """Every ref, and every file: in the folder of git only those of Genba."""
    words = ["git", "-C", str(root), "for-each-ref"]
    refs = subprocess.run(words, check=False, capture_output=True).stdout
    files = {}
    for path in sorted(root.rglob("*")):
        inside = str(path.relative_to(root))
        if path.is_file() and not path.is_symlink() and (not inside.startswith(".git/") or "genba" in inside):
            files[inside] = path.read_bytes()
    return refs, files


def feed_agent(files: dict[str, bytes]) -> None:
    with project() as root:
        (root / ".genba").mkdir()
        (root / ".genba" / "config.yaml").write_text(CUSTOM)
        for name, content in files.items():
            path = root / ".agent" / "steps" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        commit(root)
        checked = genba(root, "agent", "check", "steps")
        genba(root, "agent", "list")
        genba(root, "agent", "show", "steps")
        ran = genba(root, "run", "steps", "--topic", "tea", "--quiet")
        assert checked == 0 or ran != 0


def feed_settings(content: bytes) -> None:
    with project() as root:
        commit(root)
        (root / ".genba").mkdir()
        (root / ".genba" / "config.yaml").write_bytes(content)
        for words in (
            ("status",),
            ("task", "list", "--json"),
            ("agent", "list"),
            ("run", "nobody"),
            ("verify", "main"),
        ):
            genba(root, *words)


def feed_history(plan: HistoryPlan) -> None:
    with folder() as home:
        root = home / "repository"
        root.mkdir()
        Repository(root, plan)
        made = Project(root)
        made.issue(3, "Three")
        made.issue(10, "Ten", state="closed")
        declare(root, "echo work > work.txt && git add work.txt && git commit -qm work")
        for words in (("facilitate", "--json"), ("verify", "work", "--base", "main"), ("status",), ("gc", "--dry-run")):
            genba(root, *words)
        genba(root, "run", "worker", "--quiet")


def declare(root: Path, line: str) -> None:
    """An agent that is a line of the shell, asked once."""
    home = root / ".agent" / "worker"
    (home / "prompts").mkdir(parents=True)
    runner = {
        "completion": {"type": "iterationBudget", "config": {"maxIterations": 1}},
        "adapter": {"type": "custom", "command": line},
        "limits": {"retries": 0, "wallTimeSeconds": 30},
    }
    (home / "agent.json").write_text(json.dumps({"name": "worker", "description": "x", "runner": runner}))
    (home / "steps_registry.json").write_text('{"steps": {"work": {}}}')
    (home / "prompts" / "system.md").write_text("x")


def feed_output(given: tuple[bytes, bytes, bytes, int]) -> None:
    """An agent that prints anything, writes anything as its reply, and ends anyhow."""
    reply, output, complained, code = given
    with project() as root:
        for name, content in (("reply", reply), ("said", output), ("complained", complained)):
            (root.parent / name).write_bytes(content)
        declare(root, f"cd {root.parent}; cat said; cat complained >&2; cp reply {{reply_file}}; exit {code}")
        commit(root)
        genba(root, "run", "worker")
        genba(root, "logs")


STREAM = st.binary(max_size=200) | st.sampled_from(
    (b"", b"\xff" * 10, b"\0" * 100, b"x" * 300_000, b"\r\n\x1b[31m", b"\n" * 5000)
)

COMMAND_TARGETS: tuple[Target, ...] = (
    Target("command-agent", agent_folders(), feed_agent, share=2),
    Target("command-settings", yaml_files(corpus.CONFIG, {}, words=corpus.words()), feed_settings, share=2),
    Target("command-history", histories(), feed_history, share=2),
    Target(
        "command-output",
        st.tuples(json_files(REPLY_FILE, WITHOUT_WAIT), STREAM, STREAM, st.sampled_from((0, 0, 0, 1, 255))),
        feed_output,
        share=2,
    ),
)
